"""The line of shell in front of a command, run by a real shell."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from interlace.pods.command import prepare
from interlace.pods.draft import Draft
from interlace.pods.errors import InjectError
from tests.unit.pods.pods import container, pod

PRINT = ["/bin/sh", "-c", 'echo "$LD_LIBRARY_PATH|$NCCL_NET|$0|$*"']


def prepared(
    command: list[str], *, source: str = "", folders: tuple[str, ...] = ("/a", "/b"), **fields: Any
) -> list[str]:
    draft = Draft(pod(container(command=command, **fields)))
    (main,) = draft.containers()
    assert prepare(draft, main, library_path=folders, source=source, reason="test")
    found: list[str] = main.fields["command"]
    return found


def run(command: list[str], *args: str, **environment: str) -> str:
    done = subprocess.run(
        [*command, *args], env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_folders_come_before_what_the_image_sets_and_arguments_arrive_as_they_are() -> None:
    command = prepared([*PRINT, "name"])
    assert run(command, "x y", "$z", LD_LIBRARY_PATH="/image") == "/a:/b:/image||name|x y $z"
    assert run(command) == "/a:/b||name|"


def test_a_file_is_sourced_before_the_command(tmp_path: Path) -> None:
    script = tmp_path / "set_nccl_env.sh"
    script.write_text("export NCCL_NET=gIB\n")
    command = prepared(PRINT, source=str(script))
    assert command[0] == "/bin/bash"
    assert run(command, LD_LIBRARY_PATH="/image").startswith("/a:/b:/image|gIB|")
    assert run(prepared(PRINT, source=str(script), folders=())).startswith("|gIB|")


def test_what_is_prepared_is_known_again_and_another_preparation_refused() -> None:
    once = prepared(["train"])
    assert prepared(once) == once
    with pytest.raises(InjectError, match="undo the earlier injection"):
        prepared(once, folders=("/other",))


def test_a_command_that_does_a_part_itself_gets_the_rest_alone() -> None:
    source, folder = "/opt/set_nccl_env.sh", "export LD_LIBRARY_PATH=/a:$LD_LIBRARY_PATH"
    both = ["/bin/bash", "-c", f"source {source}; {folder}; train"]
    assert prepared(both, source=source) == both
    first = prepared(["/bin/bash", "-c", f"source {source}; train"], source=source)
    assert first[2] == 'export LD_LIBRARY_PATH="/a:/b${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; exec "$@"'
    assert prepared(first, source=source) == first
    second = prepared(["/bin/bash", "-c", f"{folder}; train"], source=source)
    assert second[2] == f'. {source}; exec "$@"'
    assert prepared(second, source=source) == second


def test_a_container_that_leaves_its_command_to_the_image_is_not_touched() -> None:
    draft = Draft(pod(container(command=[], args=["x"])))
    (main,) = draft.containers()
    assert not prepare(draft, main, library_path=("/a",), source="", reason="test")
    assert draft.changes == []

"""What ``interlace verify`` reads from and writes to: pipes, closed streams, full disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.unit.verify.scenes import HEALTHY, table
from tests.unit.verify.test_judging_command import log, run


def redirected(*arguments: str, to: str) -> subprocess.CompletedProcess[str]:
    """``interlace verify`` as a shell starts it with that redirection."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = f'exec "$0" -m interlace.cli.main verify "$@" {to}'
    shell = ["sh", "-c", command, sys.executable, *arguments]
    return subprocess.run(shell, capture_output=True, text=True, env=env, timeout=60, check=False)


@pytest.mark.parametrize("form", ["compact", "indented"])
def test_a_document_of_parse_is_one_through_a_pipe_too(tmp_path: Path, form: str) -> None:
    document = run("parse", log(tmp_path, "run.log", table(HEALTHY)), "--format", "json").stdout
    told = document if form == "compact" else json.dumps(json.loads(document), indent=2)
    assert run("judge", "-", "--family", "a3-mega", stdin=told).stdout.startswith("pass: ")


@pytest.mark.parametrize("verb", ["judge", "compare"])
def test_a_log_that_comes_through_a_named_pipe_is_read_whole(tmp_path: Path, verb: str) -> None:
    path = log(tmp_path, "run.log", table(HEALTHY))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    told = run(verb, pipe, *([path] if verb == "compare" else ["--family", "a3-mega"]))
    writer.join()
    assert told.exit_code == 0, told.stderr
    assert told.stdout.startswith("pass: " if verb == "judge" else "same: ")


@pytest.mark.parametrize("arguments", [["parse", "-"], ["judge", "-"], ["compare", "-", "a.log"]])
def test_stdin_that_is_closed_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log(tmp_path, "a.log", table(HEALTHY))
    told = redirected(*arguments, to="<&-")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == "interlace: -: stdin is closed; give a file, or pipe a log into the command\n"


@pytest.mark.parametrize("arguments", [["parse"], ["parse", "--format", "json"], ["judge", "--family", "a3-mega"]])
def test_output_that_nobody_wants_or_that_finds_no_room_is_no_fault_of_the_program(
    tmp_path: Path, arguments: list[str]
) -> None:
    path = log(tmp_path, "a.log", table(HEALTHY))
    closed = redirected(*arguments, str(path), to=">&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    full = redirected(*arguments, str(path), to=">/dev/full")
    assert (full.returncode, full.stderr) == (4, "interlace: No space left on device\n")

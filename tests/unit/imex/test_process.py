from __future__ import annotations

import dataclasses
import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlace.imex.process import (
    DAEMON,
    Handle,
    adopt,
    environment,
    find_program,
    find_strays,
    identify,
    spawn,
)
from interlace.imex.reasons import ImexError, Reason
from tests.unit.imex.support import alive


def wait(handle: Handle) -> None:
    assert select.select([handle.fd], [], [], 20)[0], "the process does not end"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Handle]:
    words = [sys.executable, "-S", "-c", "import signal; signal.pause()"]
    handle = spawn(words, log=tmp_path / "log", env={})
    yield handle
    if alive(handle.pid):
        handle.send(signal.SIGKILL)
        wait(handle)
        handle.close()


def test_a_program_gets_a_session_of_its_own_and_a_log_file_for_both_outputs(tmp_path: Path) -> None:
    body = "import os, sys; print(os.getsid(0) == os.getpid()); sys.stdout.flush(); print('oops', file=sys.stderr)"
    handle = spawn([sys.executable, "-S", "-c", body], log=tmp_path / "log", env={"A": "b"})
    wait(handle)
    assert handle.close() == "status 0"
    assert (tmp_path / "log").read_text() == "True\noops\n"


def test_the_end_by_a_signal_is_told_by_its_name(sleeper: Handle) -> None:
    sleeper.send(signal.SIGTERM)
    wait(sleeper)
    sleeper.send(signal.SIGTERM)
    assert sleeper.close() == "SIGTERM"


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImexError, match="cannot start /no/program: No such file") as caught:
        spawn(["/no/program"], log=tmp_path / "log", env={})
    assert caught.value.reason is Reason.START_FAILED


def test_a_living_process_is_adopted_by_its_identity(sleeper: Handle) -> None:
    identity = identify(sleeper.pid)
    assert identity is not None
    adopted = adopt(identity)
    assert adopted is not None
    adopted.send(signal.SIGKILL)
    wait(adopted)
    assert adopted.close() == ""


@pytest.mark.parametrize("change", [{"start_time": 1}, {"boot": "another"}])
def test_a_number_that_is_another_process_now_is_not_adopted(sleeper: Handle, change: dict[str, object]) -> None:
    identity = identify(sleeper.pid)
    assert identity is not None
    assert adopt(dataclasses.replace(identity, **change)) is None  # type: ignore[arg-type]
    assert alive(sleeper.pid)


def test_an_ended_process_is_not_adopted_even_before_it_is_reaped(sleeper: Handle) -> None:
    identity = identify(sleeper.pid)
    assert identity is not None
    sleeper.send(signal.SIGKILL)
    wait(sleeper)
    assert identify(sleeper.pid) is None
    assert adopt(identity) is None
    sleeper.close()
    assert adopt(identity) is None


def test_strays_are_found_by_the_config_below_their_run_directory(tmp_path: Path) -> None:
    body = "import signal; signal.pause()"
    script = tmp_path / "p.py"
    script.write_text(body)
    handle = spawn([sys.executable, "-S", script, "-c", tmp_path / "r/x/imex.cfg"], log=tmp_path / "log", env={})
    try:
        assert find_strays(tmp_path / "r") == [handle.pid]
        assert find_strays(tmp_path / "other") == []
    finally:
        handle.send(signal.SIGKILL)
        wait(handle)
        handle.close()


def test_programs_are_looked_for_below_the_driver_root_only(tmp_path: Path) -> None:
    with pytest.raises(ImexError, match=f"no program nvidia-imex below driver root {tmp_path}") as caught:
        find_program(tmp_path, DAEMON)
    assert caught.value.reason is Reason.BINARY_MISSING
    program = tmp_path / "opt/bin/nvidia-imex"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o644)
    with pytest.raises(ImexError):
        find_program(tmp_path, DAEMON)
    program.chmod(0o755)
    assert find_program(tmp_path, DAEMON) == program


def test_only_libraries_of_the_driver_come_into_the_search_path(tmp_path: Path) -> None:
    libraries = tmp_path / "root/usr/lib64"
    libraries.mkdir(parents=True)
    (libraries / "libnvidia-ml.so.580.1").touch()
    (libraries / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.580.1")
    (libraries / "libc.so.6").touch()
    env = environment(tmp_path / "root", tmp_path / "run")
    found = Path(env["LD_LIBRARY_PATH"])
    assert sorted(path.name for path in found.iterdir()) == ["libnvidia-ml.so.1", "libnvidia-ml.so.580.1"]
    assert (found / "libnvidia-ml.so.1").resolve() == libraries / "libnvidia-ml.so.580.1"
    (libraries / "libnvidia-ml.so.1").unlink()
    (libraries / "libnvidia-ml.so.580.1").rename(libraries / "libnvidia-ml.so.590.2")
    environment(tmp_path / "root", tmp_path / "run")
    assert [path.name for path in found.iterdir()] == ["libnvidia-ml.so.590.2"]


def test_without_a_driver_root_of_its_own_nothing_is_set(tmp_path: Path) -> None:
    assert environment(Path("/"), tmp_path) == {"PATH": os.environ["PATH"]}

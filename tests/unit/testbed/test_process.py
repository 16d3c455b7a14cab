"""Processes that are never left behind and never mistaken for others."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed import process
from testbed.errors import BedError
from testbed.process import Identity
from tests.waiting import eventually

SLEEP = ["/bin/sleep", "60"]
STUBBORN = ["/bin/sh", "-c", "trap '' TERM; touch trapped; while :; do sleep 1; done"]


@given(st.text())
def test_any_pid_file_is_an_identity_or_nothing(text: str) -> None:
    found = Identity.parse(text)
    assert found is None or (found.pid > 1 and found.start >= 0)


@given(pid=st.integers(2, 2**22), start=st.integers(0, 2**63))
def test_what_is_written_is_read_back(pid: int, start: int) -> None:
    assert Identity.parse(f"{pid} {start}\n") == Identity(pid, start)


def test_a_process_is_known_until_it_ends_also_if_nobody_reaps_it() -> None:
    child = subprocess.Popen(SLEEP)
    identity = Identity.of(child.pid)
    assert identity is not None
    assert Identity.of(child.pid) == identity
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert Identity.of(child.pid) is None
    child.wait()
    assert Identity.of(child.pid) is None


async def test_a_program_is_found_by_its_pid_file_and_gone_after_stop(tmp_path: Path) -> None:
    started = await process.launch("sleep", SLEEP, state=tmp_path, daemon=False)
    assert started.running is True
    await eventually((tmp_path / "sleep.pid").exists, within=5)
    found = process.find("sleep", state=tmp_path)
    assert found is not None
    assert found.identity == started.identity
    found.release()
    assert await started.stop(grace=5) is False
    assert Identity.of(started.identity.pid) is None
    assert not (tmp_path / "sleep.pid").exists()
    assert process.find("sleep", state=tmp_path) is None


async def test_stopping_twice_is_harmless(tmp_path: Path) -> None:
    started = await process.launch("sleep", SLEEP, state=tmp_path, daemon=False)
    await started.stop(grace=5)
    assert await started.stop(grace=5) is False


async def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    started = await process.launch("stubborn", STUBBORN, state=tmp_path, daemon=False)
    await eventually((tmp_path / "trapped").exists, within=5)
    assert await started.stop(grace=0.2) is True
    assert Identity.of(started.identity.pid) is None


async def test_a_cancelled_stop_leaves_nothing_running(tmp_path: Path) -> None:
    started = await process.launch("stubborn", STUBBORN, state=tmp_path, daemon=False)
    await eventually((tmp_path / "trapped").exists, within=5)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await started.stop(grace=60)
    assert Identity.of(started.identity.pid) is None


async def test_a_pid_that_means_another_process_now_is_not_touched(tmp_path: Path) -> None:
    bystander = subprocess.Popen(SLEEP)
    try:
        identity = Identity.of(bystander.pid)
        assert identity is not None
        (tmp_path / "etcd.pid").write_text(f"{identity.pid} {identity.start - 1}\n")
        assert process.find("etcd", state=tmp_path) is None
        assert not (tmp_path / "etcd.pid").exists()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("content", ["", "12", "1 5", "-4 3", "a b", "4194305 7"])
def test_a_damaged_pid_file_is_put_away(tmp_path: Path, content: str) -> None:
    (tmp_path / "etcd.pid").write_text(content)
    assert process.find("etcd", state=tmp_path) is None
    assert not (tmp_path / "etcd.pid").exists()


async def test_a_program_dies_with_an_owner_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib; from testbed import process\n"
        "async def main():\n"
        f"    await process.launch('sleep', {SLEEP!r}, state=pathlib.Path({str(tmp_path)!r}), daemon=False)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    pidfile = tmp_path / "sleep.pid"
    await eventually(pidfile.exists, within=20)
    identity = Identity.parse(pidfile.read_text())
    assert identity is not None
    assert Identity.of(identity.pid) == identity
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    await eventually(lambda: Identity.of(identity.pid) is None, within=5, what="the end of the program")


async def test_a_daemon_outlives_its_starter_and_is_found_again(tmp_path: Path) -> None:
    started = await process.launch("sleep", SLEEP, state=tmp_path, daemon=True)
    started.release()
    assert not started.running
    again = process.find("sleep", state=tmp_path)
    assert again is not None
    assert again.identity == started.identity
    status = Path(f"/proc/{again.identity.pid}/status").read_text()
    assert f"PPid:\t{os.getpid()}\n" not in status
    await again.stop(grace=5)
    await eventually(lambda: Identity.of(again.identity.pid) is None, within=5)


async def test_a_daemon_whose_start_is_cancelled_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await process.launch("sleep", SLEEP, state=tmp_path, daemon=True)
    assert process.find("sleep", state=tmp_path) is None


async def test_a_daemon_that_cannot_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(BedError, match=r"etcd ended at once; its last words are in .*etcd\.log"):
        await process.launch("etcd", ["/nonexistent/etcd"], state=tmp_path, daemon=True)
    assert "No such file or directory" in (tmp_path / "etcd.log").read_text()


async def test_programs_inherit_only_what_was_handed_to_them(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    started = await process.launch("sleep", SLEEP, state=tmp_path, daemon=False, keep=[read])
    await eventually(lambda: Path(f"/proc/{started.identity.pid}/exe").readlink().name == "sleep", within=5)
    inherited = {int(path.name) for path in Path(f"/proc/{started.identity.pid}/fd").iterdir()}
    await started.stop(grace=5)
    os.close(read)
    os.close(write)
    assert inherited == {0, 1, 2, read}

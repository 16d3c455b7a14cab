"""A daemon in an ordinary container ends when no other container of the Pod runs any more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from interlace.pods.ending import command
from tests.waiting import eventually

DAEMON = "trap 'echo ended > $0/end; exit 0' TERM; echo up > $0/up; while :; do sleep 0.02; done"


class Processes:
    """A folder that looks like /proc of a Pod whose containers share their processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "proc"
        self.add("self", "own")
        self.add("1", "pause")
        self.add("7", "own")

    def add(self, name: str, group: str) -> None:
        (self.folder / name).mkdir(parents=True)
        (self.folder / name / "cgroup").write_text(f"0::/{group}\n")

    def remove(self, name: str) -> None:
        (self.folder / name / "cgroup").unlink()

    def add_and_be_seen(self, name: str, group: str) -> None:
        """Returns when it has been looked at."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "later").write_text(f"0::/{group}\n")
        os.mkfifo(folder / "cgroup")
        with (folder / "cgroup").open("w") as pipe:  # opens when it is opened for reading
            (folder / "later").replace(folder / "cgroup")
            pipe.write(f"0::/{group}\n")


@asynccontextmanager
async def running(processes: Processes, *daemon: str) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {**os.environ, "PROC": str(processes.folder), "PAUSE": "0.02"}
    process = await asyncio.create_subprocess_exec(*command(daemon), env=environment)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(30):
            await process.wait()


async def there(path: Path) -> None:
    async def exists() -> bool:
        return path.exists()

    await eventually(exists, within=30, what=str(path))


async def test_it_ends_once_the_others_have_run_and_are_gone(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    async with running(processes, "/bin/sh", "-c", DAEMON, str(tmp_path)) as process, asyncio.timeout(60):
        await there(tmp_path / "up")
        assert process.returncode is None
        await asyncio.to_thread(processes.add_and_be_seen, "9", "work")
        assert process.returncode is None
        processes.add("10", "work")
        processes.remove("9")
        processes.remove("10")
        assert await process.wait() == 0
    assert (tmp_path / "end").exists()


async def test_it_ends_when_no_work_has_ever_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKS", "3")
    async with running(Processes(tmp_path), "/bin/sh", "-c", DAEMON, str(tmp_path)) as process, asyncio.timeout(60):
        assert await process.wait() == 0


@pytest.mark.parametrize("code", [0, 3])
async def test_the_daemons_own_end_is_the_containers_end(tmp_path: Path, code: int) -> None:
    async with running(Processes(tmp_path), "/bin/sh", "-c", f"exit {code}") as process, asyncio.timeout(60):
        assert await process.wait() == code


async def test_a_stop_from_outside_reaches_the_daemon(tmp_path: Path) -> None:
    async with running(Processes(tmp_path), "/bin/sh", "-c", DAEMON, str(tmp_path)) as process, asyncio.timeout(60):
        await there(tmp_path / "up")
        process.terminate()
        assert await process.wait() == 0
    assert (tmp_path / "end").exists()

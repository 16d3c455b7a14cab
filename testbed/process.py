"""Processes of a control plane: started on a leash, found again by pid file, ended for certain.

Invariant: a signal is sent through a pidfd that was opened *before* the start time was compared with
the pid file, so a number that the kernel gave to somebody else meanwhile is never hit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from testbed.errors import BedError

LEASH = Path(__file__).with_name("leash.py")
KILL_LIMIT = 10.0
"""Seconds that the kernel may take to end a process after SIGKILL."""
GARBAGE = "400"
"""``GOGC`` of the Go programs: test clusters are small and short, so they trade memory for a tenth of their CPU."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A process id is reused; together with the start time (clock ticks since boot) it is not."""

    pid: int
    start: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The process ``pid`` as it runs now; ``None`` if it is gone or only waits to be reaped."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            return None
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Content of a pid file; ``None`` if it was damaged."""
        words = text.split()
        if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words) or int(words[0]) < 2:
            return None
        return cls(int(words[0]), int(words[1]))


class Process:
    """One running program. Not reusable after ``stop``."""

    def __init__(
        self, *, name: str, identity: Identity, pidfd: int, pidfile: Path, child: subprocess.Popen[bytes] | None
    ) -> None:
        self.name = name
        self.identity = identity
        self._pidfd = pidfd
        self._pidfile = pidfile
        self._child = child

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._pidfd >= 0 and Identity.of(self.identity.pid) == self.identity

    async def exited(self) -> None:
        """Wait until it ends."""
        if self._pidfd >= 0:
            await readable(self._pidfd)

    async def stop(self, *, grace: float) -> bool:
        """End it: SIGTERM, then SIGKILL after ``grace`` seconds (at once if 0). True if it had to be killed.

        Also when cancelled, nothing is left running.
        """
        if self._pidfd < 0:
            return False
        killed = grace <= 0
        try:
            if not killed:
                try:
                    self._signal(signal.SIGTERM)
                    async with asyncio.timeout(grace):
                        await self.exited()
                except TimeoutError:
                    killed = True
        finally:
            self._signal(signal.SIGKILL)
            try:
                async with asyncio.timeout(KILL_LIMIT):
                    await self.exited()
            finally:
                self._forget()
        return killed

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def _forget(self) -> None:
        if self._child is not None:
            self._child.wait()
        os.close(self._pidfd)
        self._pidfd = -1
        self._pidfile.unlink(missing_ok=True)

    def release(self) -> None:
        """Let a daemon go on without us."""
        os.close(self._pidfd)
        self._pidfd = -1


def leash(command: Sequence[str], *, pidfile: Path, owner: int) -> list[str]:
    """Arguments that start ``command``, named by its whole path, as ``leash.py`` describes."""
    return [sys.executable, "-I", "-S", str(LEASH), str(pidfile), str(owner), *command]


async def launch(name: str, command: Sequence[str], *, state: Path, daemon: bool, keep: Sequence[int] = ()) -> Process:
    """Start ``command`` with output in ``state/NAME.log`` and its identity in ``state/NAME.pid``.

    It inherits the file descriptors ``keep`` and nothing else, and dies with us unless it is a ``daemon``.
    Cancelled, it leaves nothing running.
    """
    pidfile = state / f"{name}.pid"
    with (state / f"{name}.log").open("ab") as log:
        child = subprocess.Popen(  # noqa: ASYNC220 - returns after exec; asyncio's own would kill daemons at loop close
            leash(command, pidfile=pidfile, owner=0 if daemon else os.getpid()),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=keep,
            cwd=state,
            env={"PATH": "/usr/bin:/bin", "HOME": str(state), "GOGC": GARBAGE},
        )
    pidfd = os.pidfd_open(child.pid)
    if not daemon:
        identity = Identity.of(child.pid) or Identity(child.pid, 0)
        return Process(name=name, identity=identity, pidfd=pidfd, pidfile=pidfile, child=child)
    try:
        await readable(pidfd)
    except asyncio.CancelledError:
        child.wait()  # until the daemon's pid file stands
        if (started := find(name, state=state)) is not None:
            await started.stop(grace=0)
        raise
    finally:
        os.close(pidfd)
        failed = child.wait() != 0
    process = None if failed else find(name, state=state)
    if process is None:
        pidfile.unlink(missing_ok=True)
        raise BedError(f"{name} ended at once; its last words are in {state / f'{name}.log'}")
    return process


def find(name: str, *, state: Path) -> Process | None:
    """The process that the pid file of ``name`` means; ``None``, and no pid file any more, if it does not run."""
    pidfile = state / f"{name}.pid"
    try:
        identity = Identity.parse(pidfile.read_text())
    except FileNotFoundError:
        return None
    if identity is not None:
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(identity.pid)
            if Identity.of(identity.pid) == identity:
                return Process(name=name, identity=identity, pidfd=pidfd, pidfile=pidfile, child=None)
            os.close(pidfd)
    pidfile.unlink(missing_ok=True)
    return None


async def readable(pidfd: int) -> None:
    """Wait for the end of the process behind ``pidfd``; any number may wait at once."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    own = os.dup(pidfd)

    def note() -> None:
        loop.remove_reader(own)
        if not ended.done():
            ended.set_result(None)

    loop.add_reader(own, note)
    try:
        await ended
    finally:
        loop.remove_reader(own)
        os.close(own)

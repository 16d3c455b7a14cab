"""Which agent of a node works, and how the next one takes over from it without a gap.

Whoever holds the lock file works. An agent of another Pod asks the holder, on a socket beside the lock, to hand over;
that connection ends when the lock is free, however its holder ended, and on the other side when it was taken.
Invariants: one process at a time holds the lock, and nobody else touches checkpoint and CDI specs; who handed over
does not ask again, so two agents never take the node from each other in turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from interlace.kube.log import get_logger
from interlace.node.errors import RivalDriver, StateError

PAUSE = 0.05
"""Seconds between two attempts where the lock is held and its holder's socket is not there (yet)."""
LIMIT = 5.0
"""Seconds that others have to take a lock that was released, before its last holder may take it again."""
_ASK = b"hand over\n"
log = get_logger(__name__)


class Tenure:
    """Of one agent; ``instance`` tells it from another one on the same node, empty if there is only ever one."""

    def __init__(self, home: Path, *, instance: str) -> None:
        self._lock = home / "agent.lock"
        self._socket = home / "agent.sock"
        self._instance = instance
        self._handle = -1

    def take(self) -> bool:
        """Take the lock if it is free, and say whether.

        Raises ``RivalDriver`` that names the holder's process id if it is an agent with the same instance, whose
        sockets would be the same, and ``StateError``.
        """
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"{self._lock} cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            process, _, instance = os.pread(handle, 64, 0).decode(errors="replace").strip().partition(" ")
            os.close(handle)
            if process and instance == self._instance:
                raise RivalDriver(
                    f"{self._lock} is locked by another agent of this node (process {process} in its own count); stop "
                    "that first."
                ) from None
            return False
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {self._instance}".strip().encode() + b"\n", 0)
        self._handle = handle
        return True

    async def wait(self, *, ask: bool) -> None:
        """Wait for the lock; with ``ask`` the holder is told to hand over, else it is left to end by itself."""
        taken = self.take()
        while not taken:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    writer.write(_ASK if ask else b"\n")
                    await reader.read()
                    taken = self.take()
                finally:
                    writer.close()
            if not taken:
                await asyncio.sleep(PAUSE)
                taken = self.take()

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[asyncio.Event]:
        """Work, with the lock taken; the event is set when another agent asks for it. Released at the end."""
        asked = asyncio.Event()
        guests: dict[asyncio.StreamWriter, asyncio.Event] = {}

        async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            gone = guests[writer] = asyncio.Event()
            try:
                if await reader.readline() == _ASK:
                    log.info("another agent of this node takes over")
                    asked.set()
                await reader.read()
            except (OSError, ValueError):
                pass
            finally:
                gone.set()
                del guests[writer]
                writer.close()

        try:
            server = await asyncio.start_unix_server(receive, self._socket)
        except OSError as error:
            self._release()
            raise StateError(f"{self._socket} cannot be listened on: {error.strerror}.") from error
        try:
            yield asked
        finally:
            server.close()
            self._socket.unlink(missing_ok=True)
            self._release()
            await _see_off(guests)

    def _release(self) -> None:
        os.close(self._handle)
        self._handle = -1


async def _see_off(guests: Mapping[asyncio.StreamWriter, asyncio.Event]) -> None:
    """Tell them that the lock is free, and let them have it first."""
    for writer in guests:
        with contextlib.suppress(OSError):
            writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LIMIT):
            for gone in list(guests.values()):
                await gone.wait()

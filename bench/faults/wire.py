"""A TCP relay on loopback between our components and the API server, which can be cut, frozen or held.

TLS passes through it untouched. Invariant: after the context nothing of it listens or runs; a frozen connection stays
open on both sides and carries nothing, which is what a lost route looks like.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Final, Self

_CHUNK: Final = 1 << 16


class Wire:
    """Async context manager; ``lead_to`` says where it leads and gives its own address."""

    def __init__(self) -> None:
        self.frozen = 0
        """Connections frozen so far."""
        self._upstream = ("", 0)
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, asyncio.Event] = {}
        """Writers towards components; the event is set while data passes."""
        self._refusing = False
        self._tasks: set[asyncio.Task[None]] = set()

    def lead_to(self, url: str) -> str:
        """The URL under which ``url`` is reached through the wire."""
        host, _, port = url.removeprefix("https://").partition(":")
        self._upstream = (host, int(port))
        if self._server is None:
            raise RuntimeError("the wire is not entered")
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def freeze(self) -> int:
        """Carry nothing more on the connections of this moment, and keep them open; new ones work. Their number."""
        chosen = [passing for passing in self._open.values() if passing.is_set()]
        for passing in chosen:
            passing.clear()
        self.frozen += len(chosen)
        return len(chosen)

    def cut(self) -> int:
        """Reset the connections of this moment; their number."""
        chosen = list(self._open)
        for writer in chosen:
            writer.transport.abort()
        return len(chosen)

    def refuse(self, *, on: bool) -> None:
        """Whether new connections are reset at once."""
        self._refusing = on

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        passing = asyncio.Event()
        passing.set()
        self._open[writer] = passing
        try:
            if self._refusing:
                return
            with contextlib.suppress(OSError):
                there, back = await asyncio.open_connection(*self._upstream)
                try:
                    async with asyncio.TaskGroup() as group:
                        pumps = [
                            group.create_task(_pump(reader, back, passing)),
                            group.create_task(_pump(there, writer, passing)),
                        ]
                        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                        for pump in pumps:
                            pump.cancel()
                finally:
                    back.transport.abort()
        except asyncio.CancelledError:  # the wire ends; streams of Python 3.11 would log it as an error
            return
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()
            if task is not None:
                self._tasks.discard(task)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, passing: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(_CHUNK):
            await passing.wait()
            target.write(data)
            await target.drain()

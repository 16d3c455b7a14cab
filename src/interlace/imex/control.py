"""The agent's end of the socket to imex-host.

`HostLink` remembers the one thing that is wanted and sends it on every connection, so a restart of
the host loses nothing. Invariant: ``state`` is what the host said last on the connection
that is open now, and None whenever there is none. All calls are made on the loop that runs `run`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

from interlace.imex.order import MAX_LINE, Order, ProtocolError, Refusal, Release, State, decode, encode
from interlace.kube.log import get_logger

CONNECT_TIMEOUT = 5.0
SEND_TIMEOUT = 5.0
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0

Handler = Callable[[State | None], None]

log = get_logger(__name__)


class HostLink:
    """Connection to the imex-host of this node, kept up by `run`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wanted: Order | Release | None = None
        self._dirty = asyncio.Event()
        self._state: State | None = None
        self._refusal: Refusal | None = None
        self._handlers: list[Handler] = []

    @property
    def state(self) -> State | None:
        """What the host said last; None while it cannot be reached."""
        return self._state

    @property
    def refusal(self) -> Refusal | None:
        """The host's answer if it refused what was sent last; None after the next send or connection."""
        return self._refusal

    def order(self, order: Order) -> None:
        """Want this order, now and after each reconnection. Wanting the same again sends nothing."""
        self._want(order)

    def release(self, domain: str) -> None:
        """Want IMEX stopped if it serves ``domain``; replaces the wanted order."""
        self._want(Release(domain=domain))

    def on_state(self, handler: Handler) -> None:
        """Call ``handler`` with each new state, in order, with the same again at a refusal, and with None when the
        host is lost; it must not block.
        """
        self._handlers.append(handler)

    async def run(self) -> None:
        """Keep the connection until cancelled."""
        pause = FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT):
                    reader, writer = await asyncio.open_unix_connection(str(self._path), limit=MAX_LINE)
            except (OSError, TimeoutError) as error:
                log.debug("imex-host unreachable", path=str(self._path), error=str(error))
            else:
                try:
                    heard = await self._talk(reader, writer)
                finally:
                    writer.close()
                    self._changed(None)
                if heard:
                    pause = FIRST_PAUSE
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_PAUSE)

    def _want(self, wanted: Order | Release) -> None:
        if wanted != self._wanted:
            self._wanted = wanted
            self._dirty.set()

    def _changed(self, state: State | None) -> None:
        if state is None:
            self._refusal = None
        if state != self._state:
            self._state = state
            self._tell()

    def _tell(self) -> None:
        for handler in self._handlers:
            handler(self._state)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send and receive until the connection ends; True if the host said anything."""
        if self._wanted is not None:
            self._dirty.set()
        async with asyncio.TaskGroup() as group:
            sender = group.create_task(self._send(writer))
            try:
                return await self._receive(reader)
            finally:
                sender.cancel()

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            if self._wanted is None:
                continue
            self._refusal = None
            try:
                writer.write(encode(self._wanted))
                async with asyncio.timeout(SEND_TIMEOUT):
                    await writer.drain()
            except (OSError, TimeoutError) as error:
                log.warning("imex-host does not take an order", path=str(self._path), error=str(error))
                writer.transport.abort()
                return

    async def _receive(self, reader: asyncio.StreamReader) -> bool:
        heard = False
        while True:
            try:
                line = await reader.readline()
            except (OSError, ValueError) as error:
                log.warning("connection to imex-host lost", path=str(self._path), error=str(error))
                return heard
            if not line.endswith(b"\n"):
                return heard
            heard = True
            try:
                message = decode(line)
            except ProtocolError as error:
                log.warning("imex-host sent no message", path=str(self._path), error=str(error))
                continue
            if isinstance(message, State):
                self._changed(message)
            elif isinstance(message, Refusal):
                log.error("imex-host refused", path=str(self._path), message=message.message)
                self._refusal = message
                self._tell()

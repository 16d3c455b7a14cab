"""Health and metrics over HTTP, in the smallest form that kubelet and Prometheus accept.

Invariants: answers come from memory, never from the network, so that a probe fails only for a reason
that the component itself gives; one short request, one answer, connection closed; nothing that a
client sends is kept. On asyncio alone: agents and hosts idle on every node, and a web framework takes
2 MB of an agent and half of an imex-host.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, Self

REQUEST_TIMEOUT: Final = 5.0
LONGEST_REQUEST: Final = 8192
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_STATUS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}

Check = Callable[[], str | None]
"""None for yes, else one sentence that says why not."""


class Serving:
    """``/healthz``, ``/readyz`` (503 and the reason as text) and ``/metrics`` while the context is open.

    ``host`` "" listens on all addresses; ``port`` 0 takes a free one, and the attribute ``port`` tells it.
    ``metrics`` returns Prometheus' text. Raises ``OSError`` if the address is taken.
    """

    def __init__(self, *, host: str, port: int, ready: Check, metrics: Callable[[], str | bytes]) -> None:
        self._host = host
        self.port = port
        self._ready = ready
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, self._host or None, self.port, limit=LONGEST_REQUEST)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT):
                    status, body = await self._respond(reader)
                    data = body.encode() if isinstance(body, str) else body
                    head = (
                        f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: {_TEXT}\r\n"
                        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
                    )
                    writer.write(head.encode() + data)
                    await writer.drain()
            finally:
                writer.close()

    async def _respond(self, reader: asyncio.StreamReader) -> tuple[int, str | bytes]:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return 400, "no HTTP request\n"
        words = request.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3:
            return 400, "no HTTP request\n"
        if words[0] != b"GET":
            return 405, "only GET\n"
        match words[1].partition(b"?")[0]:
            case b"/healthz":
                return 200, "ok\n"
            case b"/readyz":
                why = self._ready()
                return (200, "ok\n") if why is None else (503, why + "\n")
            case b"/metrics":
                return 200, self._metrics()
            case _:
                return 404, "one of /healthz /readyz /metrics\n"

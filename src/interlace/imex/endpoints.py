"""/healthz, /readyz and /metrics of imex-host, in the smallest form that a kubelet and Prometheus accept.

imex-host idles on every fabric node within a budget of 30 MB; the ordinary server of the other
components would take half of that for itself. Invariant: one short request, one answer, connection
closed; nothing that a client sends is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Self

REQUEST_TIMEOUT = 5.0
LONGEST_REQUEST = 8192
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_STATUS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


def render(samples: list[tuple[str, str, str, dict[str, str], float]]) -> str:
    """Prometheus text of ``(name, type, help, labels, value)``; samples of one name stand together."""
    lines: list[str] = []
    last = ""
    for name, kind, text, labels, value in samples:
        if name != last:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            last = name
        inner = ",".join(f'{key}="{_escape(word)}"' for key, word in labels.items())
        lines.append(f"{name}{{{inner}}} {value:g}" if inner else f"{name} {value:g}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Endpoints:
    """An async context manager that listens on ``host:port``; ``port`` 0 takes a free one, see `port`.

    ``ready`` returns why the host is not ready, or None; ``metrics`` the text of /metrics.
    """

    def __init__(self, *, host: str, port: int, ready: Callable[[], str | None], metrics: Callable[[], str]) -> None:
        self._host = host
        self._want_port = port
        self._ready = ready
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._server is None:
            return 0
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._answer, self._host or None, self._want_port, limit=LONGEST_REQUEST
        )
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
                    data = body.encode()
                    head = (
                        f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: {_TEXT}\r\n"
                        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
                    )
                    writer.write(head.encode() + data)
                    await writer.drain()
            finally:
                writer.close()

    async def _respond(self, reader: asyncio.StreamReader) -> tuple[int, str]:
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

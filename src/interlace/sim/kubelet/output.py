"""Pods that end by themselves, and what they printed: the kubelet's port that an API server reads logs from.

A hollow node has the port only if something runs on it that prints. Invariant: a log is kept as long as its Pod's
object is on the node, and read the way kubelet lets it be read (follow, times, tail, limit).
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aiohttp import web

from interlace.sim.kubelet.podobject import BoundPod

if TYPE_CHECKING:
    from interlace.sim.kubelet.node import HollowNode


class Finite(Protocol):
    """Runs programs that end."""

    def takes(self, pod: BoundPod) -> bool:
        """Whether it runs the pod's program; others are only recorded."""
        ...

    async def run(self, pod: BoundPod, *, write: Callable[[str], None]) -> int:
        """Run it until it ends or is cancelled; ``write`` gets its lines. Returns its exit code."""
        ...


class Output:
    """What one pod printed."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str]] = []
        self._more = asyncio.Event()
        self._over = False

    def write(self, line: str) -> None:
        """Add a line, without its newline."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        self._lines.append((now, line))
        self._more.set()

    def close(self) -> None:
        """Nothing more comes."""
        self._over = True
        self._more.set()

    async def read(self, *, follow: bool, times: bool, tail: int | None) -> AsyncGenerator[bytes, None]:
        """Lines from the first (or of the last ``tail`` ones); with ``follow`` also those to come."""
        at = max(0, len(self._lines) - tail) if tail is not None else 0
        while True:
            self._more.clear()
            new, at = self._lines[at:], len(self._lines)
            if new:
                yield "".join(f"{stamp} {line}\n" if times else f"{line}\n" for stamp, line in new).encode()
            if not follow or self._over:
                return
            await self._more.wait()


@asynccontextmanager
async def serve_logs(node: HollowNode) -> AsyncIterator[int]:
    """Serve ``/containerLogs`` of a node over TLS on a free port of its own address; yields the port.

    As an API server that was given no authority for kubelets expects it: any certificate will do.
    """
    from interlace.sim.apiserver.certificates import make  # noqa: PLC0415  cryptography takes long to import

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(node, request)

    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        with tempfile.TemporaryDirectory(prefix="interlace-") as folder:
            context, _ = await asyncio.to_thread(make, Path(folder))
        await web.TCPSite(runner, node.tray.address, 0, ssl_context=context).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def _answer(node: HollowNode, request: web.Request) -> web.StreamResponse:
    names, query = request.match_info, request.query
    worker = next(
        (
            worker
            for worker in node.workers.values()
            if (worker.pod.metadata.namespace, worker.pod.metadata.name) == (names["namespace"], names["pod"])
        ),
        None,
    )
    if worker is None:
        return web.Response(status=404, text=f'pod "{names["pod"]}" not found\n')
    left = int(query["limitBytes"]) if "limitBytes" in query else None
    tail = int(query["tailLines"]) if "tailLines" in query else None
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):  # the reader went away
        parts = worker.output.read(
            follow=query.get("follow") == "true", times=query.get("timestamps") == "true", tail=tail
        )
        async with contextlib.aclosing(parts) as lines:
            async for part in lines:
                await response.write(part if left is None else part[:left])
                left = None if left is None else left - len(part)
                if left is not None and left <= 0:
                    break
        await response.write_eof()
    return response

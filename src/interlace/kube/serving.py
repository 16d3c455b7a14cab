"""Health and metrics over HTTP: what kubelet and Prometheus ask each component.

Invariant: answers come from memory, never from the network, so that a probe fails only for a
reason that the component itself gives.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Check = Callable[[], str | None]
"""None for yes, else one sentence that says why not."""


def _alive() -> str | None:
    return None


class Serving:
    """``/healthz``, ``/readyz`` (503 and the reason as text) and ``/metrics`` while the context is open.

    ``port`` 0 takes a free one; the attribute ``port`` tells it. Raises ``OSError`` if the address is taken.
    """

    def __init__(
        self, *, host: str, port: int, registry: CollectorRegistry, ready: Check, live: Check = _alive
    ) -> None:
        self._host = host
        self.port = port
        self._registry = registry
        app = web.Application()
        app.router.add_get("/healthz", _check(live))
        app.router.add_get("/readyz", _check(ready))
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        try:
            site = web.TCPSite(self._runner, self._host, self.port)
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:  # noqa: ARG002 - aiohttp's signature
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _check(check: Check) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:  # noqa: ARG001 - aiohttp's signature
        reason = check()
        return web.Response(text="ok\n") if reason is None else web.Response(status=503, text=reason + "\n")

    return answer

"""The webhook process: TLS for API servers, health and metrics for the cluster.

Invariant: an answer never depends on the other replica; a request that cannot be decided is answered with 500, so
that the ``failurePolicy`` of the webhook decides, and never with an allowance.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from aiohttp import web

from interlace.api.computedomain import ComputeDomain
from interlace.api.webhook import CONFIGURATION, GUARD_CONFIGURATION, SECRET
from interlace.fabric.family import families
from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.log import get_logger
from interlace.kube.meters import Registry, counter, gauge, histogram
from interlace.kube.metrics import Metrics as RuntimeMetrics
from interlace.kube.serving import Serving
from interlace.pods import domains
from interlace.pods.admission import Decide, routes
from interlace.pods.injecting import Injecting
from interlace.pods.review import ReviewError, decode, encode
from interlace.pods.settings import WebhookSettings
from interlace.pods.trust import Trust, TrustSettings

COMPONENT: Final = "interlace-webhook"
DEADLINE: Final = 4.0
"""Seconds for one decision; API servers wait 5."""
LARGEST_BODY: Final = 8 * 1024 * 1024
"""Bytes; a request holds an object and the one before it, each at most 1.5 MB in etcd."""
LAST_CALLS: Final = 5.0
"""Seconds that running requests get when the process is told to end."""

_log = get_logger(__name__)


class Ports(NamedTuple):
    """Where it listens."""

    admission: int
    http: int


class Metrics:
    """What Prometheus is told about admission."""

    def __init__(self, registry: Registry) -> None:
        self.decisions = counter(
            "interlace_admission", "Requests by path and verdict", ["path", "verdict"], registry=registry
        )
        self.seconds = histogram(
            "interlace_admission_seconds",
            "Time from the request read to the answer ready",
            ["path"],
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.1, 1.0),
            registry=registry,
        )
        self.expiry = gauge(
            "interlace_webhook_certificate_expiry_seconds",
            "When the serving certificate expires, seconds since the epoch",
            registry=registry,
        )
        self.handshakes = gauge("interlace_webhook_handshakes", "TLS handshakes since the start", registry=registry)


async def serve(
    settings: WebhookSettings,
    *,
    config: Config,
    on_listening: Callable[[Ports], None] | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Run until cancelled; ``on_listening`` is told the ports once API servers can connect."""
    families()  # read now, not while the first Pod waits
    registry = Registry()
    runtime, metrics = RuntimeMetrics(registry), Metrics(registry)
    async with Client(config, user_agent=COMPONENT, qps=settings.qps, burst=settings.burst, metrics=runtime) as client:
        trust = Trust(
            client,
            settings=TrustSettings(
                namespace=settings.namespace,
                secret=SECRET,
                mutating=(CONFIGURATION,),
                validating=(CONFIGURATION, GUARD_CONFIGURATION),
                names=settings.certificate_names,
                life=settings.life,
                grace=settings.grace,
            ),
            metrics=runtime,
            clock=clock,
        )
        injecting = Injecting(client, settings=settings, metrics=runtime)

        def ready() -> str | None:
            return trust.ready() or injecting.ready()

        def exposed() -> str:
            if trust.expires is not None:
                metrics.expiry.labels().set(trust.expires.timestamp())
            metrics.handshakes.labels().set(trust.handshakes)
            return registry.render()

        async with (
            Serving(host=settings.http_host, port=settings.http_port, ready=ready, metrics=exposed) as serving,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(trust.run())
            group.create_task(injecting.run())
            await trust.loaded()
            await injecting.synced()

            async def find(uid: str, namespace: str) -> ComputeDomain | None:
                return await domains.find(client, uid=uid, namespace=namespace)

            decisions = routes(injecting=injecting, find=find, mode=settings.guard, allowed=settings.allowed)
            server = Server(decisions, metrics=metrics)
            runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=LAST_CALLS)
            await runner.setup()
            try:
                await web.TCPSite(runner, settings.host, settings.port, ssl_context=trust.context).start()
                port = runner.addresses[0][1]
                _log.info("listening", port=port, guard=settings.guard)
                if on_listening is not None:
                    on_listening(Ports(admission=port, http=serving.port))
                await asyncio.Event().wait()
            finally:
                await runner.cleanup()


class Server:
    """AdmissionReviews over HTTP; ``deadline`` seconds for one decision."""

    def __init__(self, decisions: Mapping[str, Decide], *, metrics: Metrics, deadline: float = DEADLINE) -> None:
        self._decisions = decisions
        self._metrics = metrics
        self._deadline = deadline

    def app(self) -> web.Application:
        """For aiohttp."""
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post("/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.path
        decide = self._decisions.get(path)
        if decide is None:
            raise web.HTTPNotFound(text=f"one of {', '.join(self._decisions)}\n")
        body = await request.read()
        began, worked = time.perf_counter(), time.thread_time()
        try:
            asked = decode(body)
            async with asyncio.timeout(self._deadline):
                verdict = await decide(asked)
            answer = encode(asked.uid, verdict)
        except ReviewError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        except Exception as error:
            self._metrics.decisions.labels(path, "failed").inc()
            _log.exception("a request could not be decided", path=path)
            raise web.HTTPInternalServerError(text=f"{type(error).__name__}: {error}\n") from error
        taken = time.perf_counter() - began
        self._metrics.seconds.labels(path).observe(taken)
        cpu = time.thread_time() - worked
        _log.debug("decided", path=path, milliseconds=round(1000 * taken, 3), cpu=round(1000 * cpu, 3))
        self._metrics.decisions.labels(path, "refused" if verdict.refused else "allowed").inc()
        if verdict.refused:
            _log.info("refused", path=path, namespace=asked.namespace, name=asked.name, why=verdict.refused)
        return web.Response(body=answer, content_type="application/json")

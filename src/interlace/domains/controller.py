"""The controller process: one leader watches, decides and writes; the others stand by.

Caches belong to a term of leadership: they are filled after the Lease was taken, so they hold all
that the leader before has written. When the Lease is lost everything of the term is cancelled and
the process ends; its Deployment starts it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from interlace.api.core import ObjectReference, Pod
from interlace.domains.metrics import Metrics
from interlace.domains.reconciler import Reconciler
from interlace.domains.replacement import Replacement
from interlace.domains.retry import RETRY_ANNOTATION
from interlace.domains.settings import ControllerSettings
from interlace.domains.sources import Sources
from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.election import Election
from interlace.kube.errors import Conflict, Invalid, NotFound
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger
from interlace.kube.meters import Registry
from interlace.kube.metrics import Metrics as RuntimeMetrics
from interlace.kube.queue import WorkQueue, work
from interlace.kube.serving import Serving

COMPONENT = "interlace-controller"
SYNC_LIMIT = 120.0
"""Seconds for the first lists of a term."""

_log = get_logger(__name__)


class _Target(msgspec.Struct, frozen=True):
    """A Pod to touch, hashable as a key of the queue."""

    namespace: str
    name: str
    uid: str


async def serve(
    settings: ControllerSettings, *, config: Config, on_listening: Callable[[int], None] | None = None
) -> None:
    """Run until cancelled; ``on_listening`` is told the port. Raises ``LeadershipLost``, or what serving raises."""
    registry = Registry()
    runtime, metrics = RuntimeMetrics(registry), Metrics(registry)
    state = _State()
    async with (
        Client(config, user_agent=COMPONENT, qps=settings.qps, burst=settings.burst, metrics=runtime) as client,
        Serving(
            host=settings.http_host,
            port=settings.http_port,
            ready=state.ready,
            metrics=registry.render,
        ) as serving,
        asyncio.TaskGroup() as group,
    ):
        if on_listening is not None:
            on_listening(serving.port)
        recorder = Recorder(client, component=COMPONENT, metrics=runtime)
        group.create_task(recorder.run())
        election = Election(
            client,
            namespace=settings.namespace,
            name=settings.lease_name,
            identity=settings.identity,
            duration=settings.lease_duration,
            renew_deadline=settings.lease_renew_deadline,
            retry=settings.lease_retry_period,
        )

        async def term() -> None:
            await _lead(client, settings=settings, recorder=recorder, metrics=metrics, runtime=runtime, state=state)

        group.create_task(election.lead(term))


class _State:
    """What /readyz says: a standby is ready, a leader once its caches are filled."""

    def __init__(self) -> None:
        self.filling = False

    def ready(self) -> str | None:
        return "the caches of the new leader are not filled yet" if self.filling else None


async def _lead(
    client: Client,
    *,
    settings: ControllerSettings,
    recorder: Recorder,
    metrics: Metrics,
    runtime: RuntimeMetrics,
    state: _State,
) -> None:
    queue: WorkQueue[str] = WorkQueue(name="domains", metrics=runtime)
    touches: WorkQueue[_Target] = WorkQueue(name="touches", metrics=runtime)

    def touch(pod: ObjectReference) -> None:
        touches.add(_Target(namespace=pod.namespace, name=pod.name, uid=pod.uid))

    sources = Sources(client, namespace=settings.namespace, changed=queue.add, touch=touch, metrics=runtime)
    reconciler = Reconciler(client, sources=sources, settings=settings, recorder=recorder, metrics=metrics, touch=touch)

    replacement = Replacement(
        client, namespace=settings.namespace, sources=sources, quiet=settings.host_quiet, metrics=runtime
    )

    async def touch_pod(target: _Target) -> None:
        patch = {"metadata": {"uid": target.uid, "annotations": {RETRY_ANNOTATION: datetime.now(UTC).isoformat()}}}
        try:
            await client.merge_patch(Pod, target.name, patch, namespace=target.namespace)
        except (NotFound, Conflict, Invalid):
            return  # It is gone, or there is another Pod of that name (a uid is immutable): nothing waits any more.
        metrics.pods_touched.inc()

    async with asyncio.TaskGroup() as group:
        state.filling = True
        try:
            group.create_task(sources.run())
            async with asyncio.timeout(SYNC_LIMIT):
                await sources.synced()
        finally:
            state.filling = False
        metrics.observe(domains=sources.domains.items, waiting=reconciler.waiting)
        for uid in sources.known():
            queue.add(uid)
        _log.info("leading", identity=settings.identity, domains=len(queue))
        group.create_task(work(queue, reconciler.reconcile, workers=settings.workers))
        group.create_task(work(touches, touch_pod, workers=1))
        group.create_task(replacement.run())

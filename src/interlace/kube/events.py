"""Events about objects: what ``kubectl describe`` shows at its end.

Invariant: recording never waits and never fails for the caller. Equal events (object, type, reason,
message) are one Event with a count; memory and the number of writes are bounded, at the cost of
events that say nothing new.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from interlace.api.core import Event, ObjectReference
from interlace.kube.bucket import TokenBucket
from interlace.kube.client import Client
from interlace.kube.errors import KubeError, NotFound, ServerError, TooManyRequests, Unreachable
from interlace.kube.log import get_logger
from interlace.kube.metrics import Metrics
from interlace.kube.queue import WorkQueue, work

log = get_logger(__name__)

BURST = 25
"""Writes about one object at once; afterwards one each ``REFILL`` seconds (as client-go)."""
REFILL = 300.0
GATHER = 10.0
"""Seconds that repetitions of an event are gathered before its count is written."""
REMEMBERED = 2048
"""Events whose count can still be raised; the ones not seen for longest are forgotten first."""
WAITING = 1000
"""Events that may wait to be written; more are dropped."""
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class _Key:
    about: ObjectReference
    reason: str
    message: str
    warning: bool


@dataclass(slots=True)
class _Waiting:
    count: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class _Written:
    name: str
    count: int


class Recorder:
    """Writes Events of the core group. ``component`` and ``host`` say who reports."""

    def __init__(
        self,
        client: Client,
        *,
        component: str,
        host: str = "",
        namespace_for_cluster_scoped: str = "default",
        metrics: Metrics | None = None,
    ) -> None:
        self._client = client
        self._component = component
        self._host = host
        self._default_namespace = namespace_for_cluster_scoped
        self._metrics = metrics
        self._queue: WorkQueue[_Key] = WorkQueue(name="events", base=1.0, cap=30.0, metrics=metrics)
        self._waiting: dict[_Key, _Waiting] = {}
        self._written: OrderedDict[_Key, _Written] = OrderedDict()
        self._buckets: OrderedDict[ObjectReference, TokenBucket] = OrderedDict()

    def event(self, about: ObjectReference, *, reason: str, message: str, warning: bool = False) -> None:
        """Say something about an object. ``reason`` is CamelCase, ``message`` at most 1024 characters long.

        Returns at once; call it on the event loop. The first of its kind is written at once,
        repetitions are gathered for a while.
        """
        key = _Key(about, reason, message if len(message) <= 1024 else message[:1023] + "…", warning)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.count += 1
            waiting.last = now
            return
        if len(self._waiting) >= WAITING:
            self._drop("too many waiting", key)
            return
        self._waiting[key] = _Waiting(1, now, now)
        if key in self._written:
            self._queue.add_after(key, GATHER)
        else:
            self._queue.add(key)

    async def run(self) -> None:
        """Write what was recorded, until cancelled; what still waits then is lost."""
        await work(self._queue, self._write, workers=2)

    async def _write(self, key: _Key) -> None:
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        if self._queue.failures(key) == 0 and not self._bucket(key.about).try_take():
            self._waiting.pop(key)
            self._drop("burst limit", key)
            return
        count = waiting.count
        try:
            await self._send(key, waiting, count)
        except (Unreachable, TooManyRequests, ServerError) as error:
            if self._queue.failures(key) + 1 < ATTEMPTS:
                raise
            self._waiting.pop(key)
            self._drop(str(error), key)
        except KubeError as error:
            self._waiting.pop(key)
            self._drop(str(error), key)
        else:
            waiting.count -= count
            if waiting.count:  # repeated while it was written
                waiting.first = waiting.last
                self._queue.add_after(key, GATHER)
            else:
                self._waiting.pop(key)

    async def _send(self, key: _Key, waiting: _Waiting, count: int) -> None:
        namespace = key.about.namespace or self._default_namespace
        written = self._written.get(key)
        if written is not None:
            total = written.count + count
            patch = {"count": total, "lastTimestamp": waiting.last, "message": key.message}
            try:
                await self._client.merge_patch(Event, written.name, patch, namespace=namespace)
            except NotFound:  # events expire after an hour: begin a new one
                del self._written[key]
            else:
                self._remember(key, _Written(written.name, total))
                return
        body = self._body(key, waiting, count, namespace)
        await self._client.create(Event, body, namespace=namespace)
        self._remember(key, _Written(body["metadata"]["name"], count))

    def _body(self, key: _Key, waiting: _Waiting, count: int, namespace: str) -> dict[str, Any]:
        return {
            "metadata": {"name": f"{key.about.name[:230]}.{secrets.token_hex(8)}", "namespace": namespace},
            "involvedObject": key.about,
            "reason": key.reason,
            "message": key.message,
            "type": "Warning" if key.warning else "Normal",
            "count": count,
            "firstTimestamp": waiting.first,
            "lastTimestamp": waiting.last,
            "source": {"component": self._component, **({"host": self._host} if self._host else {})},
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }

    def _remember(self, key: _Key, written: _Written) -> None:
        self._written[key] = written
        self._written.move_to_end(key)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    def _bucket(self, about: ObjectReference) -> TokenBucket:
        bucket = self._buckets.get(about)
        if bucket is None:
            if len(self._buckets) >= REMEMBERED:
                self._buckets.popitem(last=False)
            bucket = self._buckets[about] = TokenBucket(rate=1 / REFILL, burst=BURST)
        self._buckets.move_to_end(about)
        return bucket

    def _drop(self, why: str, key: _Key) -> None:
        if self._metrics is not None:
            self._metrics.events_dropped.inc()
        about = f"{key.about.kind} {key.about.namespace}/{key.about.name}"
        log.warning("event dropped", about=about, reason=key.reason, message=key.message, why=why)

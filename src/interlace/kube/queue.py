"""Keys that wait for work, and the workers.

Invariant: a key is worked by one worker at a time; a key added while it waits is worked once,
one added while it is worked is worked once again afterwards; no added key is ever lost.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from interlace.kube.backoff import backoff
from interlace.kube.errors import ApiError, Conflict, KubeError
from interlace.kube.log import get_logger
from interlace.kube.metrics import Metrics

K = TypeVar("K", bound=Hashable)

log = get_logger(__name__)

LATE_SHARE = 4
"""Keys added by a timer wait behind fresh ones, but every fourth one taken is of them."""


class WorkQueue(Generic[K]):
    """``base`` and ``cap`` bound the back-off of a failing key, in seconds."""

    def __init__(self, *, name: str = "", base: float = 0.1, cap: float = 60.0, metrics: Metrics | None = None) -> None:
        self.name = name
        self._base = base
        self._cap = cap
        self._metrics = metrics
        # Ready keys with the time of their addition; a key is in at most one of the two.
        self._fresh: OrderedDict[K, float] = OrderedDict()
        self._late: OrderedDict[K, float] = OrderedDict()
        self._ready = asyncio.Semaphore(0)
        self._taken = 0
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._serial = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        """Keys that wait for a worker now."""
        return len(self._fresh) + len(self._late)

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing is worked on (delayed keys apart)."""
        return not self._fresh and not self._late and not self._working

    def add(self, key: K) -> None:
        """Work on ``key`` soon."""
        if key in self._working:
            self._again.add(key)
        elif key in self._late:  # asked for afresh: no longer behind the others
            self._fresh[key] = self._late.pop(key)
        elif key not in self._fresh:
            self._make_ready(self._fresh, key)

    def add_after(self, key: K, seconds: float) -> None:
        """Work on ``key`` in ``seconds``; the earliest of several wins, and an ``add`` does not revoke it."""
        if seconds <= 0:
            self.add(key)
            return
        when = asyncio.get_running_loop().time() + seconds
        if when < self._due.get(key, float("inf")):
            self._due[key] = when
            self._serial += 1
            heapq.heappush(self._timers, (when, self._serial, key))
            self._set_alarm()

    async def get(self) -> K:
        """Take a key; the caller owes a ``done`` for it. Cancelling a waiting ``get`` loses nothing."""
        await self._ready.acquire()
        self._taken += 1
        late = self._late and (not self._fresh or self._taken % LATE_SHARE == 0)
        key, since = (self._late if late else self._fresh).popitem(last=False)
        self._working.add(key)
        if self._metrics is not None:
            self._metrics.latency.labels(self.name).observe(asyncio.get_running_loop().time() - since)
            self._metrics.depth.labels(self.name).set(len(self))
        return key

    def done(self, key: K) -> None:
        """The work on ``key`` has ended, well or not."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self._make_ready(self._fresh, key)

    def retry(self, key: K, *, at_least: float = 0.0) -> None:
        """Work on ``key`` again after its back-off, which doubles with each ``retry`` until ``forget``.

        ``at_least`` makes it longer, never longer than the cap: a proxy may name hours.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        if self._metrics is not None:
            self._metrics.retries.labels(self.name).inc()
        self.add_after(key, max(min(at_least, self._cap), backoff(failures, base=self._base, cap=self._cap)))

    def forget(self, key: K) -> None:
        """The work on ``key`` went well: its next failure starts with the shortest back-off."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often ``key`` was put back since it last went well."""
        return self._failures.get(key, 0)

    def observe_work(self, seconds: float) -> None:
        """Count the time that a worker spent on a key."""
        if self._metrics is not None:
            self._metrics.work.labels(self.name).observe(seconds)

    def _make_ready(self, lane: OrderedDict[K, float], key: K) -> None:
        lane[key] = asyncio.get_running_loop().time()
        self._ready.release()
        if self._metrics is not None:
            self._metrics.depth.labels(self.name).set(len(self))

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        # Entries that an earlier time of the same key replaced are dropped here.
        while self._timers and self._due.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        if self._timers:
            self._alarm = asyncio.get_running_loop().call_at(self._timers[0][0], self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now = asyncio.get_running_loop().time()
        while self._timers and self._timers[0][0] <= now:
            when, _, key = heapq.heappop(self._timers)
            if self._due.get(key) != when:
                continue
            del self._due[key]
            if key in self._working:
                self._again.add(key)
            elif key not in self._fresh and key not in self._late:
                self._make_ready(self._late, key)
        self._set_alarm()


async def work(
    queue: WorkQueue[K],
    reconcile: Callable[[K], Awaitable[float | None]],
    *,
    workers: int,
    limit: float = 120.0,
) -> None:
    """Call ``reconcile`` for each key with so many workers, until cancelled.

    A number returned means "again in so many seconds". An exception, or more than ``limit``
    seconds of work, puts the key back with back-off (the server's Retry-After within its cap) and is logged.
    """
    if workers < 1:
        raise ValueError(f"a queue needs at least 1 worker, not {workers}")
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(_worker(queue, reconcile, limit))


async def _worker(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[float | None]], limit: float) -> None:
    loop = asyncio.get_running_loop()
    while True:
        key = await queue.get()
        began = loop.time()
        try:
            async with asyncio.timeout(limit):
                again = await reconcile(key)
        except Exception as error:  # noqa: BLE001 - whatever failed, the key is tried again
            wait = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
            queue.retry(key, at_least=wait)
            _log_failure(queue.name, key, queue.failures(key), error)
        else:
            queue.forget(key)
            if again is not None:
                queue.add_after(key, again)
        finally:
            queue.done(key)
            queue.observe_work(loop.time() - began)


def _log_failure(queue: str, key: Hashable, failures: int, error: Exception) -> None:
    bound = log.bind(queue=queue, key=str(key), failures=failures)
    if isinstance(error, Conflict):
        bound.info("conflict, will try again", why=str(error))
    elif isinstance(error, KubeError | TimeoutError):
        bound.warning("failed, will try again", why=str(error) or type(error).__name__)
    else:
        bound.error("failed, will try again", exc_info=error)

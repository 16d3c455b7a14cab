"""A live copy of a part of the cluster: list once, watch ever after, tell every change.

Invariant: whatever the wire does (breaks, falls silent, expires a version, refuses for a while),
the cache comes to equal the server again, and the changes told so far, in order, lead from
nothing to the cache. A deletion that happened while nobody watched is told after the next list.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

from interlace.api.meta import Object
from interlace.kube.backoff import backoff
from interlace.kube.client import Client
from interlace.kube.codec import WatchEvent
from interlace.kube.errors import BadRequest, Expired, Invalid, KubeError, Unreachable
from interlace.kube.log import get_logger
from interlace.kube.metrics import Metrics
from interlace.kube.store import Change, IndexFunction, Key, Store, key_of

T = TypeVar("T", bound=Object)

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How an informer spaces its attempts, in seconds."""

    base: float = 0.2
    """Wait after the first failure; doubles with each further one."""
    cap: float = 30.0
    spread: float = 1.0
    """A list after an expired version is delayed by a random part of this: all watchers lose it together."""
    steady: float = 5.0
    """A watch that stood as long ends a series of brief ones."""
    silence: float = 10.0
    """A server that pauses for as long within the initial events does not know them: list by pages."""
    watch: float = 2400.0
    """Shortest time asked for a watch; the longest is twice that. Watches of a thousand agents that end by themselves
    are most of what a cluster at rest is asked; those that break are found by their silence, long before that."""


class _NoInitialEvents(KubeError):
    """The server does not stream initial events (WatchList)."""


class Informer(Generic[T]):
    """A cache of one kind, restricted by namespace and selectors, with indexes.

    Objects in the cache are shared: never change one. Reading never waits. Handlers run in the
    informer's own step, in order, when the cache already shows the change; one that raises is
    logged and does not stop the others.
    """

    def __init__(
        self,
        client: Client,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        metadata_only: bool = False,
        pace: Pace | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._client = client
        self._kind = kind
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._metadata_only = metadata_only
        self._pace = pace or Pace()
        self._metrics = metrics
        self._store: Store[T] = Store(indexes or {})
        self._handlers: list[Callable[[T | None, T | None], None]] = []
        self._synced = asyncio.Event()
        self._version = ""
        self._stale = True
        self._by_stream = True
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._running = False
        self._opened = False
        self.problem: str | None = "not started"
        """Why the cache may be behind the server, for readiness; None while it follows."""

    def on_change(self, handler: Callable[[T | None, T | None], None]) -> None:
        """Call ``handler(old, new)`` for every change from now on, and at once for what is here already.

        An addition has no old, a deletion no new; the same name with another uid is both.
        """
        self._handlers.append(handler)
        for obj in self._store.items():
            self._tell_one(handler, (None, obj))

    async def run(self) -> None:
        """Keep the cache current until cancelled; it stays readable afterwards. Once at a time."""
        if self._running:
            raise RuntimeError(f"the informer of {self._name} runs already")
        self._running = True
        try:
            await self._run()
        finally:
            self._running = False
            self.problem = "stopped"

    async def synced(self) -> None:
        """Wait for the first full list, for ever if need be."""
        await self._synced.wait()

    async def reached(self, resource_version: str, *, timeout: float = 5.0) -> None:
        """Wait until the cache is at least as new as ``resource_version``, the answer to an own write.

        Read your writes: ``await informer.reached(written.metadata.resource_version)``. The write must
        be to an object of this informer (one that just left the selection counts). Raises
        ``Unreachable`` after ``timeout`` seconds.
        """
        wanted = int(resource_version or 0)
        if int(self._version or 0) >= wanted:
            return
        entry = (wanted, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(timeout):
                await entry[1]
        except TimeoutError as error:
            raise Unreachable(
                f"informer of {self._name}: version {resource_version} not seen within {timeout:g} s, "
                f"the cache is at {self._version or 'none'}",
                url=self._client.config.server,
            ) from error
        finally:
            self._waiting.remove(entry)

    @property
    def has_synced(self) -> bool:
        """Whether the cache has held a full list."""
        return self._synced.is_set()

    @property
    def resource_version(self) -> str:
        """The version that the cache has reached."""
        return self._version

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._store.get((namespace, name))

    def items(self) -> list[T]:
        return self._store.items()

    def by(self, index: str, value: str) -> list[T]:
        """Objects that the function of ``index`` puts under ``value``."""
        return self._store.by(index, value)

    def values(self, index: str) -> list[str]:
        """All values under which ``index`` holds something."""
        return self._store.values(index)

    def __len__(self) -> int:
        return len(self._store)

    @property
    def _name(self) -> str:
        return self._kind.resource.plural

    async def _run(self) -> None:
        loop, pace = asyncio.get_running_loop(), self._pace
        # In a row: attempts that the server did not take, and watches that stood for a moment only.
        refused = brief = 0
        while True:
            began, self._opened = loop.time(), False
            ended = False
            try:
                await self._session()
                ended, why = True, "the server ended the watch"
            except _NoInitialEvents as error:
                log.info("list by pages", kind=self._name, why=str(error))
                self._by_stream = False
                continue
            except KubeError as error:
                why = str(error)
                self._stale = self._stale or isinstance(error, Expired)
                if not isinstance(error, Expired):
                    self.problem = why
            if not self._opened:
                refused += 1
            else:
                refused = 0
                brief = brief + 1 if loop.time() - began < pace.steady else 0
            failures = refused + brief
            if ended and not failures:  # the usual end: nothing to say, nothing to wait for
                continue
            # Also after one failure there is a random wait: whole fleets lose their watches together.
            pause = backoff(max(failures, 1), base=pace.base, cap=pace.cap)
            if self._stale:
                pause += random.uniform(0.0, pace.spread)
            level = log.warning if failures > 3 else log.info
            level("watch again", kind=self._name, why=why, anew=self._stale, after=round(pause, 2))
            await asyncio.sleep(pause)

    async def _session(self) -> None:
        """One watch, with a list before it where the cache is stale."""
        if self._stale and not self._by_stream:
            listing = await self._client.list(
                self._kind,
                namespace=self._namespace,
                labels=self._labels,
                fields=self._fields,
                # Any cached version does at the start; after an expired one only the newest is safe.
                resource_version=None if self._synced.is_set() else "0",
                metadata_only=self._metadata_only,
            )
            for problem in listing.unreadable:
                log.warning("object left out", why=problem)
            self._replace(listing.items, listing.resource_version)
        initial = self._stale
        stream = self._client.watch(
            self._kind,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            resource_version="" if initial else self._version,
            initial_events=initial,
            timeout=random.uniform(1.0, 2.0) * self._pace.watch,
            metadata_only=self._metadata_only,
            opened=self._note_open,
        )
        async with aclosing(stream):
            if initial:
                await self._initial(stream)
            async for event in stream:
                self._follow(event)

    def _note_open(self) -> None:
        self._opened = True
        if not self._stale:
            self.problem = None

    async def _initial(self, stream: AsyncGenerator[WatchEvent[T], None]) -> None:
        loop, silence = asyncio.get_running_loop(), self._pace.silence
        gathered: dict[Key, T] = {}
        try:
            # The first event may have to wait until the stream is open, which the client bounds.
            async with asyncio.timeout(self._client.timeout + silence) as limit:
                heard = float("-inf")
                async for event in stream:
                    if loop.time() > heard + silence / 10:  # moving the limit costs more than an event
                        heard = loop.time()
                        limit.reschedule(heard + silence)
                    if event.initial_events_end:
                        self._replace(gathered.values(), event.resource_version)
                        return
                    if event.type in ("ADDED", "MODIFIED"):
                        gathered[key_of(event.object)] = event.object
                    elif event.type != "BOOKMARK":
                        gathered.pop(key_of(event.object), None)
                        self._warn_unreadable(event)
        except TimeoutError as error:
            raise _NoInitialEvents("the initial events do not end") from error
        except (BadRequest, Invalid) as error:
            raise _NoInitialEvents(str(error)) from error
        raise Unreachable(f"watch of {self._name}: ended within the initial events", url=self._client.config.server)

    def _replace(self, items: Iterable[T], version: str) -> None:
        changes = self._store.replace(items)
        self._stale = False
        self.problem = None
        if self._metrics is not None:
            self._metrics.lists.labels(self._name).inc()
        self._tell(changes)
        self._advance(version)
        self._synced.set()

    def _follow(self, event: WatchEvent[T]) -> None:
        if event.type in ("ADDED", "MODIFIED"):
            self._tell(self._store.put(event.object))
        elif event.type != "BOOKMARK":
            self._warn_unreadable(event)
            self._tell(self._store.remove(event.object))
        self._advance(event.resource_version)

    def _warn_unreadable(self, event: WatchEvent[T]) -> None:
        if event.type == "UNREADABLE":
            log.warning("object left out", kind=self._name, object="/".join(key_of(event.object)))

    def _tell(self, changes: list[Change[T]]) -> None:
        for change in changes:
            for handler in self._handlers:
                self._tell_one(handler, change)

    def _tell_one(self, handler: Callable[[T | None, T | None], None], change: Change[T]) -> None:
        try:
            handler(*change)
        except Exception:
            log.exception("a change handler failed", kind=self._name)

    def _advance(self, version: str) -> None:
        if version:
            self._version = version
        for wanted, future in self._waiting:
            if not future.done() and int(self._version or 0) >= wanted:
                future.set_result(None)

"""Replaces outdated imex-hosts on nodes without a domain, a few at a time; `hosts` decides.

One watch more, on the ControllerRevisions of our namespace; a change of the template costs one deletion a node.
Invariant: a Pod is deleted by its uid, after its node has had no allocated claim for ``quiet`` seconds: a claim of a
Pod that was deleted by force is free seconds before the Pod's containers have ended.
"""

from __future__ import annotations

import asyncio

from interlace.api.core import ControllerRevision, Pod
from interlace.domains.hosts import is_outdated, newest_revision, places_left, revision_of
from interlace.domains.sources import HOST_SELECTOR, UNREADY, Sources
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, NotFound
from interlace.kube.informer import Informer
from interlace.kube.log import get_logger
from interlace.kube.metrics import Metrics
from interlace.kube.queue import WorkQueue, work

PAUSE = 5.0
"""Seconds until a host is looked at again that had to wait for others."""

ABSENCE = 60.0
"""Seconds after which a deleted host counts no more: a new one is seen by then, or its node is gone or dead."""

_log = get_logger(__name__)


class Replacement:
    """Of one term of leadership. ``quiet`` in seconds."""

    def __init__(
        self, client: Client, *, namespace: str, sources: Sources, quiet: float, metrics: Metrics | None = None
    ) -> None:
        self._client = client
        self._sources = sources
        self._quiet = quiet
        self._queue: WorkQueue[str] = WorkQueue(name="hosts", metrics=metrics)
        self._revisions = Informer(
            client, ControllerRevision, namespace=namespace, labels=HOST_SELECTOR, metrics=metrics
        )
        self._wanted = ""
        self._left: dict[str, float] = {}
        """When the last claim left a node, in loop time."""
        self._began = 0.0
        """When the term began: what left a node before that is not known, so it counts as having left then."""
        self._gone: dict[str, float] = {}
        """Nodes whose host we have deleted lately and that have no new Ready one yet, with the loop time of that."""
        self._revisions.on_change(lambda _old, _new: self._revised())
        sources.on_left(self._node_left)

    async def run(self) -> None:
        """Until cancelled."""
        self._began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._revisions.run())
            group.create_task(work(self._queue, self._replace, workers=1))

    def _revised(self) -> None:
        wanted = newest_revision(self._revisions.items())
        if wanted == self._wanted:
            return
        self._wanted = wanted
        for host in self._sources.hosts.items():
            if is_outdated(host, wanted=wanted):
                self._queue.add(host.spec.node_name)

    def _node_left(self, node: str) -> None:
        now = asyncio.get_running_loop().time()
        self._left.pop(node, None)  # to the end: the oldest stand first
        self._left[node] = now
        while (oldest := next(iter(self._left))) != node and self._left[oldest] + self._quiet < now:
            del self._left[oldest]
        if self._outdated(node):
            self._queue.add_after(node, self._quiet)

    def _outdated(self, node: str) -> list[Pod]:
        return [host for host in self._sources.hosts_on(node) if is_outdated(host, wanted=self._wanted)]

    def _on_their_way(self) -> int:
        """New hosts that are not Ready, and those that are still to come."""
        starting = {host.spec.node_name for host in self._sources.hosts.by(UNREADY, self._wanted)}
        since = asyncio.get_running_loop().time() - ABSENCE
        self._gone = {n: when for n, when in self._gone.items() if when > since and not self._is_new_and_ready(n)}
        return len(starting | self._gone.keys())

    def _is_new_and_ready(self, node: str) -> bool:
        return any(host.ready and revision_of(host) == self._wanted for host in self._sources.hosts_on(node))

    async def _replace(self, node: str) -> float | None:
        """Delete the outdated host of ``node``, or say in how many seconds to look again."""
        outdated = self._outdated(node)
        if not outdated or self._sources.claims_on(node):
            return None  # the end of the last claim brings the node back
        rest = self._left.get(node, self._began) + self._quiet - asyncio.get_running_loop().time()
        if rest > 0:
            return rest
        if places_left(hosts=len(self._sources.hosts), on_their_way=self._on_their_way()) < 1:
            return PAUSE
        for host in outdated:
            meta = host.metadata
            try:
                await self._client.delete(Pod, meta.name, namespace=meta.namespace, uid=meta.uid)
            except (NotFound, Conflict):
                continue  # another has deleted it
            self._gone[node] = asyncio.get_running_loop().time()
            _log.info("imex-host replaced", node=node, pod=meta.name, revision=revision_of(host), wanted=self._wanted)
        return None

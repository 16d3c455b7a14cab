"""Watches a cluster from outside and says what must never be: its own client, its own watches, plain objects.

Nothing of what is under test decides here: an allocation is read as the scheduler wrote it, a node map as it was
stored, and what runs on a node is what its (simulated) kubelet says. Invariant: a breach is one sentence, kept for
good; ``breaches`` empty means that none was seen at any change of any watched object.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from interlace.api.computedomain import ComputeDomainClique
from interlace.api.meta import Resource
from interlace.kube.client import Client
from interlace.kube.informer import Informer
from interlace.kube.untyped import Untyped, untyped
from interlace.sim.cluster import NAMESPACE, Cluster
from interlace.sim.kubelet.pods import PodWorker

DRIVER: Final = "compute-domain.nvidia.com"
LABEL: Final = "resource.nvidia.com/computeDomain"
CLAIMS: Final = untyped(Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True))
CLIQUES: Final = untyped(ComputeDomainClique.resource)
SYNC: Final = 30.0
KEPT: Final = 200
"""Sentences; a broken invariant would make thousands."""


class Checker:
    """What was seen since ``watching`` began."""

    def __init__(self, cluster: Cluster) -> None:
        self.breaches: list[str] = []
        self.allocations = 0
        self.prepared = 0
        """Pods whose claims a kubelet had prepared."""
        self.maps = 0
        """Versions of node maps that were looked at."""
        self.on_pod: Callable[[PodWorker, str], None] = lambda _worker, _what: None
        """Told what each kubelet says, after the checker."""
        self._cluster = cluster
        self._allocated: dict[str, dict[str, str]] = defaultdict(dict)
        """Node to uid of a claim allocated there, to uid of the domain."""
        self._tenants: dict[str, dict[str, str]] = defaultdict(dict)
        """Node to uid of a Pod that a kubelet has prepared, to uid of the domain."""
        self._asked: dict[str, str] = {}
        """Uid of a Pod to the domain that its claim names."""
        self._unknown: dict[str, str] = {}
        """Uid of a prepared Pod, whose claim is not seen yet, to its node."""

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch until the block ends."""
        config = self._cluster.plane.credentials("invariant-checker", groups=["system:masters"])
        async with Client(config, user_agent="invariant-checker") as client, asyncio.TaskGroup() as group:
            claims = Informer(client, CLAIMS)
            cliques = Informer(client, CLIQUES, namespace=NAMESPACE)
            claims.on_change(self._claim)
            cliques.on_change(self._clique)
            self._cluster.fleet.watch_pods(self._pod)
            tasks = [group.create_task(informer.run()) for informer in (claims, cliques)]
            async with asyncio.timeout(SYNC):
                await claims.synced()
                await cliques.synced()
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    def domains_on(self, node: str) -> set[str]:
        """Domains whose Pods are prepared on the node, as its kubelet has it."""
        return set(self._tenants[node].values())

    def _breach(self, sentence: str) -> None:
        if len(self.breaches) < KEPT:
            self.breaches.append(sentence)

    def _claim(self, old: Untyped | None, new: Untyped | None) -> None:
        claim = new if new is not None else old
        if claim is None:
            return
        meta = claim["metadata"]
        uid, domain = meta["uid"], meta.get("labels", {}).get(LABEL, "")
        for owner in meta.get("ownerReferences", []):
            if owner["kind"] == "Pod":
                self._learn(owner["uid"], domain, gone=new is None)
        before, after = node_of(old), node_of(new)
        if before == after:
            return
        self._allocated[before].pop(uid, None)
        if after:
            self.allocations += 1
            self._allocated[after][uid] = domain
            if len(found := {*self._allocated[after].values()}) > 1:
                self._breach(f"claims of domains {', '.join(sorted(found))} are allocated on {after} at one time")

    def _learn(self, pod: str, domain: str, *, gone: bool) -> None:
        if gone:
            self._asked.pop(pod, None)
            return
        self._asked[pod] = domain
        if (node := self._unknown.pop(pod, None)) is not None:
            self._settle(pod, node=node, domain=domain)

    def _pod(self, worker: PodWorker, what: str) -> None:
        pod, node = worker.pod.metadata.uid, worker.pod.spec.node_name
        if worker.pod.spec.resource_claims:
            if what == "prepared":
                self.prepared += 1
                domain = self._asked.get(pod)
                if domain is None:
                    self._unknown[pod] = node
                else:
                    self._settle(pod, node=node, domain=domain)
            elif what == "gone":
                self._unknown.pop(pod, None)
                self._tenants[node].pop(pod, None)
        self.on_pod(worker, what)

    def _settle(self, pod: str, *, node: str, domain: str) -> None:
        self._tenants[node][pod] = domain
        if len(found := self.domains_on(node)) > 1:
            self._breach(f"Pods of domains {', '.join(sorted(found))} are prepared on {node} at one time")

    def _clique(self, old: Untyped | None, new: Untyped | None) -> None:
        if new is None:
            return
        self.maps += 1
        name, rows = new["metadata"]["name"], new.get("daemons", [])
        for sentence in map_breaches(rows, before=old.get("daemons", []) if old is not None else ()):
            self._breach(f"node map {name}: {sentence}")


def node_of(claim: Mapping[str, Any] | None) -> str:
    """The node whose channel the scheduler gave to a claim, ``""`` for none."""
    allocation = ((claim or {}).get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or []
    return next((str(result["pool"]) for result in results if result["driver"] == DRIVER), "")


def map_breaches(rows: Iterable[Mapping[str, Any]], *, before: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the rows of a node map, also beside the rows that it had before."""
    now = list(rows)
    found = []
    for field, what in (("index", "index"), ("nodeName", "node"), ("ipAddress", "address")):
        counts = Counter(row.get(field) for row in now if row.get(field) not in ("", None))
        found += [f"two rows have {what} {value}" for value, count in counts.items() if count > 1]
    old = {row["nodeName"]: row.get("index") for row in before}
    found += [
        f"the row of {row['nodeName']} went from index {old[row['nodeName']]} to {row.get('index')}"
        for row in now
        if row["nodeName"] in old and old[row["nodeName"]] != row.get("index")
    ]
    return found

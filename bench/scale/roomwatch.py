"""Measures on a running cluster how long Pods wait although there is room; ``room`` says what room is.

A Pod counts while its domain is there. What slow ones waited for is noted as it changed, for people.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from typing import Final

import msgspec

from bench.scale.checker import Checker
from bench.scale.room import Clock, Places, Waiting, with_room
from interlace.api.computedomain import DOMAIN_LABEL
from interlace.api.core import Pod
from interlace.api.resource import ResourceClaim
from interlace.domains.status import READY, condition_of
from interlace.sim.cluster import Cluster

EVERY: Final = 0.05
"""Seconds between two looks."""
SLOW: Final = 5.0
"""Seconds that a Pod may wait while there is room."""
STORY: Final = 24
"""Lines of what one Pod waited for."""


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A Pod that waited for longer than it should have."""

    pod: str
    seconds: float
    story: list[str]


class RoomWatch:
    """``run`` looks until cancelled; ``waited`` and ``slow`` are read afterwards."""

    def __init__(self, cluster: Cluster, *, checker: Checker, namespace: str) -> None:
        self._cluster = cluster
        self._checker = checker
        self._namespace = namespace
        self._clock = Clock()
        self._began = time.monotonic()
        self._stories: dict[str, list[str]] = defaultdict(list)
        self._names: dict[str, str] = {}
        self.slow: list[Slow] = []
        self.late_looks = 0.0
        """Longest time between two looks, seconds: the machine's share in what is measured."""

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        before = time.monotonic()
        while True:
            now = time.monotonic()
            self.late_looks = max(self.late_looks, now - before - EVERY)
            before = now
            self._look(now)
            await asyncio.sleep(EVERY)  # room is time: nothing tells of it

    @property
    def waited(self) -> list[float]:
        """Seconds of each time that a Pod waited although there was room, those that still do included."""
        ended = [seconds for seconds, _ in self._clock.longest]
        return sorted(ended + [seconds for seconds, _ in self._clock.open(now=time.monotonic())])

    def _look(self, now: float) -> None:
        claims = {
            owner.uid: claim
            for claim in self._cluster.claims.items()
            for owner in claim.metadata.owner_references
            if owner.kind == "Pod"
        }
        mine = [pod for pod in self._cluster.pods.items() if pod.metadata.namespace == self._namespace]
        waiting = [one for pod in mine if (one := self._waiting(pod, claims)) is not None]
        ready_for = with_room(waiting, self._places())
        ended = len(self._clock.longest)
        self._clock.look(ready_for, now=now)
        for one in waiting:
            if one.pod in ready_for:
                self._tell(one, claims.get(one.pod), now=now)
        for seconds, uid in self._clock.longest[ended:]:
            story, name = self._stories.pop(uid, []), self._names.pop(uid, uid)
            if seconds > SLOW:
                self.slow.append(Slow(pod=name, seconds=round(seconds, 2), story=story))

    def _waiting(self, pod: Pod, claims: dict[str, ResourceClaim]) -> Waiting | None:
        meta = pod.metadata
        if pod.ready or meta.deletion_timestamp or pod.status.phase in {"Succeeded", "Failed"}:
            return None
        domain = self._cluster.domains.get(meta.labels.get("job", ""), self._namespace)
        if domain is None or domain.metadata.deletion_timestamp is not None:
            return None
        uid, claim = domain.metadata.uid, claims.get(meta.uid)
        if claim is not None and claim.metadata.labels.get(DOMAIN_LABEL) != uid:
            return None  # of a domain that is gone
        self._names[meta.uid] = meta.name
        node = allocated_on(claim) if claim is not None else ""
        return Waiting(pod=meta.uid, domain=uid, made=meta.creation_timestamp or "", node=node)

    def _places(self) -> Places:
        held: dict[str, list[str]] = defaultdict(list)
        for claim in self._cluster.claims.items():
            if node := allocated_on(claim):
                held[node].append(claim.metadata.labels.get(DOMAIN_LABEL, ""))
        nodes = frozenset(self._cluster.gpu_nodes)
        prepared = {node: frozenset(self._checker.domains_on(node)) for node in nodes}
        return Places(nodes=nodes, claims=held, prepared=prepared)

    def _tell(self, one: Waiting, claim: ResourceClaim | None, *, now: float) -> None:
        if claim is None:
            state = "no claim"
        elif not one.node:
            state = "not allocated"
        else:
            said = condition_of(claim, READY)
            state = f"allocated on {one.node}, {f'{said.reason}: {said.message}' if said else 'nothing said of it'}"
        story = self._stories[one.pod]
        if len(story) < STORY and (not story or story[-1].partition("s ")[2] != state):
            story.append(f"{now - self._began:.2f}s {state}")


def allocated_on(claim: ResourceClaim) -> str:
    """The node whose device the scheduler gave to the claim, ``""`` for none."""
    allocation = claim.status.allocation
    return next((result.pool for result in allocation.devices.results), "") if allocation is not None else ""

"""How long Pods wait although there is room for them.

Room is what a user would call so: a node on which no other domain has a claim, and whose kubelet has ended what was
there; or one more of the places that a node of the Pod's own domain has. The time is counted from the moment at
which there was room for a Pod that was there, to its readiness, and starts anew when the room was taken by another.
Of the Pods of a domain that wait, the oldest have the room first.

Invariant: what is counted does not depend on what our components think: neither on slices nor on node maps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

PLACES: Final = 8
"""Pods of one domain that fit on one node."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """One Pod that is not Ready."""

    pod: str
    """Its uid."""
    domain: str
    made: str
    """When it was made, sortable."""
    node: str = ""
    """Where its claim is allocated."""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes at one moment."""

    nodes: frozenset[str]
    """Those that can run Pods of domains."""
    claims: Mapping[str, Sequence[str]]
    """Node to the domains of the claims allocated there, each as often as it has one."""
    prepared: Mapping[str, frozenset[str]]
    """Node to the domains of the Pods that its kubelet has prepared."""

    def holders(self, node: str) -> set[str]:
        return {*self.claims.get(node, ()), *self.prepared.get(node, ())}


def with_room(waiting: Iterable[Waiting], places: Places) -> set[str]:
    """The uids of those Pods that could run now."""
    free = sum(not places.holders(node) for node in places.nodes)
    own: dict[str, int] = defaultdict(int)
    for node in places.nodes:
        holders = places.holders(node)
        if len(holders) == 1:
            own[next(iter(holders))] += max(0, PLACES - len(places.claims.get(node, ())))
    found: set[str] = set()
    queues: dict[str, list[Waiting]] = defaultdict(list)
    for one in waiting:
        if not one.node:
            queues[one.domain].append(one)
        elif places.holders(one.node) <= {one.domain}:
            found.add(one.pod)
    for domain, queue in queues.items():
        queue.sort(key=lambda one: (one.made, one.pod))
        found |= {one.pod for one in queue[: free + own[domain]]}
    return found


class Clock:
    """Counts for each Pod for how long there has been room."""

    def __init__(self) -> None:
        self.longest: list[tuple[float, str]] = []
        """Seconds and uid of each Pod that got its room or lost it, or went; those that took no time are left out."""
        self._since: dict[str, float] = {}

    def look(self, ready_for: set[str], *, now: float) -> None:
        """These Pods, and no others, wait although there is room."""
        for pod in self._since.keys() - ready_for:
            self.longest.append((now - self._since.pop(pod), pod))
        for pod in ready_for:
            self._since.setdefault(pod, now)

    def open(self, *, now: float) -> list[tuple[float, str]]:
        """Those that wait now, the longest first."""
        return sorted(((now - since, pod) for pod, since in self._since.items()), reverse=True)

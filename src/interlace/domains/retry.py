"""Which Pods are touched so that kubelet calls Prepare again.

Kubelet comes back to a Prepare that failed only after 60 to 90 s, but at once when the Pod changes.
Two things show that it is needed. An agent whose Prepare failed and would succeed now says so by a
reason of its own in the claim's status; the Pod is touched once (a new leader touches once more: the
last one may not have). And an agent that says nothing at all, although it reports on each Prepare
within 5 s, was not there when kubelet called; the Pod is touched again and again, more and more rarely.
"""

from __future__ import annotations

from collections.abc import Iterable

from interlace.api.core import ObjectReference
from interlace.api.resource import ResourceClaim
from interlace.domains.membership import node_of, pods_of
from interlace.domains.status import READY, condition_of

RETRY_ANNOTATION = "interlace.dev/retry"
"""On Pods: when the controller last asked for a new Prepare."""
WAITING_FOR_KUBELET = "WaitingForKubelet"
"""Reason of the agent's condition ``Ready`` when the next Prepare will succeed."""

SILENCE = 6.0
"""Seconds without a report until the first touch; each touch doubles the time until the next."""


def pods_to_touch(old: ResourceClaim | None, new: ResourceClaim | None) -> list[ObjectReference]:
    """The Pods that wait for another Prepare now that the claim went from ``old`` to ``new``."""
    if new is None or not _waits(new):
        return []
    if old is not None and node_of(old) == node_of(new) and _waits(old):
        return []
    return pods_of(new)


def _waits(claim: ResourceClaim) -> bool:
    condition = condition_of(claim, READY)
    return condition is not None and condition.reason == WAITING_FOR_KUBELET


class Silence:
    """Remembers which claims of one domain no agent has reported on, and when their Pods are touched next."""

    def __init__(self) -> None:
        self._next: dict[str, tuple[float, float]] = {}

    def due(self, silent: Iterable[ResourceClaim], *, now: float) -> list[ObjectReference]:
        """The Pods to touch now, given the claims without a report at present."""
        claims = {claim.metadata.uid: claim for claim in silent}
        self._next = {uid: self._next.get(uid, (now + SILENCE, SILENCE)) for uid in claims}
        pods: list[ObjectReference] = []
        for uid, (at, wait) in self._next.items():
            if at <= now:
                self._next[uid] = (now + 2 * wait, 2 * wait)
                pods += pods_of(claims[uid])
        return pods

    def next_in(self, *, now: float) -> float | None:
        """Seconds until ``due`` would return something for the claims that it knows, None if it knows none."""
        return max(0.0, min(at for at, _ in self._next.values()) - now) if self._next else None

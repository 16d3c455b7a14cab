"""Which Pods are touched so that kubelet calls Prepare again.

Kubelet comes back to a Prepare that failed only after 60 to 90 s, but at once when the Pod changes.
An agent whose Prepare failed and would succeed now says so by a reason of its own in the claim's
status; then the Pod is touched, once. A new leader touches once more: the last one may not have.
"""

from __future__ import annotations

from interlace.api.core import ObjectReference
from interlace.api.resource import ResourceClaim
from interlace.domains.membership import node_of, pods_of
from interlace.domains.status import READY, condition_of

RETRY_ANNOTATION = "interlace.dev/retry"
"""On Pods: when the controller last asked for a new Prepare."""
WAITING_FOR_KUBELET = "WaitingForKubelet"
"""Reason of the agent's condition ``Ready`` when the next Prepare will succeed."""


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

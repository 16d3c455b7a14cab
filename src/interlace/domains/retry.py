"""Which Pods are touched so that kubelet calls Prepare again.

Kubelet comes back to a Prepare that failed only after 60 to 90 s, but at once when the Pod
changes. So a Pod is touched when the agent reports its channel ready after it had reported that it
was not, and Prepare has not taken it: an agent that ends a waiting Prepare well says ``Prepared``.
"""

from __future__ import annotations

from interlace.api.core import ObjectReference
from interlace.api.resource import ResourceClaim
from interlace.domains.membership import node_of, pods_of
from interlace.domains.status import READY, condition_of

RETRY_ANNOTATION = "interlace.dev/retry"
"""On Pods: when the controller last asked for a new Prepare."""
PREPARED = "Prepared"
"""Reason of a ``Ready`` that needs no further Prepare."""


def pods_to_touch(old: ResourceClaim | None, new: ResourceClaim | None) -> list[ObjectReference]:
    """The Pods that wait for another Prepare now that the claim went from ``old`` to ``new``."""
    if old is None or new is None or node_of(old) != node_of(new):
        return []
    before, after = condition_of(old, READY), condition_of(new, READY)
    if before is None or after is None or before.status == "True" or after.status != "True":
        return []
    return [] if after.reason == PREPARED else pods_of(new)

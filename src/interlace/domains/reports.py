"""What agents report of claims, wherever the API server lets them.

Usually that is ``status.devices`` of the claim. A server that drops it (Kubernetes 1.32 with its default gates)
leaves the annotation that the agents then put on their ResourceSlice. Invariant: what stands on the claim wins, and
everything else reads claims only after ``completed``.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlace.api.resource import REPORTS_ANNOTATION, AllocatedDeviceStatus, ResourceClaim, ResourceSlice
from interlace.domains.membership import device_of

_entries = msgspec.json.Decoder(dict[str, list[AllocatedDeviceStatus]])


def elsewhere(slices: Iterable[ResourceSlice]) -> bool:
    """Whether an agent reports on one of these slices instead of on claims."""
    return any(REPORTS_ANNOTATION in found.metadata.annotations for found in slices)


def completed(claim: ResourceClaim, slices: Iterable[ResourceSlice]) -> ResourceClaim:
    """The claim with what the agent reports of it; ``slices`` are those of the node where it is allocated.

    An annotation that cannot be read counts as none.
    """
    if device_of(claim) is not None:
        return claim
    for found in slices:
        text = found.metadata.annotations.get(REPORTS_ANNOTATION)
        if text is None:
            continue
        try:
            entries = _entries.decode(text).get(claim.metadata.uid)
        except msgspec.MsgspecError:
            continue
        if entries:
            status = msgspec.structs.replace(claim.status, devices=[*claim.status.devices, *entries])
            return msgspec.structs.replace(claim, status=status)
    return claim

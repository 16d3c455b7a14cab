"""The events on a ComputeDomain: few, and only where something became different.

A domain that forms tells it once; a node that leaves a domain that goes on is told; what needs a
person is told at once. A domain that runs empty or is deleted tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlace.api.computedomain import ComputeDomainStatus
from interlace.api.meta import Condition
from interlace.domains.conditions import listed
from interlace.domains.reasons import DomainReason, WaitReason
from interlace.domains.status import READY

_FOR_A_PERSON = {
    str(DomainReason.NO_SPEC),
    str(DomainReason.TEMPLATE_NAME_TAKEN),
    str(DomainReason.TEMPLATE_INVALID),
    str(DomainReason.TEMPLATE_REFUSED),
    str(WaitReason.CLIQUE_FULL),
}


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    reason: str
    message: str
    warning: bool = False


def announcements(before: ComputeDomainStatus | None, after: ComputeDomainStatus) -> list[Announcement]:
    """What to tell about the step from one written status to the next."""
    before = before or ComputeDomainStatus()
    old, new = _ready(before.conditions), _ready(after.conditions)
    told: list[Announcement] = []
    names_before = [node.name for node in before.nodes]
    names = [node.name for node in after.nodes]
    gone = [name for name in names_before if name not in names]
    if gone and names:
        remain = "1 node remains" if len(names) == 1 else f"{len(names)} nodes remain"
        told.append(Announcement(reason=DomainReason.NODES_LEFT, message=f"{listed(gone)} left; {remain}."))
    if new.reason == DomainReason.FORMED and (old.reason != DomainReason.FORMED or {*names} - {*names_before}):
        told.append(Announcement(reason=new.reason, message=new.message))
    if new.reason in _FOR_A_PERSON and new.reason != old.reason:
        told.append(Announcement(reason=new.reason, message=new.message, warning=True))
    return told


def _ready(conditions: Iterable[Condition]) -> Condition:
    return next((c for c in conditions if c.type == READY), Condition(type=READY, status="Unknown"))

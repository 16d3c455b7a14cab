"""What a Pod that runs is told: that its IMEX was interrupted, or that its domain is gone.

Neither ends the Pod, and both can make its job fail later, so the Pod is where people will look.
Each is told once. What happened before a new leader's first look is not told again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlace.api.resource import ResourceClaim
from interlace.domains.membership import node_of, pods_of
from interlace.domains.reasons import PodReason
from interlace.domains.status import READY, condition_of

RESTORED = "Restored"
"""Reason of the agent's condition ``Ready`` after an interruption."""
PATIENCE = 5.0
"""Seconds that Pods may outlive their domain before they are told: jobs are often deleted with it."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One event on the Pods of a claim."""

    claim: ResourceClaim
    reason: PodReason
    message: str


class Interruptions:
    """Remembers which interruptions of one domain were told."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] | None = None

    def due(self, claims: Iterable[ResourceClaim]) -> list[Notice]:
        """The interruptions that are new since the last call; the first call only remembers."""
        found = {
            (claim.metadata.uid, condition.last_transition_time or ""): (claim, condition.message)
            for claim in claims
            if (condition := condition_of(claim, READY)) is not None and condition.reason == RESTORED
        }
        before, self._known = self._known, set(found)
        if before is None:
            return []
        return [
            Notice(claim=claim, reason=PodReason.IMEX_RESTARTED, message=message)
            for key, (claim, message) in found.items()
            if key not in before
        ]


class Orphans:
    """Pods that outlive a deleted domain."""

    def __init__(self, *, domain: str, now: float) -> None:
        """``domain`` is ``namespace/name``; Pods of other namespaces never had a channel of it."""
        self._domain = domain
        self._namespace = domain.partition("/")[0]
        self._since = now
        self._told: set[str] = set()

    def due(self, claims: Iterable[ResourceClaim], *, now: float) -> list[Notice]:
        """Those to tell now; each is returned once."""
        if now < self._since + PATIENCE:
            return []
        new = [
            claim
            for claim in claims
            if self._served(claim)
            and pods_of(claim)
            and claim.metadata.deletion_timestamp is None
            and claim.metadata.uid not in self._told
        ]
        self._told |= {claim.metadata.uid for claim in new}
        return [
            Notice(
                claim=claim,
                reason=PodReason.DOMAIN_DELETED,
                message=f"ComputeDomain {self._domain} was deleted while this Pod runs: the Pod keeps its channel, and "
                f"IMEX on node {node_of(claim)} keeps running until the Pod ends, but no node can join any more.",
            )
            for claim in new
        ]

    def next_in(self, claims: Iterable[ResourceClaim], *, now: float) -> float | None:
        """Seconds until there may be somebody to tell, None once nobody is left or all know."""
        waiting = any(self._served(claim) and claim.metadata.uid not in self._told for claim in claims)
        return max(0.0, self._since + PATIENCE - now) if waiting and now < self._since + PATIENCE else None

    def _served(self, claim: ResourceClaim) -> bool:
        return bool(node_of(claim)) and claim.metadata.namespace == self._namespace

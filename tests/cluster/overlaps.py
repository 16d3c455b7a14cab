"""Watches a cluster for two domains on one node, and for Pods that stay where they cannot start."""

from __future__ import annotations

import time
from collections import defaultdict

from interlace.api.computedomain import DOMAIN_LABEL
from interlace.api.resource import ResourceClaim
from interlace.domains.membership import node_of
from interlace.domains.status import claim_ready
from interlace.sim.cluster import Cluster


class Overlaps:
    """What was seen since it was made; looks at each change of a claim."""

    def __init__(self, cluster: Cluster) -> None:
        self.seen: list[str] = []
        """One sentence for each time that a node got a claim of a second domain."""
        self.allocations = 0
        self._held: dict[str, dict[str, str]] = defaultdict(dict)
        self._late: dict[str, float] = {}
        self.longest = 0.0
        """Most seconds that a claim was allocated and not ready."""
        cluster.claims.on_change(self._changed)

    def _changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before, after = (node_of(claim) if claim is not None else "" for claim in (old, new))
        claim = new if new is not None else old
        if claim is None:
            return
        uid, domain = claim.metadata.uid, claim.metadata.labels.get(DOMAIN_LABEL, "")
        if before and before != after:
            self._held[before].pop(uid, None)
        if after and before != after:
            self.allocations += 1
            self._held[after][uid] = domain
            if len({*self._held[after].values()}) > 1:
                self.seen.append(f"{after}: {claim.metadata.name} met {self._held[after]}")
        self._time(uid, waiting=bool(after) and new is not None and not claim_ready(new))

    def _time(self, uid: str, *, waiting: bool) -> None:
        now = time.monotonic()
        if waiting:
            self._late.setdefault(uid, now)
        elif (since := self._late.pop(uid, None)) is not None:
            self.longest = max(self.longest, now - since)

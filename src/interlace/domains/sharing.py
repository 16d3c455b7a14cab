"""When the nodes of a domain are opened for more Pods of the same domain.

A free node offers one device, so the scheduler spreads the Pods of a domain over nodes and keeps domains
apart without a write. Only where that leaves a Pod waiting are slots opened on the nodes that the domain has
already: almost at once where no node is free for a domain that forms, after ``PATIENCE`` where it has formed, and
after ``LONG_PATIENCE`` where a node is free, as it may not suit the Pod. A Pod that the scheduler reports as
unschedulable is no sign: it does so also while the claim does not exist yet.

Invariant: a row that is opened stays so until it goes; the agent of the node closes it safely.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from interlace.api.core import Pod
from interlace.api.resource import Device, ResourceClaim, ResourceSlice
from interlace.domains.places import CLIQUE_ATTRIBUTE

HASTE = 0.1
"""Seconds that a claim waits until nodes are opened, where none is free and the domain has no node map yet."""
PATIENCE = 0.5
"""The same where it has one: a claim that replaces another is often there before the other has gone."""
LONG_PATIENCE = 15.0
"""The same where there are free nodes: they do not suit, or the scheduler is slow."""
FRESH = 3.0
"""Seconds for which claims count as those of a job that has just come."""

DOMAIN_ATTRIBUTE, TYPE_ATTRIBUTE = "domain", "type"
CHANNEL = "channel"
"""Value of the type attribute on nodes whose fabric works."""


class Queueing:
    """Remembers since when each claim of one domain has waited for a node."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def observe(self, unallocated: Iterable[ResourceClaim], *, now: float) -> None:
        """These claims, and no others, wait at ``now``."""
        self._since = {claim.metadata.uid: self._since.get(claim.metadata.uid, now) for claim in unallocated}

    @property
    def waits(self) -> bool:
        """Whether any claim waits."""
        return bool(self._since)

    def is_fresh(self, *, now: float) -> bool:
        """Whether no claim has waited for long."""
        return all(now < since + FRESH for since in self._since.values())

    def due_in(self, *, free_nodes: bool, forming: bool, now: float) -> float | None:
        """Seconds until nodes are opened, at most 0 for now; None: no claim waits.

        ``forming``: the domain has no node map yet.
        """
        if not self._since:
            return None
        soon = HASTE if forming else PATIENCE
        return min(self._since.values()) + (LONG_PATIENCE if free_nodes else soon) - now


def is_free(slices: Iterable[ResourceSlice], claims: Collection[ResourceClaim], *, hosts: Collection[Pod]) -> bool:
    """Whether a node, given its slices, the claims allocated there and its imex-hosts, would take another domain.

    Only nodes with a fabric count: the others in a cluster are free at all times, and no row is ever theirs. Nor do
    nodes without an imex-host: the slice of a node that was deleted stays behind.
    """
    return bool(hosts and not claims) and any(
        _text(device, TYPE_ATTRIBUTE) == CHANNEL
        and _text(device, CLIQUE_ATTRIBUTE)
        and not _text(device, DOMAIN_ATTRIBUTE)
        for slice_ in slices
        for device in slice_.spec.devices
    )


def _text(device: Device, name: str) -> str:
    attribute = device.attributes.get(name)
    return (attribute.string or "") if attribute is not None else ""

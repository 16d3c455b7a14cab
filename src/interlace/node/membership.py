"""Who belongs to a domain within this node's fabric clique: a reading of the controller's clique objects.

A clique is the node map of one IMEX domain. Usually that serves one ComputeDomain; the shared one of a fabric
clique serves all that ask for a channel only, and says which rows and which channel each of them has.
"""

from __future__ import annotations

import msgspec

from interlace.api.computedomain import (
    DOMAIN_LABEL,
    DOMAIN_NAME_ANNOTATION,
    DOMAIN_NAMESPACE_ANNOTATION,
    SHARED,
    ComputeDomainClique,
    PeerCount,
)
from interlace.imex.order import State


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the domain."""

    node: str
    index: int
    address: str
    shared: bool = False
    """Whether the controller asks to open the node for more Pods of the domain."""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A domain as one clique object shows it."""

    domain: str
    name: str
    """Name of the ComputeDomain; empty if the clique does not say."""
    namespace: str
    """Namespace of the ComputeDomain; empty if the clique does not say."""
    created: str
    rows: tuple[Row, ...]
    """The nodes of the domain."""
    own: Row | None
    imex: str = ""
    """The IMEX domain that serves it; empty: one of its own, with its uid."""
    channel: int = 0
    neighbours: tuple[Row, ...] = ()
    """Nodes in the same IMEX domain that are not of this domain."""
    barrier: PeerCount | None = None

    @property
    def imex_domain(self) -> str:
        """What the imex-host calls the IMEX domain."""
        return self.imex or self.domain

    @property
    def holder(self) -> str:
        """Who has a node that serves it: the domain alone, or all that share nodes."""
        return SHARED if self.imex else self.domain

    def node_at(self, index: int) -> str:
        """Name of the node at this index, or the index itself in words."""
        return next((row.node for row in self.rows if row.index == index), f"index {index}")


def memberships(clique: ComputeDomainClique, *, node: str) -> tuple[Membership, ...]:
    """The domains that the clique serves; none where it names none."""
    rows = tuple(Row(node=d.node_name, index=d.index, address=d.ip_address, shared=d.shared) for d in clique.daemons)
    created = clique.metadata.creation_timestamp or ""
    domain = clique.metadata.labels.get(DOMAIN_LABEL, "")
    if domain:
        return (
            Membership(
                domain=domain,
                name=clique.metadata.annotations.get(DOMAIN_NAME_ANNOTATION, ""),
                namespace=clique.metadata.annotations.get(DOMAIN_NAMESPACE_ANNOTATION, ""),
                created=created,
                rows=rows,
                own=_own(rows, node),
                barrier=clique.wait_for_peers,
            ),
        )
    found = []
    for entry in clique.channels:
        indexes = frozenset(entry.indexes)
        mine = tuple(row for row in rows if row.index in indexes)
        found.append(
            Membership(
                domain=entry.domain,
                name=entry.name,
                namespace=entry.namespace,
                created=created,
                rows=mine,
                own=_own(mine, node),
                imex=clique.metadata.name,
                channel=entry.channel,
                neighbours=tuple(row for row in rows if row.index not in indexes),
                barrier=entry.wait_for_peers,
            )
        )
    return tuple(found)


def away_from(host: State, membership: Membership) -> list[int]:
    """Indexes of the domain's own nodes without a connection; those of neighbours are no concern of it."""
    neighbours = {row.index for row in membership.neighbours}
    return [index for index in host.disconnected if index not in neighbours] if host.peers == "Disconnected" else []


def _own(rows: tuple[Row, ...], node: str) -> Row | None:
    return next((row for row in rows if row.node == node), None)

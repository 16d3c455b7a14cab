"""Who belongs to a domain within this node's fabric clique: a reading of the controller's clique objects."""

from __future__ import annotations

import msgspec

from interlace.api.computedomain import (
    DOMAIN_LABEL,
    DOMAIN_NAME_ANNOTATION,
    DOMAIN_NAMESPACE_ANNOTATION,
    ComputeDomainClique,
)


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
    own: Row | None

    def node_at(self, index: int) -> str:
        """Name of the node at this index, or the index itself in words."""
        return next((row.node for row in self.rows if row.index == index), f"index {index}")


def membership(clique: ComputeDomainClique, *, node: str) -> Membership | None:
    """None where the object names no domain."""
    domain = clique.metadata.labels.get(DOMAIN_LABEL, "")
    if not domain:
        return None
    rows = tuple(Row(node=d.node_name, index=d.index, address=d.ip_address, shared=d.shared) for d in clique.daemons)
    return Membership(
        domain=domain,
        name=clique.metadata.annotations.get(DOMAIN_NAME_ANNOTATION, ""),
        namespace=clique.metadata.annotations.get(DOMAIN_NAMESPACE_ANNOTATION, ""),
        created=clique.metadata.creation_timestamp or "",
        rows=rows,
        own=next((row for row in rows if row.node == node), None),
    )

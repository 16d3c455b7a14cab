"""Which domain this node's IMEX has to serve, and the order for it.

A node runs one IMEX domain. Claims whose containers may run come first, so IMEX is never taken from
under a job; then a claim that kubelet is calling for; then what runs already; then the oldest row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlace.imex.names import node_map
from interlace.imex.order import Order
from interlace.node.membership import Membership


def wanted_domain(
    memberships: Mapping[str, Membership], *, prepared: Sequence[str], waiting: Sequence[str], running: str
) -> str:
    """The domain (uid) to serve; ``""``: none, IMEX may stop.

    ``prepared`` and ``waiting`` are the domains of claims, the oldest first; ``running`` is what the host serves.
    """
    if prepared:
        return running if running in prepared else prepared[0]
    members = {domain for domain, m in memberships.items() if m.own is not None}
    for domain in waiting:
        if domain in members:
            return domain
    if running in members:
        return running
    return min(members, key=lambda domain: (memberships[domain].created, domain), default="")


def order(membership: Membership, *, slots: int) -> Order | None:
    """The order for a domain that this node is in; None without an own row.

    Raises ``ImexError`` where the rows cannot be a node map.
    """
    if membership.own is None:
        return None
    names, addresses = node_map(
        membership.domain, rows=[(row.index, row.address) for row in membership.rows], slots=slots
    )
    return Order(domain=membership.domain, index=membership.own.index, names=names, addresses=addresses)

"""Which IMEX domain this node has to serve, and the order for it.

A node runs one IMEX domain. Claims whose containers may run come first, so IMEX is never taken from
under a job; then a claim that kubelet is calling for; then what runs already; then the oldest row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from interlace.imex.names import node_map
from interlace.imex.order import Order
from interlace.node.membership import Membership


def wanted_imex(
    memberships: Mapping[str, Membership], *, prepared: Sequence[str], waiting: Sequence[str], running: str
) -> str:
    """The IMEX domain to serve; ``""``: none, IMEX may stop.

    ``prepared`` are those of the claims that are prepared and ``waiting`` the domains (uids) of those that kubelet
    calls for, the oldest first; ``running`` is what the host serves.
    """
    if prepared:
        return running if running in prepared else prepared[0]
    members = {domain: found for domain, found in memberships.items() if found.own is not None}
    for domain in waiting:
        if domain in members:
            return members[domain].imex_domain
    created = {found.imex_domain: found.created for found in members.values()}
    if running in created:
        return running
    return min(created, key=lambda imex: (created[imex], imex), default="")


def order(memberships: Iterable[Membership], *, imex: str, slots: int) -> Order | None:
    """The order for an IMEX domain that this node is in; None without an own row.

    Raises ``ImexError`` where the rows cannot be a node map.
    """
    for found in memberships:
        if found.imex_domain == imex and found.own is not None:
            rows = [(row.index, row.address) for row in (*found.rows, *found.neighbours)]
            names, addresses = node_map(imex, rows=rows, slots=slots)
            return Order(domain=imex, index=found.own.index, names=names, addresses=addresses)
    return None

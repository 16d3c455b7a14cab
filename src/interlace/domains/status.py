"""The status fields that the existing API has, with their old meaning.

``nodes[].status`` is Ready when a channel claim of the domain on that node reports Ready.
``status`` is NotReady while there are fewer nodes than ``spec.numNodes`` or any is NotReady, else
Ready; so an empty domain with numNodes 0 is Ready. Deep health and waiting Pods are in conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from interlace.api.computedomain import ComputeDomainClique, ComputeDomainNode, Readiness
from interlace.api.meta import Condition
from interlace.api.resource import ResourceClaim
from interlace.domains.membership import device_of
from interlace.domains.places import Place

READY = "Ready"
PEERS_CONNECTED = "PeersConnected"


def condition_of(claim: ResourceClaim, type_: str) -> Condition | None:
    """A condition that the agent reported for the claim's channel."""
    device = device_of(claim)
    return next((c for c in device.conditions or () if c.type == type_), None) if device else None


def claim_ready(claim: ResourceClaim) -> bool:
    """Whether the agent reports the channel as ready."""
    condition = condition_of(claim, READY)
    return condition is not None and condition.status == "True"


def node_rows(
    members: Mapping[str, Sequence[ResourceClaim]],
    *,
    cliques: Iterable[ComputeDomainClique],
    fabricless: Iterable[str],
    places: Mapping[str, Place],
) -> list[ComputeDomainNode]:
    """``status.nodes``: members that stand in a written clique or need none, by clique and index."""
    rows = [
        ComputeDomainNode(
            name=row.node_name,
            ip_address=row.ip_address,
            clique_id=row.clique_id,
            index=row.index,
            status=_readiness(members[row.node_name]),
        )
        for clique in cliques
        for row in clique.daemons
        if row.node_name in members
    ]
    rows += [
        ComputeDomainNode(
            name=node,
            ip_address=places[node].address if node in places else "",
            clique_id="",
            index=-1,
            status=_readiness(members[node]),
        )
        for node in fabricless
    ]
    return sorted({row.name: row for row in rows}.values(), key=lambda row: (row.clique_id, row.index, row.name))


def overall(nodes: Sequence[ComputeDomainNode], *, num_nodes: int) -> Readiness:
    """``status.status``."""
    return "Ready" if len(nodes) >= num_nodes and all(node.status == "Ready" for node in nodes) else "NotReady"


def ready_of(nodes: Sequence[ComputeDomainNode]) -> str:
    """``status.readyNodes``: how many of how many."""
    return f"{sum(node.status == 'Ready' for node in nodes)}/{len(nodes)}"


def _readiness(claims: Iterable[ResourceClaim]) -> Readiness:
    return "Ready" if any(map(claim_ready, claims)) else "NotReady"

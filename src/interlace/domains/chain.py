"""The chain from a Pod to its IMEX channel, link by link, for a person who asks why it does not run.

Pure: from the objects that the asker may read to links in order. Invariant: links before the
first that is not ``ok`` are ``ok``; what could not be read is ``unknown`` and never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from interlace.api.computedomain import ComputeDomain, ComputeDomainClique
from interlace.api.core import Pod
from interlace.api.resource import ResourceClaim
from interlace.domains.membership import node_of, pods_of
from interlace.domains.places import Place
from interlace.domains.status import PEERS_CONNECTED, READY, condition_of


class Health(StrEnum):
    """State of one link."""

    OK = "ok"
    WAITING = "waiting"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    """The asker may not read what would tell."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the chain."""

    what: str
    """Kind and name."""
    health: Health
    detail: str


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """One Pod of the domain."""

    pod: str
    node: str
    links: tuple[Link, ...]

    @property
    def waits_for(self) -> Link | None:
        """The first link that is not ok, None if the channel is there."""
        return next((link for link in self.links if link.health not in {Health.OK, Health.UNKNOWN}), None)


def chains(
    domain: ComputeDomain,
    *,
    claims: Iterable[ResourceClaim],
    pods: Mapping[str, Pod],
    cliques: Sequence[ComputeDomainClique] | None,
    places: Mapping[str, Place] | None,
) -> list[Chain]:
    """One chain for each claim of ``domain``; ``pods`` by uid; None for what may not be read."""
    found = [
        _chain(domain, claim, pods=pods, cliques=cliques, places=places)
        for claim in sorted(claims, key=lambda claim: claim.metadata.name)
    ]
    return sorted(found, key=lambda chain: (chain.waits_for is None, chain.node, chain.pod))


def _chain(
    domain: ComputeDomain,
    claim: ResourceClaim,
    *,
    pods: Mapping[str, Pod],
    cliques: Sequence[ComputeDomainClique] | None,
    places: Mapping[str, Place] | None,
) -> Chain:
    node = node_of(claim)
    user = next(iter(pods_of(claim)), None)
    pod = pods.get(user.uid) if user else None
    links = [_pod_link(user.name if user else "", pod), _claim_link(claim, domain, node)]
    if node and links[-1].health is Health.OK:
        links += _node_links(claim, node=node, cliques=cliques, places=places)
    return Chain(pod=user.name if user else "(no Pod)", node=node, links=tuple(links))


def _pod_link(name: str, pod: Pod | None) -> Link:
    if not name:
        return Link(what="Pod", health=Health.WAITING, detail="no Pod uses the claim")
    if pod is None:
        return Link(what=f"Pod {name}", health=Health.UNKNOWN, detail="the Pod could not be read")
    if not pod.spec.node_name:
        scheduled = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        detail = scheduled.message if scheduled and scheduled.message else "not scheduled yet"
        return Link(what=f"Pod {name}", health=Health.WAITING, detail=detail)
    return Link(what=f"Pod {name}", health=Health.OK, detail=f"{pod.status.phase or 'bound'} on {pod.spec.node_name}")


def _claim_link(claim: ResourceClaim, domain: ComputeDomain, node: str) -> Link:
    what = f"ResourceClaim {claim.metadata.name}"
    if claim.metadata.namespace != domain.metadata.namespace:
        return Link(
            what=what,
            health=Health.BROKEN,
            detail=f"is in namespace {claim.metadata.namespace}, the domain in {domain.metadata.namespace}; "
            "a domain serves its own namespace",
        )
    if not node:
        return Link(what=what, health=Health.WAITING, detail="not allocated by the scheduler yet")
    return Link(what=what, health=Health.OK, detail=f"channel allocated on {node}")


def _node_links(
    claim: ResourceClaim,
    *,
    node: str,
    cliques: Sequence[ComputeDomainClique] | None,
    places: Mapping[str, Place] | None,
) -> list[Link]:
    links = []
    fabric = None
    if places is None:
        links.append(Link(what=f"Node {node}", health=Health.UNKNOWN, detail="ResourceSlices may not be read"))
    else:
        fabric = places.get(node, Place()).clique
        if fabric is None:
            detail = "its agent has published no ResourceSlice; check the interlace-agent Pod of the node"
            return [Link(what=f"Node {node}", health=Health.BROKEN, detail=detail)]
        links.append(Link(what=f"Node {node}", health=Health.OK, detail=f"NVLink clique {fabric or '(no fabric)'}"))
    if fabric != "":
        links.append(_row_link(node, cliques))
    links.append(_channel_link(claim))
    peers = condition_of(claim, PEERS_CONNECTED)
    if peers is not None:
        health = Health.OK if peers.status == "True" else Health.BROKEN
        links.append(Link(what="IMEX peers", health=health, detail=peers.message or peers.reason))
    return links


def _row_link(node: str, cliques: Sequence[ComputeDomainClique] | None) -> Link:
    if cliques is None:
        return Link(what="IMEX node map", health=Health.UNKNOWN, detail="ComputeDomainCliques may not be read")
    for clique in cliques:
        for row in clique.daemons:
            if row.node_name == node:
                return Link(
                    what="IMEX node map",
                    health=Health.OK,
                    detail=f"index {row.index}, address {row.ip_address or '(none yet)'}",
                )
    return Link(what="IMEX node map", health=Health.WAITING, detail=f"{node} is not in it yet")


def _channel_link(claim: ResourceClaim) -> Link:
    ready = condition_of(claim, READY)
    if ready is None:
        return Link(what="IMEX channel", health=Health.WAITING, detail="the agent has not reported yet")
    if ready.status == "True":
        return Link(what="IMEX channel", health=Health.OK, detail=f"ready since {ready.last_transition_time}")
    return Link(what="IMEX channel", health=Health.WAITING, detail=f"{ready.reason}: {ready.message}")

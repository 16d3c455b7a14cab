"""The chain from a Pod to its IMEX channel, link by link, for a person who asks why it does not run.

Pure: from the objects that the asker may read to links in order. Invariant: links follow ``Step``,
each step at most once; what could not be read is ``unknown`` and never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from interlace.api.computedomain import DOMAIN_LABEL, ComputeDomain, ComputeDomainClique
from interlace.api.core import Pod
from interlace.api.resource import ResourceClaim, ResourceSlice
from interlace.domains.membership import node_of, pods_of
from interlace.domains.places import Place
from interlace.domains.status import PEERS_CONNECTED, READY, condition_of

HOPELESS = frozenset({"BadConfig", "NoDomainLabel", "WrongNamespace", "UnknownDevice", "ClaimReplaced"})
"""Reasons of the agent that no waiting ends: somebody has to change the claim or the Pod."""
_ENDED = frozenset({"Succeeded", "Failed"})


class Step(StrEnum):
    """The links of a chain, in their order."""

    POD = "pod"
    CLAIM = "claim"
    NODE = "node"
    MAP = "map"
    CHANNEL = "channel"
    PEERS = "peers"


class Health(StrEnum):
    """State of one link."""

    OK = "ok"
    WAITING = "waiting"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    """The asker may not read what would tell."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the chain."""

    step: Step
    what: str
    """Kind and name."""
    health: Health
    detail: str
    since: str | None = None
    """When a channel became ready, RFC 3339."""


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """One Pod of the domain."""

    pod: str
    """Its name; with its namespace if that is not the domain's."""
    node: str
    links: tuple[Link, ...]

    @property
    def waits_for(self) -> Link | None:
        """The first link that is waiting or broken, None if none is known to be."""
        return next((link for link in self.links if link.health not in {Health.OK, Health.UNKNOWN}), None)

    def link(self, step: Step) -> Link | None:
        """The link of this step, if the chain came so far."""
        return next((link for link in self.links if link.step is step), None)


def chains(
    domain: ComputeDomain,
    *,
    claims: Iterable[ResourceClaim],
    pods: Mapping[str, Pod] | None,
    cliques: Sequence[ComputeDomainClique] | None,
    places: Mapping[str, Place] | None,
) -> list[Chain]:
    """One chain for each Pod of ``domain``, those that wait first; ``pods`` by uid, None for what may not be read.

    ``cliques`` are the node maps with the label of the domain, and those that domains share.

    A Pod is one of the domain's through a claim with its label, or because it names its claim template.
    Claims that nobody uses and that hold no node wait for nothing and are left out.
    """
    known = pods or {}
    used = [claim for claim in claims if node_of(claim) or pods_of(claim)]
    found = [_chain(domain, claim, pods=known, cliques=cliques, places=places) for claim in used]
    served = {user.uid for claim in used for user in pods_of(claim)}
    found += [_claimless(domain, pod) for uid, pod in known.items() if uid not in served and _asks(pod, domain)]
    return sorted(found, key=lambda chain: (chain.waits_for is None, chain.node, chain.pod))


def unhealthy(slices: Iterable[ResourceSlice]) -> dict[str, str]:
    """Nodes that offer no channel since their fabric is unhealthy, with the agent's reason."""
    return {
        slice_.spec.node_name or slice_.spec.pool.name: reason.string
        for slice_ in slices
        for device in slice_.spec.devices
        if (reason := device.attributes.get("reason")) is not None and reason.string
    }


def _asks(pod: Pod, domain: ComputeDomain) -> bool:
    """Whether a Pod that is still to run names the claim template of the domain."""
    if domain.spec is None or pod.metadata.namespace != domain.metadata.namespace:
        return False
    template = domain.spec.channel.resource_claim_template.name
    return (
        pod.status.phase not in _ENDED
        and pod.metadata.deletion_timestamp is None
        and any(entry.resource_claim_template_name == template for entry in pod.spec.resource_claims)
    )


def _claimless(domain: ComputeDomain, pod: Pod) -> Chain:
    template = domain.spec.channel.resource_claim_template.name if domain.spec else ""
    name = pod.metadata.name
    claim = Link(
        step=Step.CLAIM,
        what="ResourceClaim",
        health=Health.WAITING,
        detail=f"none was made from ResourceClaimTemplate {template} yet; "
        f"`kubectl describe pod {name} -n {pod.metadata.namespace}` shows why",
    )
    exists = Link(step=Step.POD, what=f"Pod {name}", health=Health.OK, detail="exists")
    return Chain(pod=name, node="", links=(exists, claim))


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
        links += _node_links(claim, node=node, cliques=cliques, places=places, uid=domain.metadata.uid)
    name = user.name if user else "(no Pod)"
    if claim.metadata.namespace != domain.metadata.namespace:
        name = f"{claim.metadata.namespace}/{name}"
    return Chain(pod=name, node=node, links=tuple(links))


def _pod_link(name: str, pod: Pod | None) -> Link:
    if not name:
        return Link(step=Step.POD, what="Pod", health=Health.WAITING, detail="no Pod uses the claim")
    if pod is None:
        return Link(step=Step.POD, what=f"Pod {name}", health=Health.UNKNOWN, detail="the Pod could not be read")
    if not pod.spec.node_name:
        scheduled = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        detail = scheduled.message if scheduled and scheduled.message else "not scheduled yet"
        return Link(step=Step.POD, what=f"Pod {name}", health=Health.WAITING, detail=detail)
    return Link(
        step=Step.POD,
        what=f"Pod {name}",
        health=Health.OK,
        detail=f"{pod.status.phase or 'bound'} on {pod.spec.node_name}",
    )


def _claim_link(claim: ResourceClaim, domain: ComputeDomain, node: str) -> Link:
    what = f"ResourceClaim {claim.metadata.name}"
    if claim.metadata.namespace != domain.metadata.namespace:
        return Link(
            step=Step.CLAIM,
            what=what,
            health=Health.BROKEN,
            detail=f"is in namespace {claim.metadata.namespace}, the domain in {domain.metadata.namespace}; "
            "a domain serves its own namespace",
        )
    if not node:
        return Link(step=Step.CLAIM, what=what, health=Health.WAITING, detail="not allocated by the scheduler yet")
    return Link(step=Step.CLAIM, what=what, health=Health.OK, detail=f"channel allocated on {node}")


def _node_links(
    claim: ResourceClaim,
    *,
    node: str,
    cliques: Sequence[ComputeDomainClique] | None,
    places: Mapping[str, Place] | None,
    uid: str,
) -> list[Link]:
    links = []
    fabric = None
    if places is None:
        links.append(
            Link(step=Step.NODE, what=f"Node {node}", health=Health.UNKNOWN, detail="ResourceSlices may not be read")
        )
    else:
        fabric = places.get(node, Place()).clique
        if fabric is None:
            detail = "its agent has published no ResourceSlice; check the interlace-agent Pod of the node"
            return [Link(step=Step.NODE, what=f"Node {node}", health=Health.BROKEN, detail=detail)]
        links.append(
            Link(
                step=Step.NODE, what=f"Node {node}", health=Health.OK, detail=f"NVLink clique {fabric or '(no fabric)'}"
            )
        )
    if fabric != "":
        links.append(_row_link(node, cliques, uid=uid))
    links.append(_channel_link(claim))
    peers = condition_of(claim, PEERS_CONNECTED)
    if peers is not None:
        health = Health.OK if peers.status == "True" else Health.BROKEN
        links.append(Link(step=Step.PEERS, what="IMEX peers", health=health, detail=peers.message or peers.reason))
    return links


def _row_link(node: str, cliques: Sequence[ComputeDomainClique] | None, *, uid: str) -> Link:
    if cliques is None:
        return Link(
            step=Step.MAP, what="IMEX node map", health=Health.UNKNOWN, detail="ComputeDomainCliques may not be read"
        )
    for clique in cliques:
        entry = next((entry for entry in clique.channels if entry.domain == uid), None)
        if entry is None and clique.metadata.labels.get(DOMAIN_LABEL) != uid:
            continue
        for row in clique.daemons:
            if row.node_name == node and (entry is None or row.index in entry.indexes):
                detail = f"index {row.index}, address {row.ip_address or '(none yet)'}"
                if entry is not None:
                    others = len(clique.channels) - 1
                    detail += f", channel {entry.channel}"
                    detail += f"; shared with {others} more {'domain' if others == 1 else 'domains'}" if others else ""
                return Link(step=Step.MAP, what="IMEX node map", health=Health.OK, detail=detail)
    return Link(step=Step.MAP, what="IMEX node map", health=Health.WAITING, detail=f"{node} is not in it yet")


def _channel_link(claim: ResourceClaim) -> Link:
    ready = condition_of(claim, READY)
    if ready is None:
        return Link(
            step=Step.CHANNEL, what="IMEX channel", health=Health.WAITING, detail="the agent has not reported yet"
        )
    if ready.status == "True":
        since = ready.last_transition_time
        detail = f"ready since {since}" if since else "ready"
        return Link(step=Step.CHANNEL, what="IMEX channel", health=Health.OK, detail=detail, since=since)
    health = Health.BROKEN if ready.reason in HOPELESS else Health.WAITING
    return Link(
        step=Step.CHANNEL, what="IMEX channel", health=health, detail=f"{ready.reason}: {ready.message}".rstrip(": ")
    )

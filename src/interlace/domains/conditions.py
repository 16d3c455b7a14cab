"""The conditions of a ComputeDomain.

Each says one thing in one sentence for the person who looks at the domain: ``Ready`` (all that
there is works and nothing waits), ``TemplateReady``, ``WithinOneClique``, ``PeersConnected``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from interlace.api.computedomain import ComputeDomainNode, ComputeDomainSpec
from interlace.api.meta import Condition
from interlace.api.resource import GROUP, ResourceClaim
from interlace.domains.reasons import DomainReason, WaitReason
from interlace.domains.status import PEERS_CONNECTED, READY, condition_of, overall
from interlace.domains.waiting import Wait

TEMPLATE_READY = "TemplateReady"
WITHIN_ONE_CLIQUE = "WithinOneClique"
DEVICE_STATUS_KEPT = "DeviceStatusKept"

_NAMED = 4
"""How many nodes, cliques or messages are named before the rest is only counted."""


class Truth(StrEnum):
    """``status`` of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


def is_formed(found: Iterable[Condition]) -> bool:
    """Whether the conditions of a domain say that all its nodes are ready, and that it has some."""
    return any((c.type, c.status, c.reason) == (READY, Truth.TRUE, DomainReason.FORMED) for c in found)


def ready(
    nodes: Sequence[ComputeDomainNode], *, spec: ComputeDomainSpec | None, template: Condition, waits: Sequence[Wait]
) -> Condition:
    """``Ready``: what the old status says, and no Pod of the domain waits.

    Claims in other namespaces do not count: whoever made them has no say over this domain.
    """
    waits = [wait for wait in waits if wait.reason is not WaitReason.WRONG_NAMESPACE]
    if spec is None:
        return condition(
            READY,
            Truth.FALSE,
            DomainReason.NO_SPEC,
            "The ComputeDomain has no spec: it was stored before spec was required; delete it and create it again.",
        )
    if template.status != Truth.TRUE:
        return condition(READY, Truth.FALSE, template.reason, template.message)
    if waits:
        first = waits[0]
        others = len(waits) - 1
        more = f" ({others} more {_plural(others, 'claim')} {'waits' if others == 1 else 'wait'}.)" if others else ""
        return condition(READY, Truth.FALSE, first.reason, first.message + more)
    if len(nodes) < spec.num_nodes:
        return condition(
            READY,
            Truth.FALSE,
            DomainReason.TOO_FEW_NODES,
            f"{len(nodes)} of the {spec.num_nodes} nodes in spec.numNodes are there.",
        )
    if overall(nodes, num_nodes=spec.num_nodes) != "Ready":
        late = [node.name for node in nodes if node.status != "Ready"]
        return condition(READY, Truth.FALSE, WaitReason.IMEX, f"Not ready yet: {listed(late)}.")
    if not nodes:
        return condition(READY, Truth.TRUE, DomainReason.NO_NODES, "No Pod uses the domain at present.")
    cliques = len({node.clique_id for node in nodes if node.clique_id})
    where = f" in {cliques} {_plural(cliques, 'clique')}" if cliques else " without a fabric"
    are = "is" if len(nodes) == 1 else "are"
    return condition(
        READY, Truth.TRUE, DomainReason.FORMED, f"{len(nodes)} {_plural(len(nodes), 'node')}{where} {are} ready."
    )


def within_one_clique(nodes: Sequence[ComputeDomainNode]) -> Condition:
    """``WithinOneClique``: whether NVLink reaches from each node of the domain to each other one."""
    sizes = Counter(node.clique_id for node in nodes)
    fabricless = [node.name for node in nodes if not node.clique_id]
    named = [f"{clique} ({size} {_plural(size, 'node')})" for clique, size in sorted(sizes.items()) if clique]
    if not nodes:
        return condition(WITHIN_ONE_CLIQUE, Truth.UNKNOWN, DomainReason.NO_NODES, "The domain has no nodes.")
    if fabricless:
        message = f"Nodes without an NVLink fabric: {listed(fabricless)}."
        if named:
            message += f" Cliques: {listed(named)}."
        return condition(WITHIN_ONE_CLIQUE, Truth.FALSE, DomainReason.NO_FABRIC, message)
    if len(named) > 1:
        return condition(
            WITHIN_ONE_CLIQUE,
            Truth.FALSE,
            DomainReason.SEVERAL_CLIQUES,
            f"NVLink does not connect these cliques with each other: {listed(named)}.",
        )
    return condition(WITHIN_ONE_CLIQUE, Truth.TRUE, DomainReason.ONE_CLIQUE, f"All nodes are in clique {named[0]}.")


def peers_connected(members: Mapping[str, Iterable[ResourceClaim]]) -> Condition:
    """``PeersConnected``: what the agents report about IMEX connections, False wins."""
    reports = [
        (node, found)
        for node, claims in members.items()
        for claim in claims
        if (found := condition_of(claim, PEERS_CONNECTED)) is not None
    ]
    broken = list(dict.fromkeys(f"{node}: {found.message}" for node, found in reports if found.status == Truth.FALSE))
    if broken:
        return condition(PEERS_CONNECTED, Truth.FALSE, DomainReason.DISCONNECTED, listed(broken, separator="; "))
    if any(found.status == Truth.TRUE for _, found in reports):
        return condition(PEERS_CONNECTED, Truth.TRUE, DomainReason.CONNECTED, "All IMEX daemons see each other.")
    return condition(
        PEERS_CONNECTED, Truth.UNKNOWN, DomainReason.NOT_REPORTED, "No agent has reported connections between peers."
    )


def device_status_dropped(*, version: str) -> Condition:
    """``DeviceStatusKept`` is False; where the server keeps the status of devices, the condition is not there.

    ``version`` is that of ``resource.k8s.io`` on the server.
    """
    return condition(
        DEVICE_STATUS_KEPT,
        Truth.FALSE,
        DomainReason.DEVICE_STATUS_DROPPED,
        f"The API server ({GROUP}/{version}) does not keep ResourceClaim.status.devices, so the claims do not show how "
        "they stand; this status is read from annotations of ResourceSlices instead. Turn on the feature gate "
        "DRAResourceClaimDeviceStatus of kube-apiserver, or use Kubernetes 1.33 or later, where it is on.",
    )


def template_ready(
    reason: DomainReason, *, name: str, namespace: str, holder: str = "", message: str = ""
) -> Condition:
    """``TemplateReady`` for the template ``name``; ``holder`` says whose the name is if it is taken."""
    path = f"{namespace}/{name}"
    match reason:
        case DomainReason.TEMPLATE_CREATED:
            return condition(TEMPLATE_READY, Truth.TRUE, reason, f"ResourceClaimTemplate {path} exists.")
        case DomainReason.TEMPLATE_NAME_TAKEN:
            whose = f"belongs to {holder}" if holder else "exists and does not belong to this ComputeDomain"
            text = (
                f"ResourceClaimTemplate {path} {whose}; delete it, or create the ComputeDomain again with another "
                "spec.channel.resourceClaimTemplate.name."
            )
        case DomainReason.TEMPLATE_INVALID:
            text = (
                f"ResourceClaimTemplate {path} was refused: {message}; create the ComputeDomain again with another "
                "spec.channel.resourceClaimTemplate.name."
            )
        case DomainReason.TEMPLATE_REFUSED:
            text = (
                f"ResourceClaimTemplate {path} may not be created: {message}; have the quota, admission rule or right "
                "that is named there changed, and it is created within 15 s."
            )
        case DomainReason.NO_SPEC:
            text = "The ComputeDomain has no spec, so there is no name for a ResourceClaimTemplate."
        case _:
            text = f"ResourceClaimTemplate {path} is being replaced."
    return condition(TEMPLATE_READY, Truth.FALSE, reason, text)


def condition(type_: str, status: Truth, reason: str, message: str) -> Condition:
    """A condition without the fields that ``stamp`` adds."""
    return Condition(type=type_, status=status.value, reason=str(reason), message=message)


def stamp(
    conditions: Iterable[Condition], *, before: Iterable[Condition], generation: int, now: str
) -> list[Condition]:
    """Add generation and transition time; the time stays while ``status`` does. ``now`` is RFC 3339."""
    old = {c.type: c for c in before}
    return [
        Condition(
            type=c.type,
            status=c.status,
            reason=c.reason,
            message=c.message,
            observed_generation=generation,
            last_transition_time=old[c.type].last_transition_time
            if c.type in old and old[c.type].status == c.status and old[c.type].last_transition_time
            else now,
        )
        for c in conditions
    ]


def listed(names: Sequence[str], *, separator: str = ", ") -> str:
    """The first few of ``names``, the rest counted."""
    more = len(names) - _NAMED
    return separator.join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _plural(number: int, word: str) -> str:
    return word if number == 1 else word + "s"

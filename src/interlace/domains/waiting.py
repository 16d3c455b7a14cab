"""What each Pod of a domain waits for, and when it is told.

A wait that time alone may end is told once it has lasted ``PATIENCE``: on the way to a formed
domain nobody hears anything. One that needs a person is told at once. Each is told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from interlace.api.computedomain import ComputeDomainNode
from interlace.api.resource import ResourceClaim
from interlace.domains.cliques import Plan
from interlace.domains.membership import Membership, node_of
from interlace.domains.reasons import WaitReason
from interlace.domains.status import READY, claim_ready, condition_of

PATIENCE = 5.0
"""Seconds that a Pod waits before it is told why."""


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """One claim and what keeps its Pod from its channel."""

    claim: ResourceClaim
    reason: WaitReason
    message: str


def waits(
    membership: Membership, *, plan: Plan, nodes: Sequence[ComputeDomainNode], domain: str, refusal: str = ""
) -> list[Wait]:
    """All waits of the domain named ``domain`` (``namespace/name``), worst reason first.

    ``refusal`` is why the API server did not take the node map last.
    """
    found = [
        Wait(
            claim=claim,
            reason=WaitReason.WRONG_NAMESPACE,
            message=f"ResourceClaim {_path(claim)} asks for a channel of ComputeDomain {domain}, which is in another "
            "namespace; use a ComputeDomain in the namespace of the Pod.",
        )
        for claim in membership.strangers
    ]
    found += [
        Wait(
            claim=claim,
            reason=WaitReason.ALLOCATION,
            message=f"ResourceClaim {_path(claim)} is not allocated: the scheduler has found no node that suits the "
            f"Pod and has no channel in use; see the scheduler's event on the Pod.",
        )
        for claim in membership.unallocated
    ]
    written = {node.name for node in nodes}
    for node, claims in membership.members.items():
        found += [
            Wait(claim=claim, reason=reason, message=message)
            for claim in claims
            if not claim_ready(claim) and claim.metadata.deletion_timestamp is None
            for reason, message in [_on_node(claim, plan=plan, written=node in written, refusal=refusal)]
        ]
    order = list(WaitReason)
    return sorted(found, key=lambda wait: order.index(wait.reason))


def _on_node(claim: ResourceClaim, *, plan: Plan, written: bool, refusal: str) -> tuple[WaitReason, str]:
    node = node_of(claim)
    if node in plan.no_agent:
        return WaitReason.AGENT, (
            f"The Interlace agent of node {node} has published no ResourceSlice that says which NVLink clique the node "
            "is in; check the interlace-agent Pod of that node."
        )
    if node in plan.no_host:
        return WaitReason.HOST, (
            f"Node {node} has no imex-host Pod with an address; check the interlace-imex-host Pod of that node."
        )
    if node in plan.full:
        return WaitReason.CLIQUE_FULL, (
            f"NVLink clique {plan.full[node]} already holds as many nodes of this domain as its IMEX node map has "
            f"slots, so node {node} cannot join; run fewer Pods or raise --max-nodes-per-imex-domain."
        )
    if not written:
        cause = f": the API server refuses it ({refusal})" if refusal else ""
        return WaitReason.CLIQUE, f"Node {node} is not in the IMEX node map of the domain yet{cause}."
    condition = condition_of(claim, READY)
    if condition is None:
        return WaitReason.PREPARE, (
            f"Node {node} is in the domain, but its agent has not reported on ResourceClaim {_path(claim)}: kubelet "
            "has not called it yet, or the interlace-agent Pod of that node does not run."
        )
    if condition.reason == WaitReason.PEERS:
        return WaitReason.PEERS, condition.message
    return WaitReason.IMEX, f"IMEX on node {node} is not ready ({condition.reason}): {condition.message}".rstrip(": ")


def _path(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


class Patience:
    """Remembers since when each claim of one domain has waited for what, and what was told."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, WaitReason], float] = {}
        self._told: set[tuple[str, WaitReason]] = set()

    def due(self, current: Iterable[Wait], *, now: float) -> list[Wait]:
        """Those of the current waits that are to be told now; each is returned once while it lasts."""
        keyed = {(wait.claim.metadata.uid, wait.reason): wait for wait in current}
        self._since = {key: self._since.get(key, now) for key in keyed}
        self._told &= keyed.keys()
        ripe = {
            key: wait
            for key, wait in keyed.items()
            if key not in self._told and (wait.reason.permanent or self._since[key] + PATIENCE <= now)
        }
        self._told |= ripe.keys()
        return list(ripe.values())

    def next_in(self, *, now: float) -> float | None:
        """Seconds until ``due`` would return one of the waits that it knows, None if it would not."""
        times = [since + PATIENCE - now for key, since in self._since.items() if key not in self._told]
        return max(0.0, min(times)) if times else None

"""Condition ``PeersAwaited`` of domains that ask for their peers before Pods start (``spec.waitForPeers``).

The agents hold the Pods back; this says for the domain how it stands, and where it can never be: a workload that
makes its Pods one after another makes the second only when the first is Ready, and that waits for the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from interlace.api.computedomain import PeerBarrier
from interlace.api.core import Pod
from interlace.api.meta import Condition
from interlace.api.resource import ResourceClaim
from interlace.domains.conditions import Truth, condition, listed
from interlace.domains.membership import Membership, node_of, pods_of
from interlace.domains.reasons import DomainReason
from interlace.domains.status import READY, condition_of

PEERS_AWAITED: Final = "PeersAwaited"
WAITING, LATE = "WaitingForPeers", "StartedWithoutPeers"
"""Reasons of the agents' condition ``Ready``."""


def waiting(claims: Membership) -> list[ResourceClaim]:
    """The claims whose Pods are held back."""
    return _with_reason(claims, WAITING)


def too_few(claims: Membership, *, barrier: PeerBarrier) -> bool:
    """Whether Pods are held back for more nodes than there are Pods, so that none of those that exist can help."""
    users = {pod.uid for claim in (*claims.unallocated, *_allocated(claims)) for pod in pods_of(claim)}
    return bool(waiting(claims)) and len(users) < barrier.nodes


def maker_of(pod: Pod) -> str:
    """What makes Pods one after another and made this one, ``""`` for nobody who does."""
    owners = [owner for owner in pod.metadata.owner_references if owner.controller and owner.kind == "StatefulSet"]
    return f"StatefulSet {pod.metadata.namespace}/{owners[0].name}" if owners else ""


def peers_awaited(claims: Membership, *, barrier: PeerBarrier, maker: str) -> Condition:
    """The condition; ``maker`` is what makes the Pods one after another, where there are too few of them."""
    held, late = waiting(claims), _with_reason(claims, LATE)
    if held and too_few(claims, barrier=barrier):
        pods = "1 Pod" if len(held) == 1 else f"{len(held)} Pods"
        text = f"{pods} waits" if len(held) == 1 else f"{pods} wait"
        text += f" for {barrier.nodes} nodes (spec.waitForPeers.nodes), and no other Pod of the domain exists. "
        if maker and len(held) == 1:  # in order, no second one is made while one is not Ready
            text += (
                f"{maker} makes the next Pod only when this one is Ready, unless its podManagementPolicy is Parallel: "
                f"in order, each Pod waits for all {barrier.timeout_seconds} s. Use podManagementPolicy Parallel, or "
                "leave spec.waitForPeers.nodes at 0, with which a Pod waits for those before it alone."
            )
            return condition(PEERS_AWAITED, Truth.FALSE, DomainReason.ORDERED_START, text)
        text += "Start more Pods, or create the domain again with fewer nodes in spec.waitForPeers."
        return condition(PEERS_AWAITED, Truth.FALSE, DomainReason.TOO_FEW_PODS, text)
    if held:
        said = [found.message for claim in held if (found := condition_of(claim, READY)) is not None]
        return condition(PEERS_AWAITED, Truth.FALSE, DomainReason.PEERS_MISSING, listed(said, separator=" "))
    if late:
        names = listed([node_of(claim) for claim in late])
        text = f"After {barrier.timeout_seconds} s Pods started without all of their peers on: {names}."
        return condition(PEERS_AWAITED, Truth.FALSE, DomainReason.STARTED_LATE, text)
    return condition(PEERS_AWAITED, Truth.TRUE, DomainReason.CONNECTED, "No Pod waits for its peers.")


def _allocated(claims: Membership) -> Sequence[ResourceClaim]:
    return [claim for found in claims.members.values() for claim in found]


def _with_reason(claims: Membership, reason: str) -> list[ResourceClaim]:
    return [
        claim
        for claim in _allocated(claims)
        if (found := condition_of(claim, READY)) is not None and found.reason == reason
    ]

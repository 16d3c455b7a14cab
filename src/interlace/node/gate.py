"""May a claim be answered now? A pure function of what the node knows, asked again at every change.

Invariant: it opens for a claim only on a node without a fabric, or when the own IMEX is ready for that
very domain, at the index of the node's row, and no claim of another domain is prepared here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlace.imex.order import State
from interlace.node.cdi import PreparedClaim
from interlace.node.demand import Demand
from interlace.node.errors import Reason
from interlace.node.fabric import Fabric
from interlace.node.membership import Membership


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the node knows at one moment."""

    node: str
    fabric: Fabric
    synced: bool
    """Whether the cliques have been read once."""
    memberships: Mapping[str, Membership]
    prepared: Sequence[PreparedClaim]
    """The completed ones."""
    host: State | None
    order_fault: str = ""
    """Why the wanted order could not be made or was refused by the host; empty: it was not."""


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """Go on. ``index`` -1: nothing is injected."""

    index: int


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    """Wait, or give up if ``permanent``. The message has no subject: the claim is put before it."""

    reason: Reason
    message: str
    permanent: bool = False


def gate(demand: Demand, view: View) -> Open | Closed:
    """The verdict for one claim."""
    if not view.fabric.healthy:
        return Closed(
            reason=Reason.FABRIC_UNHEALTHY,
            message=f"the fabric of node {view.node} is not healthy ({view.fabric.reason}): {view.fabric.message}",
        )
    if not view.fabric.clique:
        return Open(index=-1)
    others = [held for held in view.prepared if held.domain != demand.domain]
    if others:
        names = ", ".join(f"{held.claim.namespace}/{held.claim.name}" for held in others)
        return Closed(
            reason=Reason.OTHER_DOMAIN,
            message=f"node {view.node} still holds a channel of domain {others[0].domain} (claim {names}); it is free "
            "once kubelet has unprepared that, which it does when the pod has ended.",
        )
    return _membership(demand, view)


def _membership(demand: Demand, view: View) -> Open | Closed:
    found = view.memberships.get(demand.domain)
    if found is not None and found.namespace and found.namespace != demand.claim.namespace:
        return Closed(
            reason=Reason.WRONG_NAMESPACE,
            message=f"ComputeDomain {found.namespace}/{found.name} ({demand.domain}) is in another namespace; a claim "
            "has to be in the namespace of its ComputeDomain.",
            permanent=True,
        )
    if found is None or found.own is None:
        cause = (
            f"the controller has not made node {view.node} a member of domain {demand.domain} yet (clique "
            f"{view.fabric.clique})"
            if view.synced
            else "the ComputeDomainCliques have not been read from the API server yet"
        )
        return Closed(
            reason=Reason.NOT_A_MEMBER_YET,
            message=f"{cause}; check that a ComputeDomain with this uid exists in namespace {demand.claim.namespace} "
            "and that the controller runs.",
        )
    return _imex(demand, view, found.own.index)


def _imex(demand: Demand, view: View, index: int) -> Open | Closed:
    if view.order_fault:
        return Closed(reason=Reason.IMEX_FAILED, message=f"IMEX cannot be ordered: {view.order_fault}.")
    host = view.host
    if host is None:
        return Closed(
            reason=Reason.IMEX_HOST_UNREACHABLE,
            message=f"the imex-host of node {view.node} does not answer; check its imex-host pod.",
        )
    if host.domain != demand.domain or host.index != index:
        return Closed(
            reason=Reason.IMEX_STARTING,
            message=f"the imex-host of node {view.node} has not turned to this domain yet (it is {host.phase}"
            f"{f' for domain {host.domain}, index {host.index}' if host.domain else ''}).",
        )
    if host.phase == "Ready":
        return Open(index=index)
    detail = f" ({host.reason}): {host.message}" if host.message else ""
    if host.phase == "Failed":
        return Closed(reason=Reason.IMEX_FAILED, message=f"nvidia-imex on node {view.node} failed{detail}.")
    return Closed(
        reason=Reason.IMEX_STARTING, message=f"nvidia-imex on node {view.node} is {host.phase.lower()}{detail}."
    )

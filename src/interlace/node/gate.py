"""May a claim be answered now? A pure function of what the node knows, asked again at every change.

Invariant: it opens for a claim only on a node without a fabric, or when the own IMEX is ready for that
very domain, at the index of the node's row, and no claim of another domain is prepared here; domains that
share an IMEX domain are not others to each other. Peers count only where the domain asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlace.imex.order import State
from interlace.node.cdi import PreparedClaim
from interlace.node.demand import Demand
from interlace.node.errors import Reason
from interlace.node.fabric import Fabric
from interlace.node.membership import Membership, away_from

NAMED = 8
"""How many peers are named before the rest is only counted."""


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
    peers_outdated: bool = False
    """Whether what the host says of the peers is about an earlier node map."""


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """Go on. ``index`` -1: nothing is injected."""

    index: int
    channel: int = 0
    imex: str = ""
    """As in ``Membership``."""
    late: str = ""
    """Which peers are missing although the time to wait for them is over."""


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    """Wait, or give up if ``permanent``. The message has no subject: the claim is put before it."""

    reason: Reason
    message: str
    permanent: bool = False
    until: float | None = None
    """Seconds of waiting in all after which the gate opens even if nothing changes."""


def gate(demand: Demand, view: View, *, waited: float = 0.0) -> Open | Closed:
    """The verdict for one claim, for which kubelet asked first ``waited`` seconds ago."""
    if not view.fabric.healthy:
        return Closed(
            reason=Reason.FABRIC_UNHEALTHY,
            message=f"the fabric of node {view.node} is not healthy ({view.fabric.reason}): {view.fabric.message}",
        )
    if not view.fabric.clique:
        return Open(index=-1)
    found = view.memberships.get(demand.domain)
    holder = found.holder if found is not None else demand.domain
    others = [held for held in view.prepared if held.holder != holder]
    if others and (found is not None or any(held.holder == held.domain for held in others)):
        names = ", ".join(f"{held.claim.namespace}/{held.claim.name}" for held in others)
        return Closed(
            reason=Reason.OTHER_DOMAIN,
            message=f"node {view.node} still holds a channel of domain {others[0].domain} (claim {names}); it is free "
            "once kubelet has unprepared that, which it does when the pod has ended.",
        )
    return _membership(demand, view, found, waited=waited)


def _membership(demand: Demand, view: View, found: Membership | None, *, waited: float) -> Open | Closed:
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
    if found.imex and demand.all_channels:
        return Closed(
            reason=Reason.BAD_CONFIG,
            message=f"allocationMode All would hand out the channels of other domains, as ComputeDomain "
            f"{found.namespace}/{found.name} has isolation Channel; use Single, or isolation Domain.",
            permanent=True,
        )
    return _imex(view, found, found.own.index, waited=waited)


def _imex(view: View, found: Membership, index: int, *, waited: float) -> Open | Closed:
    if view.order_fault:
        return Closed(reason=Reason.IMEX_FAILED, message=f"IMEX cannot be ordered: {view.order_fault}.")
    host = view.host
    if host is None:
        return Closed(
            reason=Reason.IMEX_HOST_UNREACHABLE,
            message=f"the imex-host of node {view.node} does not answer; check its imex-host pod.",
        )
    if host.domain != found.imex_domain or host.index != index:
        return Closed(
            reason=Reason.IMEX_STARTING,
            message=f"the imex-host of node {view.node} has not turned to this domain yet (it is {host.phase}"
            f"{f' for domain {host.domain}, index {host.index}' if host.domain else ''}).",
        )
    if host.phase == "Ready":
        return _peers(view, found, host, index, waited=waited)
    detail = f" ({host.reason}): {host.message}" if host.message else ""
    if host.phase == "Failed":
        return Closed(reason=Reason.IMEX_FAILED, message=f"nvidia-imex on node {view.node} failed{detail}.")
    return Closed(
        reason=Reason.IMEX_STARTING, message=f"nvidia-imex on node {view.node} is {host.phase.lower()}{detail}."
    )


def _peers(view: View, found: Membership, host: State, index: int, *, waited: float) -> Open | Closed:
    """The barrier of ``spec.waitForPeers``."""
    passed = Open(index=index, channel=found.channel, imex=found.imex)
    barrier = found.barrier
    if barrier is None:
        return passed
    missing = []
    if barrier.present < barrier.nodes:
        missing.append(f"{barrier.nodes - barrier.present} of {barrier.nodes} nodes have not joined")
    if host.peers == "Unknown" or view.peers_outdated:
        away = [row.index for row in found.rows if row.index != index]
    else:
        away = away_from(host, found)
    if away:
        missing.append(f"no connection to {listed([found.node_at(peer) for peer in away])}")
    if not missing:
        return passed
    if waited >= barrier.timeout_seconds:
        return msgspec.structs.replace(passed, late="; ".join(missing))
    return Closed(
        reason=Reason.WAITING_FOR_PEERS,
        message=f"IMEX on node {view.node} is ready and waits for its peers, at most {barrier.timeout_seconds} s: "
        f"{'; '.join(missing)}.",
        until=float(barrier.timeout_seconds),
    )


def listed(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")

"""One scheduling decision: filter the nodes, score what is left, say why if nothing is.

Invariant: the same pod, snapshot and devices always give the same answer; ties go to the first node.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from interlace.sim.platform.devicekinds import Allocation, DeviceClass
from interlace.sim.platform.kinds import NodeSelector
from interlace.sim.platform.scheduling import fit, neighbours, placement, spreading
from interlace.sim.platform.scheduling.devices import DeviceId, Matcher, Pool, Wanted, allocate
from interlace.sim.platform.scheduling.snapshot import NodeInfo, PodInfo, Snapshot
from interlace.sim.platform.selectors import node_matches

_ALL_BELOW = 100
"""Clusters up to this size are looked at whole; in larger ones a share is enough (numFeasibleNodesToFind)."""

CLAIMS_ELSEWHERE = "resourceclaim not available on the node"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What the pod's claims need: places where allocated ones are, and devices for the others."""

    pinned: tuple[NodeSelector, ...] = ()
    wanted: tuple[Wanted, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What there is to give."""

    pools: Mapping[str, Sequence[Pool]]
    taken: AbstractSet[DeviceId]
    classes: Mapping[str, DeviceClass]
    matches: Matcher


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The pod goes to ``node``; allocations are in the order of ``Demand.wanted``."""

    node: str
    allocations: tuple[Allocation, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """No node fits."""

    message: str
    claims_elsewhere: bool
    """Some node was ruled out only because a claim is allocated for another one."""


def decide(pod: PodInfo, snapshot: Snapshot, *, demand: Demand, offer: Offer) -> Placed | Refused:
    """Choose a node for the pod.

    Raises:
        SelectorError: a device selector failed, which stops the whole attempt as in kube-scheduler.
        Unsatisfiable: a claim can be served by no node.
    """
    around = neighbours.survey(pod, snapshot)
    counts = spreading.census(pod, snapshot)
    enough = feasible_enough(len(snapshot.nodes))
    reasons: Counter[str] = Counter()
    feasible: list[tuple[NodeInfo, tuple[Allocation, ...]]] = []
    for node in snapshot.nodes:
        why = _obstacles(pod, node, around, counts, demand)
        allocations: tuple[Allocation, ...] | None = ()
        if not why and demand.wanted:
            allocations = allocate(
                demand.wanted,
                node=node.name,
                pools=offer.pools.get(node.name, ()),
                taken=offer.taken,
                classes=offer.classes,
                matches=offer.matches,
            )
            why = ["cannot allocate all claims"] if allocations is None else []
        if why or allocations is None:
            reasons.update(why)
            continue
        feasible.append((node, allocations))
        if len(feasible) >= enough:
            break
    if not feasible:
        return Refused(
            message=refusal_message(len(snapshot.nodes), reasons), claims_elsewhere=CLAIMS_ELSEWHERE in reasons
        )
    best = rank(pod, [node for node, _ in feasible])
    return next(
        Placed(node=node.name, allocations=allocations) for node, allocations in feasible if node.name == best.name
    )


def _obstacles(
    pod: PodInfo,
    node: NodeInfo,
    around: neighbours.Neighbourhood,
    counts: Mapping[int, Mapping[str, int]],
    demand: Demand,
) -> list[str]:
    """Reasons of the first filter that refuses, in kube-scheduler's order."""
    if why := placement.refusal(pod, node):
        return [why]
    if shortages := fit.shortages(pod, node):
        return shortages
    if why := spreading.skewed(pod, node, counts) or neighbours.objection(pod, node, around):
        return [why]
    if any(not node_matches(selector, name=node.name, labels=node.labels) for selector in demand.pinned):
        return [CLAIMS_ELSEWHERE]
    return []


def feasible_enough(nodes: int) -> int:
    """How many feasible nodes are enough: 50 % less 1 % for each 125 nodes, at least 5 %, at least 100 nodes."""
    if nodes <= _ALL_BELOW:
        return nodes + 1
    return max(_ALL_BELOW, nodes * max(5, 50 - nodes // 125) // 100)


def rank(pod: PodInfo, nodes: Sequence[NodeInfo]) -> NodeInfo:
    """The best of the nodes: room, spreading, preferred node affinity, soft taints (weights 1, 2, 2, 3)."""
    if len(nodes) == 1:
        return nodes[0]
    kin = [spreading.siblings(pod, node) for node in nodes]
    liked = [placement.preference(pod.node_affinity, node) for node in nodes]
    disliked = [placement.dislikes(pod.tolerations, node) for node in nodes]
    most_kin, most_liked, most_disliked = max(kin), max(liked), max(disliked)
    scores = [
        fit.headroom(pod, node)
        + 2 * (100 * (most_kin - kin[i]) / most_kin if most_kin else 100)
        + 2 * (100 * liked[i] / most_liked if most_liked else 0)
        + 3 * (100 * (most_disliked - disliked[i]) / most_disliked if most_disliked else 100)
        for i, node in enumerate(nodes)
    ]
    return nodes[scores.index(max(scores))]


def refusal_message(nodes: int, reasons: Mapping[str, int]) -> str:
    """kube-scheduler's sentence: reasons with their counts, sorted as text."""
    if not nodes:
        return "no nodes available to schedule pods"
    parts = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return f"0/{nodes} nodes are available: {', '.join(parts)}."

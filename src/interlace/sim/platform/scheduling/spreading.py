"""Spreading: pods of one controller prefer different nodes, and explicit constraints bound the skew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from interlace.sim.platform.kinds import TopologySpreadConstraint
from interlace.sim.platform.scheduling.placement import wants
from interlace.sim.platform.scheduling.snapshot import NodeInfo, PodInfo, Snapshot
from interlace.sim.platform.selectors import selects

_HOST_NAME = "kubernetes.io/hostname"


def siblings(pod: PodInfo, node: NodeInfo) -> int:
    """Pods of the same controller on the node; fewer is better.

    A node without a host name label is not spread over, as with the default constraints of the real scheduler.
    """
    if not pod.owner or _HOST_NAME not in node.labels:
        return 0
    return sum(1 for other in node.pods if other.owner == pod.owner)


def census(pod: PodInfo, snapshot: Snapshot) -> dict[int, Mapping[str, int]]:
    """For each ``DoNotSchedule`` constraint, by its place in the list: matching pods per topology value."""
    return {
        number: _count(pod, constraint, snapshot)
        for number, constraint in enumerate(pod.spread)
        if constraint.when_unsatisfiable == "DoNotSchedule"
    }


def _count(pod: PodInfo, constraint: TopologySpreadConstraint, snapshot: Snapshot) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for node in snapshot.nodes:
        value = node.labels.get(constraint.topology_key)
        if value is None or not wants(pod, node):
            continue
        counts[value] += sum(
            1
            for other in node.pods
            if other.namespace == pod.namespace and selects(constraint.label_selector, other.labels)
        )
    return counts


def skewed(pod: PodInfo, node: NodeInfo, counts: Mapping[int, Mapping[str, int]]) -> str | None:
    """Why a constraint rules the node out, in kube-scheduler's words; None if none does."""
    for number, per_value in counts.items():
        constraint = pod.spread[number]
        value = node.labels.get(constraint.topology_key)
        if value is None:
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        own = 1 if selects(constraint.label_selector, pod.labels) else 0
        if per_value.get(value, 0) + own - min(per_value.values(), default=0) > constraint.max_skew:
            return "node(s) didn't match pod topology spread constraints"
    return None

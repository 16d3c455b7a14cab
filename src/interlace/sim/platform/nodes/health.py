"""What the health of a node means: its conditions, its taints, and how long pods bear them.

Invariant: only taints that this module gives are ever taken away; those of users and of others stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from interlace.sim.platform.conditions import timestamp
from interlace.sim.platform.kinds import Node, Taint, Toleration
from interlace.sim.platform.selectors import tolerates
from interlace.sim.platform.workloads.podmaking import NOT_READY, UNREACHABLE

CORDON = "node.kubernetes.io/unschedulable"
_OURS = {
    (NOT_READY, "NoSchedule"),
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoSchedule"),
    (UNREACHABLE, "NoExecute"),
    (CORDON, "NoSchedule"),
}
_KUBELETS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""Conditions that only the kubelet keeps current."""


def readiness(node: Node) -> str:
    """Status of the condition ``Ready``; empty where there is none."""
    return next((str(c.get("status", "")) for c in node.status.conditions if c.get("type") == "Ready"), "")


def silent_conditions(node: Node) -> list[dict[str, Any]] | None:
    """The conditions of a node whose kubelet is not heard any more; None if they say so already."""
    now = timestamp()
    before = node.status.conditions
    never = readiness(node) == ""
    after = [
        {
            **condition,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        }
        if condition.get("type") in _KUBELETS and condition.get("status") != "Unknown"
        else condition
        for condition in before
    ]
    if never:
        after.append(
            {
                "type": "Ready",
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": node.metadata.creation_timestamp or now,
                "lastTransitionTime": now,
            }
        )
    return None if after == before else after


def taints(node: Node) -> list[Taint] | None:
    """The taints that the node should have; None if it has them."""
    ready = readiness(node)
    if not ready:
        return None
    wanted: set[tuple[str, str]] = set()
    if ready != "True":
        key = UNREACHABLE if ready == "Unknown" else NOT_READY
        wanted |= {(key, "NoSchedule"), (key, "NoExecute")}
    if node.spec.unschedulable:
        wanted.add((CORDON, "NoSchedule"))
    present = {(taint.key, taint.effect) for taint in node.spec.taints}
    kept = [t for t in node.spec.taints if (t.key, t.effect) not in _OURS or (t.key, t.effect) in wanted]
    added = [
        Taint(key=key, effect=effect, time_added=timestamp() if effect == "NoExecute" else None)
        for key, effect in sorted(wanted - present)
    ]
    return None if len(kept) == len(node.spec.taints) and not added else [*kept, *added]


def eviction_delay(node_taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """Seconds after which a pod must leave a node with these taints; None: never."""
    delays: list[float] = []
    for taint in node_taints:
        if taint.effect != "NoExecute":
            continue
        covering = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not covering:
            return 0.0
        limits = [t.toleration_seconds for t in covering if t.toleration_seconds is not None]
        if limits:
            delays.append(max(0.0, float(min(limits))))
    return min(delays, default=None)

"""Whether a node has room for a pod, and which node has most of it left.

Invariant: a pod that fits leaves no resource of the node over-committed.
"""

from __future__ import annotations

from interlace.sim.platform.scheduling.snapshot import NodeInfo, PodInfo

_SCORED = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""Resources that are scored, with what kube-scheduler assumes for a pod that asks for nothing."""


def shortages(pod: PodInfo, node: NodeInfo) -> list[str]:
    """Why the node has no room, one reason a resource; empty if the pod fits."""
    reasons = []
    for name, amount in pod.requests.items():
        if not amount:
            continue
        if amount > node.allocatable.get(name, 0) - node.requested.get(name, 0):
            reasons.append("Too many pods" if name == "pods" else f"Insufficient {name}")
    return reasons


def headroom(pod: PodInfo, node: NodeInfo) -> float:
    """Mean free share of CPU and memory with the pod on the node, 0 to 100 (LeastAllocated)."""
    total = 0.0
    for name, assumed in _SCORED.items():
        capacity = node.allocatable.get(name, 0)
        if capacity <= 0:
            continue
        used = sum(other.requests.get(name) or assumed for other in node.pods) + (pod.requests.get(name) or assumed)
        total += max(0.0, (capacity - used) * 100 / capacity)
    return total / len(_SCORED)

"""Where a pod wants to run and which nodes want it: cordon, node selector, node affinity, taints."""

from __future__ import annotations

from interlace.sim.platform.kinds import NodeAffinity, Taint, Toleration
from interlace.sim.platform.scheduling.snapshot import NodeInfo, PodInfo
from interlace.sim.platform.selectors import node_matches, term_matches, untolerated

HARD = frozenset({"NoSchedule", "NoExecute"})
SOFT = frozenset({"PreferNoSchedule"})
_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def refusal(pod: PodInfo, node: NodeInfo) -> str | None:
    """Why the pod may not go to the node, in kube-scheduler's words; None if it may."""
    if node.unschedulable and untolerated((_CORDON,), pod.tolerations, effects=HARD):
        return "node(s) were unschedulable"
    if untolerated(node.taints, pod.tolerations, effects=HARD):
        return "node(s) had untolerated taint(s)"
    if not wants(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    return None


def wants(pod: PodInfo, node: NodeInfo) -> bool:
    """Whether the node meets the pod's node selector and required node affinity."""
    if any(node.labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    required = pod.node_affinity.required
    return required is None or node_matches(required, name=node.name, labels=node.labels)


def preference(affinity: NodeAffinity, node: NodeInfo) -> int:
    """Sum of the weights of the preferred terms that the node meets."""
    return sum(
        term.weight for term in affinity.preferred if term_matches(term.preference, name=node.name, labels=node.labels)
    )


def dislikes(tolerations: tuple[Toleration, ...], node: NodeInfo) -> int:
    """How many ``PreferNoSchedule`` taints of the node the pod does not tolerate."""
    return sum(1 for taint in node.taints if untolerated((taint,), tolerations, effects=SOFT))

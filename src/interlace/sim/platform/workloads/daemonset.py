"""What a DaemonSet does: one pod on every node that it may run on, pinned by node affinity.

Invariant: a node never gets a second pod while one of the DaemonSet is still there, terminating ones included, but
for one of a new template during an update with ``maxSurge``: the old one goes when that is ready.
ControllerRevision objects are not simulated; the hash label is there.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlace.sim.platform.kinds import Node, NodeSelector, Pod, PodSpec
from interlace.sim.platform.nodes.health import CORDON
from interlace.sim.platform.selectors import node_matches, untolerated
from interlace.sim.platform.workloadkinds import DaemonSet, DaemonSetStatus
from interlace.sim.platform.workloads.podmaking import NOT_READY, UNREACHABLE, template_hash

REVISION_LABEL = "controller-revision-hash"
_HARD = frozenset({"NoSchedule", "NoExecute"})
_EXECUTE = frozenset({"NoExecute"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Nodes that get a pod, pods that go."""

    create: tuple[str, ...] = ()
    delete: tuple[Pod, ...] = ()


def revision(daemon_set: DaemonSet) -> str:
    """Value of the hash label for the present template."""
    return template_hash(daemon_set.spec.template)


def tolerations(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What every daemon pod bears (daemon set controller, AddOrUpdateDaemonPodTolerations)."""
    added = [
        {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"},
        {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
        {"key": CORDON, "operator": "Exists", "effect": "NoSchedule"},
    ]
    if spec.get("hostNetwork"):
        added.append({"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"})
    return [*(spec.get("tolerations") or []), *added]


def pinned(spec: Mapping[str, Any], node: str) -> dict[str, Any]:
    """Affinity of the template with every required term narrowed to one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = dict(spec.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity["nodeAffinity"] = node_affinity
    return affinity


def pod_spec(daemon_set: DaemonSet, node: str) -> dict[str, Any]:
    """Fields of the template's spec that differ in the pod for ``node``."""
    spec: Mapping[str, Any] = daemon_set.spec.template.get("spec") or {}
    return {"affinity": pinned(spec, node), "tolerations": tolerations(spec)}


def node_of(pod: Pod) -> str:
    """The node that a daemon pod runs on or is pinned to."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    for term in required.node_selector_terms if required else ():
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and len(requirement.values) == 1:
                return requirement.values[0]
    return ""


def rules(daemon_set: DaemonSet) -> PodSpec:
    """What decides on nodes, with the tolerations that are added."""
    spec: Mapping[str, Any] = daemon_set.spec.template.get("spec") or {}
    return msgspec.convert({**spec, "tolerations": tolerations(spec)}, PodSpec)


def fitness(spec: PodSpec, node: Node) -> tuple[bool, bool]:
    """Whether a pod of these ``rules`` should be started on the node, and whether one that is there may stay."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return (False, False)
    required: NodeSelector | None = None
    if spec.affinity is not None and spec.affinity.node_affinity is not None:
        required = spec.affinity.node_affinity.required
    if required is not None and not node_matches(required, name=node.metadata.name, labels=labels):
        return (False, False)
    if untolerated(node.spec.taints, spec.tolerations, effects=_HARD) is None:
        return (True, True)
    return (False, untolerated(node.spec.taints, spec.tolerations, effects=_EXECUTE) is None)


def plan(daemon_set: DaemonSet, nodes: Sequence[Node], pods: Sequence[Pod]) -> Plan:
    """From the nodes and the pods that the DaemonSet controls to what is to be done."""
    if daemon_set.metadata.deletion_timestamp is not None:
        return Plan()
    by_node: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        by_node[node_of(pod)].append(pod)
    create: list[str] = []
    delete: list[Pod] = []
    spec = rules(daemon_set)
    surge, surging = _max_surge(daemon_set, len(nodes)), 0
    successors: list[str] = []
    """Nodes that may get a pod of the new template beside the old one."""
    for node in nodes:
        name = node.metadata.name
        there = by_node.pop(name, [])
        should_start, may_stay = fitness(spec, node)
        if not there:
            if should_start:
                create.append(name)
            continue
        living = [pod for pod in there if not pod.terminating]
        if not may_stay:
            delete.extend(living)
            continue
        delete.extend(pod for pod in living if pod.finished)
        running = sorted(
            (pod for pod in living if not pod.finished), key=lambda pod: pod.metadata.creation_timestamp or ""
        )
        if not surge:
            delete.extend(running[1:])
            continue
        new, old = _divided(daemon_set, running)
        delete.extend([*old[1:], *new[1:]])
        if old and new:
            surging += 1
            if new[0].ready or not old[0].ready:
                delete.append(old[0])
        elif old and old[0].ready and len(there) == 1 and should_start:
            successors.append(name)
    create += successors[: max(0, surge - surging)]
    # Pods pinned to nodes that are gone and that were never bound; bound ones fall to the pod garbage collector.
    delete.extend(pod for left in by_node.values() for pod in left if not pod.spec.node_name and not pod.terminating)
    doomed = {pod.metadata.uid for pod in delete}
    if daemon_set.spec.update_strategy.type == "RollingUpdate":
        delete.extend(_outdated(daemon_set, pods, doomed))
    return Plan(create=tuple(create), delete=tuple(delete))


def _divided(daemon_set: DaemonSet, pods: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Those of the present template, and those of older ones."""
    wanted = revision(daemon_set)
    new = [pod for pod in pods if pod.metadata.labels.get(REVISION_LABEL) == wanted]
    return new, [pod for pod in pods if pod not in new]


def _outdated(daemon_set: DaemonSet, pods: Sequence[Pod], doomed: set[str]) -> list[Pod]:
    """Pods of an older template that may go now, those that are not available first."""
    staying = [pod for pod in pods if pod.active and pod.metadata.uid not in doomed]
    _, old = _divided(daemon_set, staying)
    unavailable = len(pods) - sum(1 for pod in staying if pod.ready)
    useless = [pod for pod in old if not pod.ready]
    budget = 0 if _max_surge(daemon_set, len(pods)) else max(0, _max_unavailable(daemon_set, len(pods)) - unavailable)
    return [*useless, *[pod for pod in old if pod.ready][:budget]]


def _max_surge(daemon_set: DaemonSet, total: int) -> int:
    strategy = daemon_set.spec.update_strategy
    value = strategy.rolling_update.max_surge if strategy.rolling_update is not None else None
    if strategy.type != "RollingUpdate" or not value:
        return 0
    return -(-total * int(value.rstrip("%")) // 100) if isinstance(value, str) else value


def _max_unavailable(daemon_set: DaemonSet, total: int) -> int:
    rolling = daemon_set.spec.update_strategy.rolling_update
    value = rolling.max_unavailable if rolling is not None else None
    if isinstance(value, str):
        return max(1, -(-total * int(value.rstrip("%")) // 100))
    return 1 if value is None else value


def status(daemon_set: DaemonSet, nodes: Sequence[Node], pods: Sequence[Pod]) -> DaemonSetStatus:
    """The status for these nodes and pods."""
    wanted = revision(daemon_set)
    by_node: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.active:
            by_node[node_of(pod)].append(pod)
    spec = rules(daemon_set)
    desired = [node.metadata.name for node in nodes if fitness(spec, node)[0]]
    current = [by_node[name] for name in desired if name in by_node]
    ready = sum(1 for there in current if any(pod.ready for pod in there))
    updated = sum(1 for there in current if any(pod.metadata.labels.get(REVISION_LABEL) == wanted for pod in there))
    return DaemonSetStatus(
        observed_generation=daemon_set.metadata.generation,
        desired_number_scheduled=len(desired),
        current_number_scheduled=len(current),
        number_misscheduled=sum(1 for name in by_node if name not in set(desired)),
        number_ready=ready,
        number_available=ready,
        number_unavailable=len(desired) - ready,
        updated_number_scheduled=updated,
    )

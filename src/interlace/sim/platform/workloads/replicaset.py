"""What a ReplicaSet does: how many pods to make, which to delete, what its status says.

Invariant: pods that ended or are being deleted do not count; of the others, those are deleted first whose loss
costs least.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from interlace.sim.platform.kinds import Pod
from interlace.sim.platform.workloadkinds import ReplicaSet, ReplicaSetStatus

_PHASES = {"Pending": 0, "": 0, "Unknown": 1, "Running": 2}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Pods to make and to delete."""

    create: int = 0
    delete: tuple[Pod, ...] = ()


def wanted(replica_set: ReplicaSet) -> int:
    """``spec.replicas``, 1 where it is absent."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def plan(replica_set: ReplicaSet, pods: Sequence[Pod]) -> Plan:
    """From the pods that the ReplicaSet controls to what is to be done."""
    if replica_set.metadata.deletion_timestamp is not None:
        return Plan()
    active = [pod for pod in pods if pod.active]
    surplus = len(active) - wanted(replica_set)
    if surplus <= 0:
        return Plan(create=-surplus)
    newest_first = sorted(active, key=lambda pod: pod.metadata.creation_timestamp or "", reverse=True)
    return Plan(delete=tuple(sorted(newest_first, key=cost)[:surplus]))


def cost(pod: Pod) -> tuple[bool, int, bool]:
    """Order of deletion: without a node, then not yet running, then not ready, then the rest."""
    return (bool(pod.spec.node_name), _PHASES.get(pod.status.phase, 2), pod.ready)


def status(replica_set: ReplicaSet, pods: Sequence[Pod]) -> ReplicaSetStatus:
    """The status for these pods."""
    active = [pod for pod in pods if pod.active]
    ready = sum(1 for pod in active if pod.ready)
    return ReplicaSetStatus(
        observed_generation=replica_set.metadata.generation,
        replicas=len(active),
        fully_labeled_replicas=len(active),
        ready_replicas=ready,
        available_replicas=ready,
    )

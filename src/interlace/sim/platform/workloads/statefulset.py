"""What a StatefulSet does: pods with stable names, started and stopped in order, or all at once.

Invariant: with ``OrderedReady`` at most one pod is being started or stopped, and none is started before those with
lower numbers are ready. Volume claims and ControllerRevision objects are not simulated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from interlace.sim.platform.kinds import Pod
from interlace.sim.platform.workloadkinds import StatefulSet, StatefulSetStatus
from interlace.sim.platform.workloads.daemonset import REVISION_LABEL
from interlace.sim.platform.workloads.podmaking import template_hash

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Numbers of pods to start, pods that go."""

    create: tuple[int, ...] = ()
    delete: tuple[Pod, ...] = ()


def replicas_of(stateful_set: StatefulSet) -> int:
    """``spec.replicas``, 1 where it is absent."""
    return 1 if stateful_set.spec.replicas is None else stateful_set.spec.replicas


def revision(stateful_set: StatefulSet) -> str:
    """Value of the revision label for the present template."""
    return f"{stateful_set.metadata.name}-{template_hash(stateful_set.spec.template)}"


def pod_name(stateful_set: StatefulSet, number: int) -> str:
    """Name of the pod with a number."""
    return f"{stateful_set.metadata.name}-{number}"


def labels(stateful_set: StatefulSet, number: int) -> dict[str, str]:
    """Labels that the pod with a number gets beside those of the template."""
    return {
        NAME_LABEL: pod_name(stateful_set, number),
        INDEX_LABEL: str(number),
        REVISION_LABEL: revision(stateful_set),
    }


def number_of(stateful_set: StatefulSet, pod: Pod) -> int | None:
    """The number in a pod's name; None if the name is no such name."""
    prefix = f"{stateful_set.metadata.name}-"
    text = pod.metadata.name.removeprefix(prefix)
    return int(text) if pod.metadata.name.startswith(prefix) and text.isdecimal() else None


def plan(stateful_set: StatefulSet, pods: Sequence[Pod]) -> Plan:
    """From the pods that the StatefulSet controls to what is to be done."""
    if stateful_set.metadata.deletion_timestamp is not None:
        return Plan()
    by_number = {n: pod for pod in pods if (n := number_of(stateful_set, pod)) is not None}
    wanted = range(replicas_of(stateful_set))
    failed = [pod for n, pod in by_number.items() if n in wanted and pod.finished and not pod.terminating]
    surplus = [by_number[n] for n in sorted(by_number, reverse=True) if n not in wanted]
    if stateful_set.spec.pod_management_policy == "Parallel":
        create = tuple(n for n in wanted if n not in by_number)
        delete = [*failed, *(pod for pod in surplus if not pod.terminating)]
        return Plan(create=create, delete=tuple(delete or _outdated(stateful_set, by_number, wanted)))
    for n in wanted:
        pod = by_number.get(n)
        if pod is None:
            return Plan(create=(n,))
        if pod.finished and not pod.terminating:
            return Plan(delete=(pod,))
        if pod.terminating or not pod.ready:
            return Plan(delete=_stuck(stateful_set, pod))
    if surplus:
        return Plan(delete=() if surplus[0].terminating else (surplus[0],))
    return Plan(delete=_outdated(stateful_set, by_number, wanted))


def _stuck(stateful_set: StatefulSet, pod: Pod) -> tuple[Pod, ...]:
    """An outdated pod that is not ready holds up the update, so it goes; one of the present template is waited for."""
    rolling = stateful_set.spec.update_strategy.type == "RollingUpdate"
    current = pod.metadata.labels.get(REVISION_LABEL) == revision(stateful_set)
    return (pod,) if rolling and not current and not pod.terminating else ()


def _outdated(stateful_set: StatefulSet, by_number: Mapping[int, Pod], wanted: range) -> tuple[Pod, ...]:
    """The pod with the highest number of an older template, if all others are ready."""
    if stateful_set.spec.update_strategy.type != "RollingUpdate":
        return ()
    present = [by_number[n] for n in wanted if n in by_number]
    if len(present) < len(wanted):
        return ()
    now = revision(stateful_set)
    for pod in reversed(present):
        if pod.metadata.labels.get(REVISION_LABEL) != now:
            return () if pod.terminating else (pod,)
        if pod.terminating or not pod.ready:
            return ()
    return ()


def status(stateful_set: StatefulSet, pods: Sequence[Pod]) -> StatefulSetStatus:
    """The status for these pods."""
    now = revision(stateful_set)
    present = [pod for pod in pods if number_of(stateful_set, pod) is not None and not pod.finished]
    ready = sum(1 for pod in present if pod.ready and not pod.terminating)
    updated = sum(1 for pod in present if pod.metadata.labels.get(REVISION_LABEL) == now)
    settled = updated == replicas_of(stateful_set)
    return StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=len(present),
        ready_replicas=ready,
        available_replicas=ready,
        current_replicas=updated if settled else len(present) - updated,
        updated_replicas=updated,
        current_revision=now
        if settled or not stateful_set.status.current_revision
        else stateful_set.status.current_revision,
        update_revision=now,
    )

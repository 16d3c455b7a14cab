"""What a Deployment does: one ReplicaSet per pod template, scaled against each other within surge and unavailability.

Invariant: during a rolling update there are never more than ``replicas + maxSurge`` pods asked for, and old ones
that are available go only as far as ``replicas - maxUnavailable`` available ones remain. ``minReadySeconds`` and
proportional scaling in the middle of an update are not simulated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from interlace.sim.platform.conditions import with_condition
from interlace.sim.platform.workloadkinds import Deployment, DeploymentStatus, ReplicaSet
from interlace.sim.platform.workloads.podmaking import owner_reference, template_hash
from interlace.sim.platform.workloads.replicaset import wanted

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to write for a Deployment, in this order."""

    create: dict[str, Any] | None = None
    scale: tuple[tuple[ReplicaSet, int], ...] = ()
    revise: tuple[ReplicaSet, str] | None = None
    """A ReplicaSet that is in use again gets a new revision number."""
    delete: tuple[ReplicaSet, ...] = ()
    revision: str = ""


def replicas_of(deployment: Deployment) -> int:
    """``spec.replicas``, 1 where it is absent."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def limits(deployment: Deployment) -> tuple[int, int]:
    """``maxSurge`` (rounded up) and ``maxUnavailable`` (rounded down), 25 % each by default; never both 0."""
    replicas = replicas_of(deployment)
    rolling = deployment.spec.strategy.rolling_update
    surge = _share(rolling.max_surge if rolling else None, replicas, up=True)
    unavailable = _share(rolling.max_unavailable if rolling else None, replicas, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _share(value: int | str | None, of: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    percent = int((value or "25%").rstrip("%"))
    return -(-of * percent // 100) if up else of * percent // 100


def is_current(deployment: Deployment, replica_set: ReplicaSet) -> bool:
    """Whether the ReplicaSet is the one for the present template."""
    return replica_set.metadata.labels.get(HASH_LABEL) == template_hash(deployment.spec.template)


def plan(deployment: Deployment, sets: Sequence[ReplicaSet]) -> Plan:
    """From the ReplicaSets that the Deployment controls to what is to be done."""
    if deployment.metadata.deletion_timestamp is not None:
        return Plan()
    current = next((item for item in sets if is_current(deployment, item)), None)
    old = sorted((item for item in sets if item is not current), key=_revision)
    if deployment.spec.paused:
        return Plan(scale=_scale_paused(deployment, current))
    replicas = replicas_of(deployment)
    newest_old = max((_revision(item) for item in old), default=0)
    recreate = deployment.spec.strategy.type == "Recreate"
    if current is None:
        start = _room(deployment, 0, old)
        if recreate and any(item.status.replicas or wanted(item) for item in old):
            return Plan(scale=tuple((item, 0) for item in old if wanted(item)))
        revision = str(newest_old + 1)
        return Plan(create=_replica_set(deployment, replicas=start, revision=revision), revision=revision)
    revise = None
    if _revision(current) <= newest_old:
        revise = (current, str(newest_old + 1))
    revision = revise[1] if revise else str(_revision(current))
    if recreate:
        scale = [(item, 0) for item in old if wanted(item)]
        if not scale and not any(item.status.replicas for item in old) and wanted(current) != replicas:
            scale = [(current, replicas)]
    else:
        scale = _roll(deployment, current, old)
    done = not scale and all(wanted(item) == 0 and item.status.replicas == 0 for item in old)
    history = deployment.spec.revision_history_limit
    surplus = old[: max(0, len(old) - history)] if done else []
    return Plan(scale=tuple(scale), revise=revise, delete=tuple(surplus), revision=revision)


def _scale_paused(deployment: Deployment, current: ReplicaSet | None) -> tuple[tuple[ReplicaSet, int], ...]:
    if current is None or wanted(current) == replicas_of(deployment):
        return ()
    return ((current, replicas_of(deployment)),)


def _room(deployment: Deployment, current: int, old: Sequence[ReplicaSet]) -> int:
    """Size of the new ReplicaSet that surge allows."""
    surge, _ = limits(deployment)
    replicas = replicas_of(deployment)
    if deployment.spec.strategy.type == "Recreate":
        return replicas
    total = current + sum(wanted(item) for item in old)
    return min(replicas, max(current, current + replicas + surge - total))


def _roll(deployment: Deployment, current: ReplicaSet, old: Sequence[ReplicaSet]) -> list[tuple[ReplicaSet, int]]:
    """Sizes during a rolling update: the new set as surge allows, old pods that are of no use, then other old ones."""
    replicas = replicas_of(deployment)
    size = wanted(current)
    new_size = replicas if size > replicas else _room(deployment, size, old)
    minimum = replicas - limits(deployment)[1]
    left = {item.metadata.uid: wanted(item) for item in old}
    missing = max(0, new_size - current.status.available_replicas)
    removable = max(0, new_size + sum(left.values()) - minimum - missing)
    for item in old:
        useless = max(0, wanted(item) - item.status.available_replicas)
        cut = min(useless, removable)
        left[item.metadata.uid] -= cut
        removable -= cut
    available = current.status.available_replicas + sum(item.status.available_replicas for item in old)
    spare = min(removable, max(0, available - minimum))
    for item in old:
        cut = min(left[item.metadata.uid], spare)
        left[item.metadata.uid] -= cut
        spare -= cut
    sizes = [(current, new_size), *((item, left[item.metadata.uid]) for item in old)]
    return [(item, count) for item, count in sizes if count != wanted(item)]


def _revision(replica_set: ReplicaSet) -> int:
    text = replica_set.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def _replica_set(deployment: Deployment, *, replicas: int, revision: str) -> dict[str, Any]:
    name = template_hash(deployment.spec.template)
    template = dict(deployment.spec.template)
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {**(metadata.get("labels") or {}), HASH_LABEL: name}
    template["metadata"] = metadata
    selector = {
        "matchLabels": {**deployment.spec.selector.match_labels, HASH_LABEL: name},
        "matchExpressions": deployment.spec.selector.match_expressions,
    }
    return {
        "metadata": {
            "name": f"{deployment.metadata.name}-{name}",
            "namespace": deployment.metadata.namespace,
            "labels": metadata["labels"],
            "annotations": {REVISION: revision},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def status(deployment: Deployment, sets: Sequence[ReplicaSet]) -> DeploymentStatus:
    """The status for these ReplicaSets."""
    replicas = replicas_of(deployment)
    current = next((item for item in sets if is_current(deployment, item)), None)
    total = sum(item.status.replicas for item in sets)
    available = sum(item.status.available_replicas for item in sets)
    updated = current.status.replicas if current else 0
    conditions = [dict(condition) for condition in deployment.status.conditions]
    enough = available >= replicas - limits(deployment)[1]
    conditions = (
        with_condition(
            conditions,
            type="Available",
            status="True" if enough else "False",
            reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            message=f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        )
        or conditions
    )
    name = current.metadata.name if current else deployment.metadata.name
    complete = updated == replicas and total == replicas and available == replicas
    conditions = (
        with_condition(
            conditions,
            type="Progressing",
            status="True",
            reason="NewReplicaSetAvailable" if complete else "ReplicaSetUpdated",
            message=f'ReplicaSet "{name}" {"has successfully progressed" if complete else "is progressing"}.',
        )
        or conditions
    )
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=total,
        updated_replicas=updated,
        ready_replicas=sum(item.status.ready_replicas for item in sets),
        available_replicas=available,
        unavailable_replicas=max(0, max(total, replicas) - available),
        conditions=conditions,
    )

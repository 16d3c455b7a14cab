"""What one scheduling decision sees: nodes with the pods on them, as immutable values.

Invariant: a ``NodeInfo`` is never changed, only replaced, so that a decision works on one consistent picture
and a snapshot costs nothing to take.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from interlace.sim.apiserver.quantity import parse_quantity
from interlace.sim.platform.kinds import (
    NodeAffinity,
    Pod,
    PodAffinityTerm,
    PodSpec,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    controller_of,
)

Amounts = Mapping[str, int]
"""Resource name to whole units; CPU in thousandths."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodInfo:
    """A pod as scheduling sees it, worked out once per version of the pod."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    owner: str
    """uid of the controller; pods of one controller are spread."""
    requests: Amounts
    node_selector: Mapping[str, str]
    node_affinity: NodeAffinity
    tolerations: tuple[Toleration, ...]
    affinity: tuple[PodAffinityTerm, ...]
    anti_affinity: tuple[PodAffinityTerm, ...]
    spread: tuple[TopologySpreadConstraint, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """A node and what is, or is about to be, on it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    allocatable: Amounts
    requested: Amounts
    pods: tuple[PodInfo, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All nodes in the order in which ties are broken, and the labels of the namespaces."""

    nodes: tuple[NodeInfo, ...]
    namespaces: Mapping[str, Mapping[str, str]]


def describe(pod: Pod) -> PodInfo:
    """The scheduling view of ``pod``.

    Raises:
        ValueError: a quantity of the pod cannot be read.
    """
    affinity = pod.spec.affinity
    owner = controller_of(pod.metadata)
    return PodInfo(
        uid=pod.metadata.uid,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        labels=pod.metadata.labels,
        owner=owner.uid if owner else "",
        requests=pod_requests(pod.spec),
        node_selector=pod.spec.node_selector,
        node_affinity=(affinity.node_affinity if affinity else None) or NodeAffinity(),
        tolerations=tuple(pod.spec.tolerations),
        affinity=tuple(affinity.pod_affinity.required) if affinity and affinity.pod_affinity else (),
        anti_affinity=tuple(affinity.pod_anti_affinity.required) if affinity and affinity.pod_anti_affinity else (),
        spread=tuple(pod.spec.topology_spread_constraints),
    )


def pod_requests(spec: PodSpec) -> dict[str, int]:
    """What a pod takes of a node, the pod itself counted as ``pods``.

    Containers and sidecars add up; an ordinary init container runs before the containers, beside the sidecars
    that were started before it, so the largest sum at any time counts (v1.PodSpec, "initContainers").
    """
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, amounts(container.resources.requests, container.resources.limits))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        own = amounts(container.resources.requests, container.resources.limits)
        if container.restart_policy == "Always":
            _add(sidecars, own)
            _raise(peak, sidecars)
        else:
            _raise(peak, _sum(sidecars, own))
    _add(total, sidecars)
    _raise(total, peak)
    _add(total, amounts(spec.overhead, {}))
    total["pods"] = 1
    return total


def amounts(requests: Mapping[str, str | int | float], limits: Mapping[str, str | int | float]) -> dict[str, int]:
    """Requests in whole units; a limit without a request is the request."""
    return {
        name: math.ceil(parse_quantity(value) * (1000 if name == "cpu" else 1))
        for name, value in {**limits, **requests}.items()
    }


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _sum(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    total = dict(left)
    _add(total, right)
    return total


def _raise(total: dict[str, int], other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        total[name] = max(total.get(name, 0), amount)

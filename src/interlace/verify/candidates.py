"""Which nodes a measurement may take: ready, not cordoned, with all their GPUs free, and of the right hardware.

`choose` is pure, `survey` reads. Invariant: a node that somebody uses is never taken; each refusal names the node and
who uses it. Whoever may not read nodes leaves the choice to the scheduler, and is told so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import msgspec

from interlace.api.computedomain import NODE_CLIQUE_LABEL
from interlace.api.core import Node
from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.fabric.family import Family
from interlace.kube.client import Client
from interlace.kube.errors import Forbidden

GPU: Final = "nvidia.com/gpu"
MACHINE: Final = "node.kubernetes.io/instance-type"
_LIVING: Final = "status.phase!=Succeeded,status.phase!=Failed"
_NAMED: Final = 3
"""Pods of a busy node that are named."""


class Requirements(Struct, frozen=True):
    """``v1.ResourceRequirements``."""

    limits: dict[str, str | int] = {}
    requests: dict[str, str | int] = {}


class GpuContainer(Struct, frozen=True):
    """``v1.Container``: what it takes."""

    resources: Requirements = Requirements()


class GpuPodSpec(Struct, frozen=True):
    """What is read of a Pod that may use GPUs."""

    node_name: str = ""
    containers: list[GpuContainer] = []


class GpuPod(Struct, frozen=True):
    """``v1.Pod`` with the GPUs that it takes."""

    resource: ClassVar[Resource] = Resource("", "v1", "pods", "Pod", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: GpuPodSpec = GpuPodSpec()

    @property
    def gpus(self) -> int:
        """Of all containers."""
        taken = (each.resources.limits.get(GPU) or each.resources.requests.get(GPU) or 0 for each in
                 self.spec.containers)  # fmt: skip
        return sum(int(each) for each in taken)


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What may be read of the cluster."""

    nodes: tuple[Node, ...] | None
    """None: nodes may not be read."""
    pods: tuple[GpuPod, ...] | None
    """Pods that are not over; None: those of other namespaces may not be read."""

    @property
    def unknown(self) -> str:
        """What cannot be told, and who decides instead; empty if nothing."""
        if self.nodes is None:
            return "nodes may not be read with these rights, so the scheduler chooses and refuses them"
        if self.pods is None:
            return "Pods of other namespaces may not be read with these rights, so the scheduler passes over busy nodes"
        return ""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes to measure, or why not."""

    nodes: tuple[str, ...] = ()
    """Names; empty: the scheduler chooses."""
    refused: tuple[str, ...] = ()
    """A sentence for each node that was named and cannot be taken, or for the count that cannot be had."""
    passed_over: tuple[str, ...] = ()
    """The same of nodes that nobody named."""


async def survey(client: Client) -> Survey:
    """Read nodes, and the Pods on them, as far as the rights of the caller go. Raises the errors of ``kube``."""
    try:
        nodes = tuple((await client.list(Node)).items)
    except Forbidden:
        return Survey(nodes=None, pods=None)
    try:
        pods = tuple((await client.list(GpuPod, fields=_LIVING)).items)
    except Forbidden:
        return Survey(nodes=nodes, pods=None)
    return Survey(nodes=nodes, pods=pods)


def choose(found: Survey, *, family: Family, named: Sequence[str] = (), count: int | None = None) -> Choice:
    """Take the named nodes; else ``count`` free ones of the family, of one clique if there are enough; else all."""
    if found.nodes is None:
        return Choice(nodes=tuple(named))
    nodes = {node.metadata.name: node for node in found.nodes}
    if named:
        missing = [f"node {name} does not exist" for name in named if name not in nodes]
        why = [reason for name in named if name in nodes for reason in _against(nodes[name], found.pods, family)]
        return Choice(nodes=tuple(named), refused=(*missing, *why))
    fitting = [node for node in found.nodes if _fits(node, family)]
    reasons = {node.metadata.name: tuple(_against(node, found.pods, family)) for node in fitting}
    free = [node for node in fitting if not reasons[node.metadata.name]]
    passed = tuple(reason for each in reasons.values() for reason in each)
    if count is not None and len(free) < count:
        told = f"{count} free nodes of {family.id} were asked for and there are {len(free)} among {len(fitting)}"
        return Choice(refused=(told,), passed_over=passed)
    return Choice(nodes=_together(free, count), passed_over=passed)


def cliques(found: Survey, names: Iterable[str]) -> dict[str, str]:
    """Clique of each of these nodes that has one."""
    wanted = set(names)
    labels = {node.metadata.name: node.metadata.labels.get(NODE_CLIQUE_LABEL, "") for node in found.nodes or ()}
    return {name: clique for name, clique in sorted(labels.items()) if name in wanted and clique}


def _fits(node: Node, family: Family) -> bool:
    machine = node.metadata.labels.get(MACHINE)
    if family.node.gke and machine not in family.machines:
        return False
    return int(node.status.allocatable.get(GPU, "0")) >= family.node.gpus


def _against(node: Node, pods: Iterable[GpuPod] | None, family: Family) -> Iterable[str]:
    """Why the node cannot be taken, the first reason alone."""
    name = node.metadata.name
    ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    machine = node.metadata.labels.get(MACHINE, "")
    gpus = int(node.status.allocatable.get(GPU, "0"))
    users = [pod for pod in pods or () if pod.spec.node_name == name and pod.gpus]
    if not _fits(node, family) and family.node.gke and machine not in family.machines:
        yield f"node {name} is of type {machine or 'unknown'}, and {family.id} is {' or '.join(family.machines)}"
    elif gpus < family.node.gpus:
        yield f"node {name} has {gpus} of {family.node.gpus} GPUs; see what `kubectl describe node {name}` says of them"
    elif node.spec.unschedulable:
        yield f"node {name} is cordoned; `kubectl uncordon {name}` if it may be used"
    elif not ready:
        yield f"node {name} is not Ready; see `kubectl describe node {name}`"
    elif users:
        by = [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in users]
        more = f" and {len(by) - _NAMED} more" if len(by) > _NAMED else ""
        taken = sum(pod.gpus for pod in users)
        yield f"node {name} is busy: {taken} of its {gpus} GPUs are taken by {', '.join(by[:_NAMED])}{more}"


def _together(free: Sequence[Node], count: int | None) -> tuple[str, ...]:
    """All, or the first of the smallest clique that has enough, else of all."""
    names = sorted(node.metadata.name for node in free)
    if count is None:
        return tuple(names)
    groups: dict[str, list[str]] = {}
    for node in sorted(free, key=lambda each: each.metadata.name):
        groups.setdefault(node.metadata.labels.get(NODE_CLIQUE_LABEL, ""), []).append(node.metadata.name)
    enough = sorted((group for group in groups.values() if len(group) >= count), key=len)
    return tuple((enough[0] if enough else names)[:count])

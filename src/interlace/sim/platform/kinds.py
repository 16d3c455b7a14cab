"""The kinds as a scheduler and the controllers read them: wider than ``interlace.api``, which serves our components.

Invariant: what is only carried through (pod templates, claim specs with opaque parameters) stays a dict or
raw bytes, so that nothing is lost or reordered on the way from a template to the object made from it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from interlace.api.core import PodResourceClaim, PodResourceClaimStatus
from interlace.api.meta import ObjectMeta, OwnerReference, Resource, Struct

Quantity = str | int | float
"""A Kubernetes quantity as it stands in JSON; a server that does not canonicalise keeps YAML's bare numbers."""


class Requirement(Struct, frozen=True):
    """One expression of a label or node selector."""

    key: str
    operator: str
    values: list[str] = []


class LabelSelector(Struct, frozen=True):
    """``metav1.LabelSelector``."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []


class NodeSelectorTerm(Struct, frozen=True):
    """``v1.NodeSelectorTerm``."""

    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeSelector(Struct, frozen=True):
    """``v1.NodeSelector``: the terms are alternatives."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Struct, frozen=True):
    """``v1.PreferredSchedulingTerm``."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Struct, frozen=True):
    """``v1.NodeAffinity``."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=[]
    )


class PodAffinityTerm(Struct, frozen=True):
    """``v1.PodAffinityTerm``."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None


class PodAffinity(Struct, frozen=True):
    """``v1.PodAffinity`` and ``v1.PodAntiAffinity``, the required part."""

    required: list[PodAffinityTerm] = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=[])


class Affinity(Struct, frozen=True):
    """``v1.Affinity``."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True):
    """``v1.TopologySpreadConstraint``."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None


class Toleration(Struct, frozen=True):
    """``v1.Toleration``."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ResourceRequirements(Struct, frozen=True):
    """``v1.ResourceRequirements`` without claims."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class Container(Struct, frozen=True):
    """What scheduling reads of ``v1.Container``."""

    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class PodSpec(Struct, frozen=True):
    """What scheduling and the controllers read of ``v1.PodSpec``."""

    node_name: str = ""
    scheduler_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    scheduling_gates: list[dict[str, str]] = []
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, Quantity] = {}
    resource_claims: list[PodResourceClaim] = []


class PodStatus(Struct, frozen=True):
    """``v1.PodStatus`` in part; conditions stay dicts, because a patch sends the whole list back."""

    phase: str = ""
    conditions: list[dict[str, Any]] = []
    resource_claim_statuses: list[PodResourceClaimStatus] = []


class Pod(Struct, frozen=True):
    """``v1.Pod``."""

    resource: ClassVar[Resource] = Resource("", "v1", "pods", "Pod", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Whether the pod has ended for good."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def active(self) -> bool:
        """Whether a controller counts the pod: not ended and not being deleted."""
        return not self.finished and not self.terminating

    @property
    def ready_condition(self) -> dict[str, Any]:
        """The condition ``Ready``; empty where there is none."""
        return next((c for c in self.status.conditions if c.get("type") == "Ready"), {})

    @property
    def ready(self) -> bool:
        return self.ready_condition.get("status") == "True"


class Binding(Struct, frozen=True):
    """``v1.Binding``, made by POST to a pod's ``binding``; the answer is a Status, of which nothing is read."""

    resource: ClassVar[Resource] = Resource("", "v1", "pods", "Binding", True)
    metadata: ObjectMeta = ObjectMeta()


class Taint(Struct, frozen=True):
    """``v1.Taint``."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class NodeSpec(Struct, frozen=True):
    """``v1.NodeSpec`` in part."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(Struct, frozen=True):
    """``v1.NodeStatus`` in part; conditions stay dicts, because a patch sends the whole list back."""

    conditions: list[dict[str, Any]] = []
    allocatable: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}


class Node(Struct, frozen=True):
    """``v1.Node``."""

    resource: ClassVar[Resource] = Resource("", "v1", "nodes", "Node", False)
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NamespaceSpec(Struct, frozen=True):
    """``v1.NamespaceSpec``."""

    finalizers: list[str] = []


class NamespaceStatus(Struct, frozen=True):
    """``v1.NamespaceStatus`` in part."""

    phase: str = ""


class Namespace(Struct, frozen=True):
    """``v1.Namespace``."""

    resource: ClassVar[Resource] = Resource("", "v1", "namespaces", "Namespace", False)
    metadata: ObjectMeta = ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ServiceAccount(Struct, frozen=True):
    """``v1.ServiceAccount``."""

    resource: ClassVar[Resource] = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
    metadata: ObjectMeta = ObjectMeta()


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner reference that says ``controller: true``."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)

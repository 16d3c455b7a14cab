"""The kinds as a scheduler and the controllers read them: wider than ``interlace.api``, which serves our components.

Invariant: what is only carried through (pod templates, claim specs with opaque parameters) stays a dict or
raw bytes, so that nothing is lost or reordered on the way from a template to the object made from it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from interlace.api.core import PodResourceClaim, PodResourceClaimStatus
from interlace.api.meta import ObjectMeta, OwnerReference, Resource, Struct
from interlace.api.resource import DeviceConfiguration, ResourceClaimConsumerReference, ResourcePool

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


class CelDeviceSelector(Struct, frozen=True):
    """``resource.k8s.io/v1.CELDeviceSelector``."""

    expression: str


class DeviceSelector(Struct, frozen=True):
    """``resource.k8s.io/v1.DeviceSelector``."""

    cel: CelDeviceSelector | None = None


class ExactDeviceRequest(Struct, frozen=True):
    """``resource.k8s.io/v1.ExactDeviceRequest``."""

    device_class_name: str
    selectors: list[DeviceSelector] = []
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool | None = None


class DeviceRequest(Struct, frozen=True):
    """``resource.k8s.io/v1.DeviceRequest``."""

    name: str
    exactly: ExactDeviceRequest | None = None


class DeviceConstraint(Struct, frozen=True):
    """``resource.k8s.io/v1.DeviceConstraint``."""

    requests: list[str] = []
    match_attribute: str | None = None


class DeviceClaim(Struct, frozen=True):
    """``spec.devices`` of a claim."""

    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[DeviceConfiguration] = []


class ResourceClaimSpec(Struct, frozen=True):
    """``resource.k8s.io/v1.ResourceClaimSpec``."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(Struct, frozen=True):
    """``allocation.devices.results[]``."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None


class AllocatedDevices(Struct, frozen=True):
    """``allocation.devices``."""

    results: list[DeviceResult] = []
    config: list[DeviceConfiguration] = []


class Allocation(Struct, frozen=True):
    """``status.allocation``."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


NOTHING = msgspec.Raw(b"")
"""An absent raw field; left out in encoding because it is this very object."""


class ResourceClaimStatus(Struct, frozen=True):
    """``status`` of a claim; what drivers reported stays raw."""

    allocation: msgspec.Raw = NOTHING
    reserved_for: list[ResourceClaimConsumerReference] = []
    devices: list[msgspec.Raw] = []


class ResourceClaim(Struct, frozen=True):
    """``resource.k8s.io/v1.ResourceClaim``, complete but for managed fields: it is sent back whole, byte for byte."""

    resource: ClassVar[Resource] = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def allocated(self) -> bool:
        """Whether the claim has devices."""
        return bytes(self.status.allocation) not in {b"", b"null"}


class ResourceClaimTemplateSpec(Struct, frozen=True):
    """``spec`` of a template: metadata and raw spec of the claims made from it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class ResourceClaimTemplate(Struct, frozen=True):
    """``resource.k8s.io/v1.ResourceClaimTemplate``."""

    resource: ClassVar[Resource] = Resource(
        "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
    )
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(Struct, frozen=True):
    """``resource.k8s.io/v1.DeviceClassSpec``."""

    selectors: list[DeviceSelector] = []
    config: list[DeviceConfiguration] = []


class DeviceClass(Struct, frozen=True):
    """``resource.k8s.io/v1.DeviceClass``."""

    resource: ClassVar[Resource] = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class Device(Struct, frozen=True):
    """``spec.devices[]`` of a slice; attributes and capacity as CEL reads them."""

    name: str
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, dict[str, Any]] = {}


class ResourceSliceSpec(Struct, frozen=True):
    """``resource.k8s.io/v1.ResourceSliceSpec``."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    devices: list[Device] = []


class ResourceSlice(Struct, frozen=True):
    """``resource.k8s.io/v1.ResourceSlice``."""

    resource: ClassVar[Resource] = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec(
        driver="", pool=ResourcePool(name="", generation=0, resource_slice_count=0)
    )


class RollingUpdate(Struct, frozen=True):
    """``rollingUpdate`` of a Deployment or DaemonSet: numbers or percentages."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class UpdateStrategy(Struct, frozen=True):
    """``strategy`` of a Deployment, ``updateStrategy`` of a DaemonSet or StatefulSet."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Struct, frozen=True):
    """``apps/v1.DeploymentSpec`` in part; the template stays a dict."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    replicas: int | None = None
    strategy: UpdateStrategy = UpdateStrategy()
    paused: bool = False
    revision_history_limit: int = 10


class DeploymentStatus(Struct, frozen=True, omit_defaults=False):
    """``apps/v1.DeploymentStatus``; zeros are written, because a merge patch keeps what it does not name."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: list[dict[str, Any]] = []


class Deployment(Struct, frozen=True):
    """``apps/v1.Deployment``."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "deployments", "Deployment", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(Struct, frozen=True):
    """``apps/v1.ReplicaSetSpec``."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    replicas: int | None = None


class ReplicaSetStatus(Struct, frozen=True, omit_defaults=False):
    """``apps/v1.ReplicaSetStatus``."""

    observed_generation: int = 0
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0


class ReplicaSet(Struct, frozen=True):
    """``apps/v1.ReplicaSet``."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "replicasets", "ReplicaSet", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetSpec(Struct, frozen=True):
    """``apps/v1.StatefulSetSpec`` without volume claims."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    replicas: int | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()


class StatefulSetStatus(Struct, frozen=True, omit_defaults=False):
    """``apps/v1.StatefulSetStatus``."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(Struct, frozen=True):
    """``apps/v1.StatefulSet``."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "statefulsets", "StatefulSet", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(Struct, frozen=True):
    """``apps/v1.DaemonSetSpec`` in part."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = {}
    update_strategy: UpdateStrategy = UpdateStrategy()


class DaemonSetStatus(Struct, frozen=True, omit_defaults=False):
    """``apps/v1.DaemonSetStatus``."""

    observed_generation: int = 0
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(Struct, frozen=True):
    """``apps/v1.DaemonSet``."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(Struct, frozen=True):
    """``batch/v1.JobSpec`` in part."""

    selector: LabelSelector | None = None
    template: dict[str, Any] = {}
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int = 6
    suspend: bool = False


class JobStatus(Struct, frozen=True, omit_defaults=False):
    """``batch/v1.JobStatus`` in part."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    completed_indexes: str = ""
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[dict[str, Any]] = []


class Job(Struct, frozen=True):
    """``batch/v1.Job``."""

    resource: ClassVar[Resource] = Resource("batch", "v1", "jobs", "Job", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner reference that says ``controller: true``."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)

"""Kinds of the groups ``""``, ``apps``, ``coordination.k8s.io`` and ``events.k8s.io`` that we touch."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from interlace.api.meta import ObjectMeta, Resource, Struct


class ObjectReference(Struct, frozen=True):
    """``v1.ObjectReference``."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class PodResourceClaim(Struct, frozen=True):
    """``spec.resourceClaims[]`` of a Pod."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Struct, frozen=True):
    """``status.resourceClaimStatuses[]``: the claim made for an entry of ``spec.resourceClaims``."""

    name: str
    resource_claim_name: str | None = None


class PodSpec(Struct, frozen=True):
    """What the controller and the CLI read of ``v1.PodSpec``: a few words, as there may be 100,000 of them."""

    node_name: str = ""
    resource_claims: list[PodResourceClaim] = []


class PodCondition(Struct, frozen=True):
    """``v1.PodCondition``."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(Struct, frozen=True):
    """``v1.PodStatus`` in part."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    host_ip: str = msgspec.field(name="hostIP", default="")
    conditions: list[PodCondition] = []
    resource_claim_statuses: list[PodResourceClaimStatus] = []


class Pod(Struct, frozen=True):
    """``v1.Pod``."""

    resource: ClassVar[Resource] = Resource("", "v1", "pods", "Pod", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def ready(self) -> bool:
        """Whether the condition ``Ready`` is true."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class ControllerRevision(Struct, frozen=True):
    """``apps/v1.ControllerRevision`` in part: one state of a DaemonSet's template, told apart by its labels."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "controllerrevisions", "ControllerRevision", True)
    metadata: ObjectMeta = ObjectMeta()
    revision: int = 0


class Taint(Struct, frozen=True):
    """``v1.Taint``."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Struct, frozen=True):
    """``v1.NodeSpec`` in part."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(Struct, frozen=True):
    """``v1.NodeStatus`` in part."""

    conditions: list[PodCondition] = []
    allocatable: dict[str, str] = {}


class Node(Struct, frozen=True):
    """``v1.Node``."""

    resource: ClassVar[Resource] = Resource("", "v1", "nodes", "Node", False)
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Struct, frozen=True):
    """``v1.Namespace``."""

    resource: ClassVar[Resource] = Resource("", "v1", "namespaces", "Namespace", False)
    metadata: ObjectMeta = ObjectMeta()


class EventSource(Struct, frozen=True):
    """``v1.EventSource``."""

    component: str = ""
    host: str = ""


class Event(Struct, frozen=True):
    """``v1.Event``, the kind that ``kubectl describe`` reads."""

    resource: ClassVar[Resource] = Resource("", "v1", "events", "Event", True)
    metadata: ObjectMeta = ObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int = 0
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""


class LeaseSpec(Struct, frozen=True):
    """``coordination.k8s.io/v1.LeaseSpec``; times are RFC 3339 with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct, frozen=True):
    """``coordination.k8s.io/v1.Lease``."""

    resource: ClassVar[Resource] = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()

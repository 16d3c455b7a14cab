"""Dynamic Resource Allocation: the kinds of ``resource.k8s.io/v1`` that we touch."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from interlace.api.meta import Condition, ObjectMeta, Resource, Struct

GROUP = "resource.k8s.io"
REPORTS_ANNOTATION = "interlace.dev/device-status"
"""On a node's ResourceSlice, where the API server does not keep ``status.devices`` of claims: the same entries as
JSON, ``{"<uid of the claim>": [entry, ...]}``."""


class DeviceAttribute(Struct, frozen=True):
    """One attribute of a device: exactly one field is set."""

    bool_: bool | None = msgspec.field(name="bool", default=None)
    int_: int | None = msgspec.field(name="int", default=None)
    string: str | None = None
    version: str | None = None


class Device(Struct, frozen=True):
    """``ResourceSlice.spec.devices[]``."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}


class ResourcePool(Struct, frozen=True):
    """The pool that a slice belongs to."""

    name: str
    generation: int
    resource_slice_count: int


class ResourceSliceSpec(Struct, frozen=True):
    """``ResourceSliceSpec``."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    devices: list[Device] = []


class ResourceSlice(Struct, frozen=True):
    """``resource.k8s.io/v1.ResourceSlice``."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "resourceslices", "ResourceSlice", False)
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec(
        driver="", pool=ResourcePool(name="", generation=0, resource_slice_count=0)
    )


class OpaqueDeviceConfiguration(Struct, frozen=True):
    """Parameters of one driver. They stay raw bytes: the API server compares them byte by byte."""

    driver: str
    parameters: msgspec.Raw = msgspec.Raw(b"{}")


class DeviceConfiguration(Struct, frozen=True):
    """``spec.devices.config[]`` of a claim, and ``allocation.devices.config[]`` with a ``source``."""

    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None
    source: str = ""
    """``FromClass`` or ``FromClaim`` in an allocation, absent in a spec."""


class DeviceRequestAllocationResult(Struct, frozen=True):
    """One allocated device."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None


class DeviceAllocationResult(Struct, frozen=True):
    """``allocation.devices``."""

    results: list[DeviceRequestAllocationResult] = []
    config: list[DeviceConfiguration] = []


class AllocationResult(Struct, frozen=True):
    """``status.allocation``."""

    devices: DeviceAllocationResult = DeviceAllocationResult()


class ResourceClaimConsumerReference(Struct, frozen=True):
    """``status.reservedFor[]``."""

    resource: str
    name: str
    uid: str
    api_group: str = ""


class AllocatedDeviceStatus(Struct, frozen=True):
    """``status.devices[]``: what a driver reports for one allocated device."""

    driver: str
    pool: str
    device: str
    conditions: list[Condition] | None = None
    """Null where a driver gave none."""
    data: msgspec.Raw = msgspec.Raw(b"null")
    """Raw cannot be optional in msgspec: an absent field reads as null."""


class ResourceClaimStatus(Struct, frozen=True):
    """``ResourceClaimStatus``."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] = []
    devices: list[AllocatedDeviceStatus] = []


class DeviceClaim(Struct, frozen=True):
    """``spec.devices`` of a claim, configurations only."""

    config: list[DeviceConfiguration] = []


class ResourceClaimSpec(Struct, frozen=True):
    """``ResourceClaimSpec`` in part."""

    devices: DeviceClaim = DeviceClaim()


class ResourceClaim(Struct, frozen=True):
    """``resource.k8s.io/v1.ResourceClaim``."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "resourceclaims", "ResourceClaim", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Struct, frozen=True):
    """``ResourceClaimTemplateSpec``: only what its claims get as metadata."""

    metadata: ObjectMeta = ObjectMeta()


class ResourceClaimTemplate(Struct, frozen=True):
    """``resource.k8s.io/v1.ResourceClaimTemplate`` in part: we write it from a value of our own."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClass(Struct, frozen=True):
    """``resource.k8s.io/v1.DeviceClass``, metadata only."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "deviceclasses", "DeviceClass", False)
    metadata: ObjectMeta = ObjectMeta()

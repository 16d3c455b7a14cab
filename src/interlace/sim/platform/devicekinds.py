"""Dynamic Resource Allocation as a scheduler and the claim controller read and write it.

Invariant: specs, allocations and device status that are only carried through stay raw bytes; the API server
compares opaque parameters byte by byte.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.api.resource import DeviceConfiguration, ResourceClaimConsumerReference, ResourcePool
from interlace.sim.platform.kinds import NodeSelector


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

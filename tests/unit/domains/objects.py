"""Short constructors of the objects that the decisions take."""

from __future__ import annotations

from collections.abc import Iterable

from interlace.api.computedomain import (
    CLIQUE_LABEL,
    DOMAIN_LABEL,
    DRIVER,
    ComputeDomain,
    ComputeDomainChannelSpec,
    ComputeDomainClique,
    ComputeDomainDaemonInfo,
    ComputeDomainSpec,
    ResourceClaimTemplateReference,
)
from interlace.api.core import Pod, PodSpec, PodStatus
from interlace.api.meta import Condition, ObjectMeta, OwnerReference
from interlace.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

UID = "8e3f6f0a-0000-4000-8000-00000000000a"
RACK = "c0ffee00-0000-4000-8000-0000000000ff"


def domain(*, name: str = "cd", namespace: str = "team", num_nodes: int = 0, mode: str = "Single") -> ComputeDomain:
    channel = ComputeDomainChannelSpec(
        resource_claim_template=ResourceClaimTemplateReference(name=f"{name}-rct"),
        allocation_mode="All" if mode == "All" else "Single",
    )
    return ComputeDomain(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=UID, generation=1),
        spec=ComputeDomainSpec(channel=channel, num_nodes=num_nodes),
    )


def claim(
    name: str,
    *,
    node: str = "",
    namespace: str = "team",
    conditions: Iterable[Condition] = (),
    reserved: bool = True,
    deleting: bool = False,
    pod: bool = True,
    driver: str = DRIVER,
    reported_on: str | None = None,
) -> ResourceClaim:
    """A claim of Pod ``pod-<name>``; ``conditions`` are what the agent of ``reported_on`` (or ``node``) said."""
    conditions = list(conditions)
    results = [DeviceRequestAllocationResult(request="channel", driver=driver, pool=node, device="channel-0")]
    device = AllocatedDeviceStatus(driver=DRIVER, pool=reported_on or node, device="channel-0", conditions=conditions)
    owner = OwnerReference(api_version="v1", kind="Pod", name=f"pod-{name}", uid=f"uid-of-pod-{name}")
    consumer = ResourceClaimConsumerReference(resource="pods", name=f"pod-{name}", uid=f"uid-of-pod-{name}")
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-of-{name}",
            labels={DOMAIN_LABEL: UID},
            owner_references=[owner] if pod else [],
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult(devices=DeviceAllocationResult(results=results)) if node else None,
            reserved_for=[consumer] if node and reserved else [],
            devices=[device] if conditions else [],
        ),
    )


def said(status: str, *, type_: str = "Ready", reason: str = "Prepared", message: str = "") -> Condition:
    """A condition as an agent writes it."""
    return Condition(type=type_, status=status, reason=reason, message=message)


def ready_claim(name: str, *, node: str) -> ResourceClaim:
    return claim(name, node=node, conditions=[said("True")])


def clique(
    rows: Iterable[tuple[str, int, str]], *, clique_id: str = f"{RACK}.0", annotations: dict[str, str] | None = None
) -> ComputeDomainClique:
    """``rows``: node, index, address."""
    return ComputeDomainClique(
        metadata=ObjectMeta(
            name=f"{UID}.{clique_id}",
            namespace="interlace-system",
            uid="uid-of-clique",
            resource_version="7",
            labels={DOMAIN_LABEL: UID, CLIQUE_LABEL: clique_id},
            annotations=annotations or {},
        ),
        daemons=[
            ComputeDomainDaemonInfo(node_name=node, ip_address=address, clique_id=clique_id, index=index)
            for node, index, address in rows
        ],
    )


def node_slice(node: str, *, clique_id: str | None, generation: int = 1) -> ResourceSlice:
    attributes = {"type": DeviceAttribute(string="channel"), "id": DeviceAttribute(int_=0)}
    if clique_id is not None:
        attributes["clique"] = DeviceAttribute(string=clique_id)
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{node}-slice"),
        spec=ResourceSliceSpec(
            driver=DRIVER,
            pool=ResourcePool(name=node, generation=generation, resource_slice_count=1),
            node_name=node,
            devices=[Device(name="channel-0", attributes=attributes)],
        ),
    )


def host(
    name: str,
    *,
    node: str,
    address: str,
    created: str = "2026-01-01T00:00:00Z",
    deleting: bool = False,
    phase: str = "",
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="interlace-system",
            creation_timestamp=created,
            deletion_timestamp="2026-01-01T01:00:00Z" if deleting else None,
        ),
        spec=PodSpec(node_name=node),
        status=PodStatus(phase=phase or "Running", pod_ip=address),
    )

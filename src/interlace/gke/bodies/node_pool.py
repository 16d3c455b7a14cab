"""Body of a node pool: the nodes, their GPUs and networks, and how they are upgraded and placed.

Invariant: additional networks go out in the order in which they are given, because the order decides which NIC of the
machine belongs to which of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from interlace.gke.bodies.fields import Body, given, listed, nested

RESERVATION_KEY = "compute.googleapis.com/reservation-name"


class Accelerator(msgspec.Struct, frozen=True):
    """GPUs of a node. ``driver``: ``LATEST``, ``DEFAULT``, ``INSTALLATION_DISABLED`` or nothing."""

    type: str
    count: int
    driver: str | None = None
    partition: str | None = None
    sharing: str | None = None
    clients: int | None = None


class Taint(msgspec.Struct, frozen=True):
    """``effect``: ``NO_SCHEDULE``, ``PREFER_NO_SCHEDULE`` or ``NO_EXECUTE``."""

    key: str
    value: str
    effect: str


class Nic(msgspec.Struct, frozen=True):
    """An additional network of the nodes: names of a VPC network and of its subnet."""

    network: str
    subnetwork: str


def node_config(
    *,
    machine_type: str | None = None,
    accelerators: Iterable[Accelerator] = (),
    scopes: Sequence[str] | None = None,
    service_account: str | None = None,
    gvnic: bool | None = None,
    image_type: str | None = None,
    disk_type: str | None = None,
    disk_gb: int | None = None,
    labels: Mapping[str, str] | None = None,
    resource_labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    tags: Sequence[str] = (),
    reservation: Body | None = None,
    host_maintenance: str | None = None,
    spot: bool | None = None,
    **more: Any,
) -> Body:
    """What each node is. ``labels``: of the Kubernetes Nodes; ``resource_labels``: of the machines.

    ``host_maintenance``: ``PERIODIC`` or ``AS_NEEDED``, which only v1beta1 of the API knows. ``reservation``: made by
    ``reservation_affinity``. ``more``: further fields as the API names them.
    """
    return given(
        machineType=machine_type,
        accelerators=listed(_accelerator(each) for each in accelerators),
        oauthScopes=None if scopes is None else list(scopes),
        serviceAccount=service_account,
        gvnic=nested(enabled=gvnic),
        imageType=image_type,
        diskType=disk_type,
        diskSizeGb=disk_gb,
        labels=dict(labels) if labels else None,
        resourceLabels=dict(resource_labels) if resource_labels else None,
        taints=listed(given(key=each.key, value=each.value, effect=each.effect) for each in taints),
        tags=listed(tags),
        reservationAffinity=reservation,
        hostMaintenancePolicy=nested(maintenanceInterval=host_maintenance),
        spot=spot,
    ) | given(**more)


def _accelerator(accelerator: Accelerator) -> Body:
    return given(
        acceleratorType=accelerator.type,
        acceleratorCount=str(accelerator.count),
        gpuDriverInstallationConfig=nested(gpuDriverVersion=accelerator.driver),
        gpuPartitionSize=accelerator.partition,
        gpuSharingConfig=nested(
            gpuSharingStrategy=accelerator.sharing,
            maxSharedClientsPerGpu=None if accelerator.clients is None else str(accelerator.clients),
        ),
    )


def reservation_affinity(kind: str, names: Sequence[str] = ()) -> Body:
    """Which reservation nodes are taken from. ``kind``: ``SPECIFIC_RESERVATION``, ``ANY_RESERVATION`` or
    ``NO_RESERVATION``; ``names``: of the specific one, with project and block where needed.
    """
    if not names:
        return {"consumeReservationType": kind}
    return {"consumeReservationType": kind, "key": RESERVATION_KEY, "values": list(names)}


def autoscaling(
    *,
    enabled: bool = True,
    minimum: int | None = None,
    maximum: int | None = None,
    total_minimum: int | None = None,
    total_maximum: int | None = None,
    location_policy: str | None = None,
    **more: Any,
) -> Body:
    """How far a pool grows and shrinks: per zone, or in all zones together (``total``)."""
    return given(
        enabled=enabled,
        minNodeCount=minimum,
        maxNodeCount=maximum,
        totalMinNodeCount=total_minimum,
        totalMaxNodeCount=total_maximum,
        locationPolicy=location_policy,
    ) | given(**more)


def node_pool(
    *,
    name: str,
    config: Body,
    nodes: int | None = None,
    nics: Iterable[Nic] = (),
    network: Mapping[str, Any] | None = None,
    locations: Sequence[str] = (),
    auto_repair: bool | None = True,
    auto_upgrade: bool | None = True,
    placement: Body | None = None,
    upgrade: Body | None = None,
    scaling: Body | None = None,
    node_version: str | None = None,
    max_pods: int | None = None,
    **more: Any,
) -> Body:
    """A node pool. ``nodes``: in each of its zones. ``network``: further fields of the network configuration,
    ``more``: further fields of the pool, both as the API names them. ``upgrade``: one spare node if nothing is said.
    """
    wire = given(
        additionalNodeNetworkConfigs=listed({"network": each.network, "subnetwork": each.subnetwork} for each in nics),
        **(network or {}),
    )
    return given(
        name=name,
        initialNodeCount=nodes,
        config=config,
        networkConfig=wire or None,
        locations=listed(locations),
        management=nested(autoRepair=auto_repair, autoUpgrade=auto_upgrade),
        placementPolicy=placement,
        upgradeSettings={"maxSurge": 1} if upgrade is None else upgrade,
        autoscaling=scaling,
        version=node_version,
        maxPodsConstraint=nested(maxPodsPerNode=None if max_pods is None else str(max_pods)),
    ) | given(**more)

"""Bodies of the Compute Engine resources around a cluster: networks, subnets, firewall rules, policies, reservations.

Invariant: values are taken as the API spells them; nothing is guessed, and what was not said is not sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from interlace.gke.bodies.fields import Body, given, listed, nested
from interlace.gke.bodies.references import compute_url, network_url


class Traffic(msgspec.Struct, frozen=True):
    """Traffic of a firewall rule: a protocol by name or number, and its ports (``80``, ``0-65535``), all if none."""

    protocol: str
    ports: tuple[str, ...] = ()


class SecondaryRange(msgspec.Struct, frozen=True):
    """A named range of a subnet, for Pods or Services."""

    name: str
    range: str


def network(
    *,
    name: str,
    mtu: int | None = None,
    automatic: bool = False,
    routing: str | None = "REGIONAL",
    profile: str | None = None,
    description: str | None = None,
    project: str = "",
    version: str = "v1",
    **more: Any,
) -> Body:
    """A VPC network. ``automatic``: with a subnet in each region. ``profile``: name of a network profile (RDMA).

    ``more``: further fields as the API names them.
    """
    return given(
        name=name,
        description=description,
        autoCreateSubnetworks=automatic,
        mtu=mtu,
        routingConfig=nested(routingMode=routing),
        networkProfile=None
        if profile is None
        else compute_url(profile, collection="global/networkProfiles", project=project, version=version),
    ) | given(**more)


def subnetwork(
    *,
    name: str,
    network: str,
    range: str | None,
    project: str,
    version: str = "v1",
    secondary: Iterable[SecondaryRange] = (),
    private_google_access: bool | None = False,
    description: str | None = None,
    **more: Any,
) -> Body:
    """A subnet. ``network``: name, path or URL of its network. ``more``: further fields as the API names them."""
    ranges = [{"rangeName": each.name, "ipCidrRange": each.range} for each in secondary]
    return given(
        name=name,
        description=description,
        network=network_url(network, project=project, version=version),
        ipCidrRange=range,
        privateIpGoogleAccess=private_google_access,
        secondaryIpRanges=listed(ranges),
    ) | given(**more)


def firewall(
    *,
    name: str,
    network: str,
    project: str,
    version: str = "v1",
    allowed: Iterable[Traffic] = (),
    denied: Iterable[Traffic] = (),
    sources: Sequence[str] = (),
    direction: str = "INGRESS",
    priority: int | None = None,
    description: str | None = None,
    **more: Any,
) -> Body:
    """A firewall rule. ``sources``: address ranges. ``more``: further fields as the API names them."""
    return given(
        name=name,
        description=description,
        network=network_url(network, project=project, version=version),
        direction=direction,
        priority=priority,
        allowed=listed(_traffic(each) for each in allowed),
        denied=listed(_traffic(each) for each in denied),
        sourceRanges=listed(sources),
    ) | given(**more)


def _traffic(traffic: Traffic) -> Body:
    return given(IPProtocol=traffic.protocol, ports=listed(traffic.ports))


def group_placement(
    *,
    name: str,
    region: str,
    collocation: str | None = "COLLOCATED",
    vm_count: int | None = None,
    max_distance: int | None = None,
    gpu_topology: str | None = None,
    description: str | None = None,
    **more: Any,
) -> Body:
    """A resource policy that places machines together. ``max_distance`` needs the beta version of the API.

    ``more``: further fields of the placement as the API names them.
    """
    placement = given(
        collocation=collocation, vmCount=vm_count, maxDistance=max_distance, gpuTopology=gpu_topology
    ) | given(**more)
    return given(name=name, description=description, region=region, groupPlacementPolicy=placement)


def workload_policy(*, name: str, region: str, type: str, description: str | None = None, **more: Any) -> Body:
    """A resource policy that says how machines work together (``HIGH_THROUGHPUT``). ``more``: further fields of it."""
    return given(name=name, description=description, region=region, workloadPolicy=given(type=type, **more))


def reservation(
    *,
    name: str,
    zone: str,
    count: int,
    machine_type: str,
    project: str,
    specific: bool | None = None,
    policies: Mapping[str, str] | None = None,
    shared_with: Iterable[str] = (),
    version: str = "v1",
    instance: Mapping[str, Any] | None = None,
    **more: Any,
) -> Body:
    """A reservation of machines. ``policies``: key to name of a resource policy of the zone's region.

    ``instance``: further properties of its machines, ``more``: further fields, both as the API names them.
    """
    region = zone.rpartition("-")[0]
    urls = {
        key: compute_url(policy, collection=f"regions/{region}/resourcePolicies", project=project, version=version)
        for key, policy in (policies or {}).items()
    }
    projects = {each: {"projectId": each} for each in shared_with}
    return given(
        name=name,
        zone=zone,
        resourcePolicies=urls or None,
        shareSettings={"shareType": "SPECIFIC_PROJECTS", "projectMap": projects} if projects else None,
        specificReservation={
            "count": str(count),
            "instanceProperties": given(machineType=machine_type, **(instance or {})),
        },
        specificReservationRequired=specific,
    ) | given(**more)

"""Body of a cluster: its control plane, its networks, and the pool that it is born with.

Invariant: networks are named, not written as URLs, as the Kubernetes Engine API takes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from interlace.gke.bodies.fields import Body, given, listed, nested


def cluster(
    *,
    name: str,
    pools: Iterable[Body] = (),
    version: str | None = None,
    channel: str | None = None,
    network: str | None = None,
    subnetwork: str | None = None,
    addresses: Body | None = None,
    networking: Body | None = None,
    private: Body | None = None,
    locations: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    maintenance: Body | None = None,
    workload_pool: str | None = None,
    description: str | None = None,
    **more: Any,
) -> Body:
    """A cluster. ``channel``: ``RAPID``, ``REGULAR``, ``STABLE``, ``EXTENDED`` or ``UNSPECIFIED``.

    ``addresses``: made by ``addresses``; ``networking``: by ``networking``; ``private``: the privateClusterConfig.
    ``more``: further fields as the API names them.
    """
    return given(
        name=name,
        description=description,
        initialClusterVersion=version,
        releaseChannel=nested(channel=channel),
        network=network,
        subnetwork=subnetwork,
        ipAllocationPolicy=addresses,
        networkConfig=networking,
        privateClusterConfig=private,
        locations=listed(locations),
        resourceLabels=dict(labels) if labels else None,
        maintenancePolicy=maintenance,
        workloadIdentityConfig=nested(workloadPool=workload_pool),
        nodePools=listed(pools),
    ) | given(**more)


def addresses(
    *,
    alias: bool = True,
    create_subnetwork: bool | None = False,
    pods: str | None = None,
    services: str | None = None,
    pods_name: str | None = None,
    services_name: str | None = None,
    **more: Any,
) -> Body:
    """Where Pods and Services get addresses: ranges (``10.4.0.0/14``, ``/14``), or names of ranges of the subnet."""
    return given(
        useIpAliases=alias,
        createSubnetwork=create_subnetwork,
        clusterIpv4CidrBlock=pods,
        servicesIpv4CidrBlock=services,
        clusterSecondaryRangeName=pods_name,
        servicesSecondaryRangeName=services_name,
    ) | given(**more)


def networking(*, dataplane: str | None = None, multi: bool | None = None, **more: Any) -> Body | None:
    """How Pods are connected. ``dataplane``: ``ADVANCED_DATAPATH`` is Dataplane V2, which several networks need."""
    return nested(datapathProvider=dataplane, enableMultiNetworking=multi, **more)

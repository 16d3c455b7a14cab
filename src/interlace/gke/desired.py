"""What should exist for a cluster file: its resources with their bodies, in the order in which people make them.

Invariant: the cluster's own pool without GPUs is part of the cluster's body, since a cluster is born with one; each
pool with GPUs is a resource of its own. Networks that exist already are referred to and not listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any, Final

from interlace.gke import names
from interlace.gke.addresses import Addresses, plan
from interlace.gke.bodies import cluster as cluster_bodies
from interlace.gke.bodies import compute, node_pool
from interlace.gke.bodies.fields import Body, given, nested
from interlace.gke.bodies.scopes import ALIASES, DEFAULT, urls
from interlace.gke.cluster import SYSTEM_POOL, Disk, FabricCluster, Hold, Placement, Pool, Primary, System, Taint
from interlace.gke.errors import SpecErrors
from interlace.gke.resource import Key, Resource

FIREWALL: Final = (
    compute.Traffic("tcp", ("0-65535",)),
    compute.Traffic("udp", ("0-65535",)),
    compute.Traffic("icmp"),
)
"""What nodes send each other over the NICs for GPUs."""

ROCE: Final = "vpc-roce"
"""Network profile for NICs with RDMA; its name begins with the zone."""

DRANET: Final = {"cloud.google.com/gke-networking-dra-driver": "true"}
"""Label of nodes whose networks GKE makes and hands out itself."""

_EFFECTS: Final = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
_DRIVERS: Final = {"latest": "LATEST", "default": "DEFAULT", "disabled": "INSTALLATION_DISABLED"}


def desired(cluster: FabricCluster) -> tuple[Resource, ...]:
    """Resources in the order of their making: networks, policies, cluster, pools. Raises SpecErrors."""
    addresses, errors = plan(cluster)
    if errors:
        raise SpecErrors(errors)
    return (
        *_primary(cluster, addresses),
        *_fabric(cluster, addresses),
        *_policies(cluster),
        _cluster(cluster, addresses),
        *(_pool(cluster, pool) for pool in cluster.spec.pools),
    )


def cluster_key(cluster: FabricCluster) -> Key:
    """Of the cluster itself."""
    return Key("cluster", cluster.spec.location, cluster.name)


def _network(cluster: FabricCluster, name: str, *, mtu: int | None, profile: str | None = None) -> Resource:
    project = cluster.network_project
    body = compute.network(name=name, mtu=mtu, profile=profile, project=project)
    return Resource(key=Key("network", "global", name), project=project, body=body)


def _subnet(
    cluster: FabricCluster,
    name: str,
    *,
    network: str,
    range: IPv4Network | None,
    secondary: tuple[compute.SecondaryRange, ...] = (),
    private_google_access: bool = False,
) -> Resource:
    project = cluster.network_project
    body = compute.subnetwork(
        name=name,
        network=network,
        range=None if range is None else str(range),
        project=project,
        secondary=secondary,
        private_google_access=private_google_access,
    )
    after = (Key("network", "global", network),)
    return Resource(key=Key("subnetwork", cluster.region, name), project=project, body=body, after=after)


def _primary(cluster: FabricCluster, addresses: Addresses) -> Iterator[Resource]:
    primary = cluster.spec.primary
    if primary.existing:
        return
    network, subnet = names.primary(cluster)
    yield _network(cluster, network, mtu=_mtu(cluster))
    yield _subnet(
        cluster,
        subnet,
        network=network,
        range=addresses.primary,
        secondary=tuple(
            compute.SecondaryRange(name, str(each))
            for name, each in ((primary.pods_name, addresses.pods), (primary.services_name, addresses.services))
            if name
        ),
        # Nodes without public addresses pull images and report through it.
        private_google_access=cluster.spec.control_plane.private_nodes,
    )


def _fabric(cluster: FabricCluster, addresses: Addresses) -> Iterator[Resource]:
    if cluster.spec.network.existing:
        return
    made: set[str] = set()
    for nic, found in zip(names.nics(cluster), addresses.nics, strict=True):
        rdma = nic.of.mode == "RDMA"
        if nic.network not in made:
            made.add(nic.network)
            profile = f"{_zone(cluster)}-{ROCE}" if rdma else None
            yield _network(cluster, nic.network, mtu=None if rdma else _mtu(cluster), profile=profile)
        yield _subnet(cluster, nic.subnet, network=nic.network, range=found)
        if nic.firewall:
            yield _firewall(cluster, nic, sources=found)


def _firewall(cluster: FabricCluster, nic: names.NicNames, *, sources: IPv4Network | None) -> Resource:
    project = cluster.network_project
    body = compute.firewall(
        name=nic.firewall, network=nic.network, project=project, allowed=FIREWALL, sources=(str(sources),)
    )
    after = (Key("network", "global", nic.network),)
    return Resource(key=Key("firewall", "global", nic.firewall), project=project, body=body, after=after)


def _policies(cluster: FabricCluster) -> Iterator[Resource]:
    for pool in cluster.spec.pools:
        if pool.placement is not None and not pool.placement.policy:
            yield _policy(cluster, pool, pool.placement)


def _policy(cluster: FabricCluster, pool: Pool, placement: Placement) -> Resource:
    name = names.policy(cluster, pool)
    body = compute.group_placement(
        name=name,
        region=cluster.region,
        max_distance=placement.max_distance,
        gpu_topology=placement.topology or None,
    )
    key = Key("resourcePolicy", cluster.region, name)
    version = "v1" if placement.max_distance is None else "beta"
    return Resource(key=key, project=cluster.spec.project, body=body, version=version)


def _cluster(cluster: FabricCluster, addresses: Addresses) -> Resource:
    spec = cluster.spec
    network, subnet = names.primary(cluster)
    private = spec.control_plane.private_nodes
    body = cluster_bodies.cluster(
        name=cluster.name,
        version=spec.version or None,
        channel="UNSPECIFIED" if spec.upgrades.channel == "none" else spec.upgrades.channel.upper(),
        network=_path(cluster, "global/networks", network),
        subnetwork=_path(cluster, f"regions/{cluster.region}/subnetworks", subnet),
        addresses=_ranges(spec.primary, addresses),
        networking=cluster_bodies.networking(
            dataplane="ADVANCED_DATAPATH",
            multi=True if names.nics(cluster) else None,
            defaultEnablePrivateNodes=True if private else None,
        ),
        private=_private(addresses) if private else None,
        controlPlaneEndpointsConfig=_endpoints(spec.control_plane.authorized_networks),
        locations=() if cluster.zones == (spec.location,) else cluster.zones,
        labels=cluster.metadata.labels,
        maintenance=None if spec.upgrades.hold is None else _hold(spec.upgrades.hold),
        workload_pool=f"{spec.project}.svc.id.goog" if spec.workload_identity else None,
        pools=(_system(cluster, spec.system),),
    )
    after = () if spec.primary.existing else (Key("subnetwork", cluster.region, subnet),)
    return Resource(key=cluster_key(cluster), project=spec.project, body=body, after=after)


def _ranges(primary: Primary, addresses: Addresses) -> Body:
    """Secondary ranges by name; GKE makes those without a name itself, of the planned addresses if there are any."""
    pods, services = primary.pods_name, primary.services_name
    return cluster_bodies.addresses(
        pods_name=pods or None,
        services_name=services or None,
        pods=None if pods or addresses.pods is None else str(addresses.pods),
        services=None if services or addresses.services is None else str(addresses.services),
    )


def _private(addresses: Addresses) -> Body:
    return given(
        enablePrivateNodes=True,
        masterIpv4CidrBlock=None if addresses.control_plane is None else str(addresses.control_plane),
    )


def _endpoints(authorized: tuple[str, ...]) -> Body | None:
    if not authorized:
        return None
    blocks = [{"cidrBlock": each} for each in authorized]
    return {"ipEndpointsConfig": {"authorizedNetworksConfig": {"enabled": True, "cidrBlocks": blocks}}}


def _hold(hold: Hold) -> Body:
    options = given(scope=hold.scope, endTimeBehavior=None if hold.end else "UNTIL_END_OF_SUPPORT")
    window = given(startTime=hold.start, endTime=hold.end or None, maintenanceExclusionOptions=options)
    return {"window": {"maintenanceExclusions": {names.HOLD: window}}}


def _system(cluster: FabricCluster, system: System) -> Body:
    config = node_pool.node_config(
        machine_type=system.machine_type,
        scopes=_scopes(system.scopes),
        service_account=system.service_account or None,
        labels=system.labels,
        resource_labels=cluster.metadata.labels,
        taints=_taints(system.taints),
        **_disk(system.disk),
    )
    return node_pool.node_pool(
        name=SYSTEM_POOL, nodes=system.nodes, config=config, auto_upgrade=cluster.spec.upgrades.automatic
    )


def _pool(cluster: FabricCluster, pool: Pool) -> Resource:
    family = cluster.family
    managed = cluster.spec.network.mode == "managed"
    config = node_pool.node_config(
        machine_type=family.machines[0],
        accelerators=(node_pool.Accelerator(family.node.accelerator, family.node.gpus, _DRIVERS[pool.driver]),),
        scopes=_scopes(pool.scopes),
        service_account=pool.service_account or None,
        # The published recipe of A4X, whose nodes are arm64, asks for none.
        gvnic=True if family.node.arch == "amd64" else None,
        image_type=pool.image_type or None,
        labels={**pool.labels, **DRANET} if managed else pool.labels,
        resource_labels=cluster.metadata.labels,
        taints=_taints(pool.taints),
        tags=pool.tags,
        reservation=None
        if pool.reservation is None
        else node_pool.reservation_affinity("SPECIFIC_RESERVATION", (pool.reservation.value,)),
        host_maintenance=pool.host_maintenance,
        spot=pool.spot or None,
        **_disk(pool.disk),
    )
    scaling = pool.autoscaling
    body = node_pool.node_pool(
        name=pool.name,
        nodes=pool.nodes,
        config=config,
        nics=_nics(cluster),
        network={"acceleratorNetworkProfile": "auto"} if managed else None,
        locations=pool.zones,
        auto_repair=pool.auto_repair,
        auto_upgrade=cluster.spec.upgrades.automatic,
        placement=nested(policyName=names.policy(cluster, pool) or None),
        upgrade=given(maxSurge=pool.surge.max_surge, maxUnavailable=pool.surge.max_unavailable or None),
        scaling=None if scaling is None else node_pool.autoscaling(minimum=scaling.min, maximum=scaling.max),
        max_pods=pool.max_pods,
    )
    key = cluster_key(cluster)
    return Resource(
        key=Key("nodePool", f"{key.place}/{key.name}", pool.name),
        project=cluster.spec.project,
        body=body,
        version="v1" if pool.host_maintenance is None else "v1beta1",
        after=_before_pool(cluster, pool),
    )


def _before_pool(cluster: FabricCluster, pool: Pool) -> tuple[Key, ...]:
    """What a pool waits for: subnets of its NICs, its policy, the cluster."""
    after = []
    if not cluster.spec.network.existing:
        after += [Key("subnetwork", cluster.region, nic.subnet) for nic in names.nics(cluster)]
    if pool.placement is not None and not pool.placement.policy:
        after.append(Key("resourcePolicy", cluster.region, names.policy(cluster, pool)))
    return (*after, cluster_key(cluster))


def _nics(cluster: FabricCluster) -> tuple[node_pool.Nic, ...]:
    return tuple(
        node_pool.Nic(
            _path(cluster, "global/networks", each.network),
            _path(cluster, f"regions/{cluster.region}/subnetworks", each.subnet),
        )
        for each in names.nics(cluster)
    )


def _path(cluster: FabricCluster, collection: str, name: str) -> str:
    """As a cluster names a network: by name, and by path where another project has it."""
    host = cluster.spec.network.host_project
    return f"projects/{host}/{collection}/{name}" if host and host != cluster.spec.project else name


def _mtu(cluster: FabricCluster) -> int | None:
    return cluster.spec.network.mtu or cluster.family.node.mtu or None


def _zone(cluster: FabricCluster) -> str:
    """The zone of the GPUs: RDMA networks have a profile of one zone."""
    for pool in cluster.spec.pools:
        for zone in cluster.zones_of(pool):
            return zone
    return cluster.spec.location


def _scopes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Written out, each once, in their order."""
    return tuple(dict.fromkeys(urls(url for each in scopes for url in ALIASES.get(each, (each,))))) or DEFAULT


def _taints(taints: tuple[Taint, ...]) -> tuple[node_pool.Taint, ...]:
    return tuple(node_pool.Taint(each.key, each.value, _EFFECTS[each.effect]) for each in taints)


def _disk(disk: Disk) -> dict[str, Any]:
    local = None if disk.local_ssds is None else {"localSsdCount": disk.local_ssds}
    return {"disk_type": disk.type or None, "disk_gb": disk.size_gb, "ephemeralStorageLocalSsdConfig": local}

"""Whether a cluster file of the right shape can be made into resources at all. Pure.

What stands here is what would make names, addresses or bodies impossible or contradictory. Whether the cluster would
be a good one for GPUDirect is for the rules. Invariant: each error has a pointer into the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from ipaddress import IPv4Network, ip_network
from typing import Final

from interlace.fabric.family import Family, FamilyError, find
from interlace.fabric.version import VersionError, gke_version
from interlace.gke import names
from interlace.gke.addresses import CONTROL_PLANE_PREFIX, USELESS, Addresses, nic_pointer, plan
from interlace.gke.cluster import NAME, FabricCluster, Hold, Pool
from interlace.gke.errors import SpecError
from interlace.gke.pool_checking import check_pools
from interlace.rules.pointer import pointer as join

MANAGED_FROM: Final = "1.34.1-gke.1829001"
"""The least version whose node pools take an accelerator network profile. Source: GKE's page on managed DRANET."""

LONGEST: Final = 63
"""Characters of a name of Compute Engine."""

NODE_PODS_PREFIX: Final = 24
"""Part of the Pods' range that each node takes, with GKE's 110 Pods a node."""

_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}\Z")
_NODE_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
_NODE_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")


def check(cluster: FabricCluster) -> tuple[SpecError, ...]:
    """All that stands against the cluster."""
    known = tuple(_family(cluster))
    if known:
        return known
    shape = tuple(_nics(cluster))
    return (
        *shape,
        *_places(cluster),
        *_settings(cluster),
        *check_pools(cluster),
        *(() if shape else _derived(cluster)),
    )


def _family(cluster: FabricCluster) -> Iterator[SpecError]:
    pointer = "/spec/family"
    try:
        family = find(cluster.spec.family)
    except FamilyError as error:
        yield SpecError(
            str(error), pointer=pointer, value=cluster.spec.family, remedy="interlace families list says more"
        )
        return
    if not family.node.gke:
        yield SpecError(
            "GKE has no machines of this family",
            pointer=pointer,
            value=cluster.spec.family,
            cause=f"{family.title} stands in clusters of one's own",
            remedy="take a4x for GB200 on GKE",
        )


def _nics(cluster: FabricCluster) -> Iterator[SpecError]:
    network, family = cluster.spec.network, cluster.family
    at = "/spec/network"
    if network.mode == "managed":
        if is_h100(family):
            yield SpecError(
                f"{family.id} cannot have networks managed by GKE",
                pointer=f"{at}/mode",
                value="managed",
                cause="GKE makes networks for accelerators itself for families with RDMA, not for those with H100 GPUs",
                remedy="take multinet",
            )
        yield from _managed_version(cluster)
        for key, mixed in (("nics", network.nics), ("range", network.range), ("existing", network.existing)):
            if mixed:
                yield SpecError(
                    "networks that GKE makes cannot be described here",
                    pointer=f"{at}/{key}",
                    cause="mode is managed, and a node pool takes managed networks or listed ones, never both",
                    remedy=f"leave {key} out, or take mode multinet",
                )
    elif network.nics and len(network.nics) != len(family.networks):
        yield SpecError(
            f"{family.id} needs {len(family.networks)} networks, and {len(network.nics)} are listed",
            pointer=f"{at}/nics",
            value=f"{len(network.nics)} networks",
            cause="each NIC of a node has one, in their order, and GPUs without one fall back to slower NICs",
            remedy="list one for each, {} where all is derived, or leave nics out",
        )


def _managed_version(cluster: FabricCluster) -> Iterator[SpecError]:
    """Whether a whole version can manage networks; which one a channel or an alias gives is for the server."""
    try:
        version = gke_version(cluster.spec.version)
    except VersionError:
        return
    if version < gke_version(MANAGED_FROM):
        yield SpecError(
            "this version makes no networks itself",
            pointer="/spec/version",
            value=cluster.spec.version,
            cause=f"network mode managed needs GKE {MANAGED_FROM} or newer",
            remedy="take a newer version, or network mode multinet",
        )


def is_h100(family: Family) -> bool:
    """Whether its NICs are those of the H100 machines, TCPX and TCPXO."""
    return family.node.transport in {"tcpx", "tcpxo"}


def _places(cluster: FabricCluster) -> Iterator[SpecError]:
    spec = cluster.spec
    given = [(f"/spec/nodeLocations/{index}", zone) for index, zone in enumerate(spec.node_locations)]
    for number, pool in enumerate(spec.pools):
        given += [(f"/spec/pools/{number}/zones/{index}", zone) for index, zone in enumerate(pool.zones)]
    seen: set[tuple[str, str]] = set()
    for pointer, zone in given:
        place = (pointer.rpartition("/")[0], zone)
        if place in seen:
            yield SpecError("this zone stands here twice", pointer=pointer, value=zone, remedy="name each zone once")
        seen.add(place)
        if zone.rpartition("-")[0] != cluster.region:
            yield SpecError(
                "this zone is in another region",
                pointer=pointer,
                value=zone,
                cause=f"nodes of a cluster at {spec.location} are in zones of {cluster.region}",
                remedy=f"take a zone of {cluster.region}",
            )
    if spec.node_locations and spec.location not in (cluster.region, *spec.node_locations):
        yield SpecError(
            "the zone of the cluster is not among the zones of its nodes",
            pointer="/spec/nodeLocations",
            value=", ".join(spec.node_locations),
            cause=f"a zonal cluster has nodes in its own zone, {spec.location}",
            remedy=f"add {spec.location}, or make the cluster regional with location: {cluster.region}",
        )
    if any(each.mode == "RDMA" for each in cluster.family.networks) and spec.network.mode == "multinet":
        yield from _one_zone(cluster)


def _one_zone(cluster: FabricCluster) -> Iterator[SpecError]:
    """RDMA networks belong to a zone."""
    zones = dict.fromkeys(zone for pool in cluster.spec.pools for zone in cluster.zones_of(pool))
    if len(zones) != 1:
        yield SpecError(
            f"{cluster.family.id} needs all its GPUs in one zone",
            pointer="/spec/pools",
            value=", ".join(zones) or cluster.spec.location,
            cause="an RDMA network has the profile of one zone",
            remedy="name one zone in nodeLocations, or the same one in zones of each pool",
        )


def _settings(cluster: FabricCluster) -> Iterator[SpecError]:
    spec = cluster.spec
    yield from _labels(cluster.metadata.labels)
    if spec.upgrades.hold is not None:
        yield from _hold(spec.upgrades.hold, channel=spec.upgrades.channel)
    control = spec.control_plane
    if control.range is not None and not control.private_nodes:
        yield SpecError(
            "this range is for nothing",
            pointer="/spec/controlPlane/range",
            value=control.range,
            cause="only the control plane of private nodes has a range of its own",
            remedy="set privateNodes: true, or leave it out",
        )
    for index, text in enumerate(control.authorized_networks):
        try:
            ip_network(text)
        except ValueError as error:
            yield SpecError(
                "this is no address range",
                pointer=f"/spec/controlPlane/authorizedNetworks/{index}",
                value=text,
                cause=str(error),
                remedy="write it like 203.0.113.0/24",
            )
    primary = spec.primary
    if primary.existing:
        for key, value in (("network", primary.network), ("subnet", primary.subnet)):
            if not value:
                yield SpecError(
                    f"the {key} that exists is not named",
                    pointer=f"/spec/primary/{key}",
                    cause="existing is true, so no name is derived",
                    remedy="name it, or leave existing out and one is made",
                )


def _labels(labels: dict[str, str]) -> Iterator[SpecError]:
    for key, value in labels.items():
        if not _LABEL_KEY.match(key) or not _LABEL_VALUE.match(value):
            yield SpecError(
                "this is no label of Google Cloud",
                pointer=join("metadata", "labels", key),
                value=f"{key}={value}",
                cause="it has lower-case letters, digits, '_' and '-', at most 63, and a letter first in the key",
                remedy="write it in lower case",
            )


def _hold(hold: Hold, *, channel: str) -> Iterator[SpecError]:
    if channel == "none":
        yield SpecError(
            "there is nothing to hold",
            pointer="/spec/upgrades/hold",
            cause="only clusters in a release channel know a hold with a scope",
            remedy="take a channel, or leave hold out",
        )
    moments = []
    for key, text in (("start", hold.start), ("end", hold.end)):
        try:
            moment = datetime.fromisoformat(text) if text else None
        except ValueError:
            moment = datetime.min  # noqa: DTZ901  only its lack of a zone counts
        if moment is not None and moment.tzinfo is None:
            yield SpecError(
                "this is no moment",
                pointer=f"/spec/upgrades/hold/{key}",
                value=text,
                cause="date, time and zone are needed",
                remedy="write it like 2026-12-01T00:00:00Z",
            )
            return
        moments.append(moment)
    start, end = moments
    if start is None:
        yield SpecError("this must not be empty", pointer="/spec/upgrades/hold/start")
    elif end is not None and end <= start:
        yield SpecError(
            "the hold ends before it begins",
            pointer="/spec/upgrades/hold/end",
            value=hold.end,
            cause=f"it begins at {hold.start}",
            remedy="leave the end out: the hold then lasts as long as the version is supported",
        )


def _derived(cluster: FabricCluster) -> Iterator[SpecError]:
    """What names and ranges come to."""
    yield from _names(cluster)
    addresses, errors = plan(cluster)
    yield from errors
    if not errors:
        yield from _capacity(cluster, addresses)


def _names(cluster: FabricCluster) -> Iterator[SpecError]:
    found: list[tuple[str, str]] = []
    nics = names.nics(cluster)
    for index, nic in enumerate(nics):
        at = f"/spec/network/nics/{index}" if cluster.spec.network.nics else "/spec/network/prefix"
        found += [(at, each) for each in (nic.network, nic.subnet, nic.firewall) if each]
    found += [("/spec/primary", each) for each in names.primary(cluster)]
    for index, pool in enumerate(cluster.spec.pools):
        if pool.placement is not None:
            found.append((f"/spec/pools/{index}/placement", names.policy(cluster, pool)))
    named: set[str] = set()  # one name is enough of those that stand in one place
    for pointer, name in found:
        if pointer not in named and (len(name) > LONGEST or re.fullmatch(NAME, name) is None):
            named.add(pointer)
            yield SpecError(
                "the name that follows is not taken",
                pointer=pointer,
                value=name,
                cause=f"a name has at most {LONGEST} lower-case letters, digits and '-', and begins with a letter",
                remedy="give the cluster a shorter name, or the networks another prefix",
            )
    yield from _doubles(nics, cluster)


def _doubles(nics: tuple[names.NicNames, ...], cluster: FabricCluster) -> Iterator[SpecError]:
    """Each NIC has a network of its own, but for RDMA, where each has a subnet."""
    home, _ = names.primary(cluster)
    networks = Counter(nic.network for nic in nics)
    subnets = Counter(nic.subnet for nic in nics)
    for index, nic in enumerate(nics):
        at = f"/spec/network/nics/{index}" if cluster.spec.network.nics else "/spec/network/prefix"
        if nic.network == home:
            what, cause = "this is the network of the cluster itself", "its first NIC is in there already"
        elif nic.of.mode != "RDMA" and networks[nic.network] > 1:
            what, cause = "two NICs have the same VPC network", "a VM has at most one NIC in a VPC network"
        elif subnets[nic.subnet] > 1:
            what, cause = "two NICs have the same subnet", "a GKENetworkParamSet takes a subnet that no other one has"
        else:
            continue
        yield SpecError(what, pointer=at, value=nic.network, cause=cause, remedy="name another one")


def nodes_of(cluster: FabricCluster, pool: Pool) -> int:
    """Most nodes of a pool at a time, those of an upgrade included; a region without zones counts as three."""
    zones = len(cluster.zones_of(pool)) or 3
    most = pool.nodes if pool.autoscaling is None else pool.autoscaling.max
    return most * zones + pool.surge.max_surge


def _capacity(cluster: FabricCluster, addresses: Addresses) -> Iterator[SpecError]:
    gpu = sum(nodes_of(cluster, pool) for pool in cluster.spec.pools)
    everything = gpu + cluster.spec.system.nodes * (len(cluster.zones) or 3)
    ranges: list[tuple[str, IPv4Network | None, int]] = [("/spec/primary/range", addresses.primary, everything)]
    ranges += [(nic_pointer(index), each, gpu) for index, each in enumerate(addresses.nics[:1])]
    for pointer, network, nodes in ranges:
        if network is not None and network.num_addresses - USELESS < nodes:
            yield SpecError(
                f"{network} has room for {network.num_addresses - USELESS} nodes, and there can be {nodes}",
                pointer=pointer,
                value=str(network),
                cause="nodes of all pools in all zones count, and one for each upgrade",
                remedy="set /spec/network/prefixLength to a smaller number, or give a larger range",
            )
    pods = addresses.pods
    if (
        pods is not None
        and pods.prefixlen <= NODE_PODS_PREFIX
        and 1 << (NODE_PODS_PREFIX - pods.prefixlen) < everything
    ):
        yield SpecError(
            f"{pods} has room for the Pods of {1 << (NODE_PODS_PREFIX - pods.prefixlen)} nodes, not of {everything}",
            pointer="/spec/primary/pods",
            value=str(pods),
            cause=f"each node takes a /{NODE_PODS_PREFIX} of it",
            remedy="give a larger range",
        )
    control = addresses.control_plane
    if control is not None and control.prefixlen != CONTROL_PLANE_PREFIX:
        yield SpecError(
            f"the range of a control plane is a /{CONTROL_PLANE_PREFIX}",
            pointer="/spec/controlPlane/range",
            value=str(control),
            cause="GKE takes no other size",
            remedy=f"write {IPv4Network((control.network_address, CONTROL_PLANE_PREFIX))}",
        )

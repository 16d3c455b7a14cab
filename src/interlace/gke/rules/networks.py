"""Rules about VPC networks and subnets: MTU, ranges, and what must not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, ip_network
from typing import Final, NamedTuple

from interlace.fabric.family import Family
from interlace.gke.addresses import PRIVATE
from interlace.gke.cluster import MTU_LEAST, MTU_MOST
from interlace.gke.observed.compute import Network
from interlace.gke.places import short
from interlace.gke.rules.nodepool import Pool
from interlace.gke.rules.subject import At, Subject
from interlace.rules.rule import Breach, Rules
from interlace.rules.words import counted

RULES: Final[Rules[Subject]] = Rules()

MTU_DEFAULT: Final = 1460
"""That of a VPC network which names none (API description of compute v1)."""
RESERVED: Final = 4
"""Addresses of a subnet that Google keeps."""

_PRIVATE: Final = PRIVATE + tuple(
    IPv4Network(each)
    for each in (
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
    )
)
"""Ranges that belong to nobody on the internet, and that a VPC network takes."""


_PODS: Final = "the range of Pods"


class Range(NamedTuple):
    """A range in use: what it is for, in words, and where it stands."""

    what: str
    pointer: str
    range: IPv4Network


@RULES.rule(
    "network.mtu",
    cause="with a smaller MTU than that of the family the throughput collapses or transfers hang",
    remedy="set the MTU of the family while no VM uses the network, then make the nodes anew",
    needs=("networks",),
)
def _mtu(subject: Subject) -> Iterator[Breach]:
    for pool, network in _behind(subject):
        if pool.family is None:
            continue
        mtu, want = mtu_of(network.value), pool.family.node.mtu
        if mtu != want:
            yield Breach(
                pointer=f"{network.pointer}/mtu",
                text=f"network {network.value.name} has MTU {mtu}{'' if network.value.mtu else ' (the default)'}, and "
                f"{pool.family.id} needs {want}",
                cause="the networks of all nodes of a job need one MTU, and the family is documented with that one"
                if mtu > want
                else "",
                remedy=f"set it with `gcloud compute networks update {network.value.name} --mtu={want}` while no VM "
                "uses the network, then make the nodes anew",
                severity="warning" if want < mtu <= MTU_MOST else "error",
            )


@RULES.rule(
    "network.mtu-range",
    cause=f"the API refuses an MTU outside {MTU_LEAST} to {MTU_MOST}, and gcloud does not notice it",
    remedy=f"name an MTU from {MTU_LEAST} to {MTU_MOST}; that of GPUDirect-TCPX and TCPXO is 8244",
    needs=("networks",),
)
def _mtu_range(subject: Subject) -> Iterator[Breach]:
    for network in subject.networks:
        mtu = network.value.mtu
        if mtu and not MTU_LEAST <= mtu <= MTU_MOST:
            yield Breach(pointer=f"{network.pointer}/mtu", text=f"network {network.value.name} is to have MTU {mtu}")


@RULES.rule(
    "network.primary-mtu",
    severity="warning",
    cause="control traffic of NCCL and all else of the Pods goes over the network of the cluster, in small packets",
    remedy="give the network of the cluster the MTU of the others before nodes are made",
    needs=("cluster", "networks"),
)
def _primary_mtu(subject: Subject) -> Iterator[Breach]:
    network = subject.network(subject.cluster_network)
    family = subject.family
    if network is None or family is None or not subject.pools:
        return
    if mtu_of(network.value) < family.node.mtu:
        yield Breach(
            pointer=f"{network.pointer}/mtu",
            text=f"network {network.value.name} of the cluster has MTU {mtu_of(network.value)}, and those of the GPUs "
            f"have {family.node.mtu}",
        )


@RULES.rule(
    "network.auto-subnets",
    severity="warning",
    cause="an auto-mode network has a subnet in every region, all auto-mode networks the same ones, so those of two "
    "NICs overlap",
    remedy="make the network in custom mode (autoCreateSubnetworks false)",
    needs=("networks",),
)
def _auto_subnets(subject: Subject) -> Iterator[Breach]:
    for _, network in _behind(subject):
        if network.value.auto_create_subnetworks:
            yield Breach(
                pointer=f"{network.pointer}/autoCreateSubnetworks",
                text=f"network {network.value.name} makes its subnets itself",
            )


@RULES.rule(
    "network.rdma-profile",
    cause="RDMA NICs work in a network with the RoCE profile of their zone alone, and that is chosen when it is made",
    remedy="make the network anew with --network-profile=ZONE-vpc-roce",
    needs=("cluster", "networks"),
)
def _rdma_profile(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for nic in pool.nics:
            network = subject.network(nic.network)
            if not nic.rdma or network is None:
                continue
            profile = short(network.value.network_profile)
            fits = "roce" in profile and (len(pool.zones) != 1 or profile.startswith(pool.zones[0]))
            if not fits:
                yield Breach(
                    pointer=f"{network.pointer}/networkProfile",
                    text=f"network {network.value.name} behind RDMA NICs of {pool.says} in "
                    f"{', '.join(pool.zones) or subject.region} has "
                    f"{f'profile {profile}' if profile else 'no profile'}",
                    remedy=f"make the network anew with --network-profile={pool.zones[0]}-vpc-roce"
                    if len(pool.zones) == 1
                    else "",
                )


@RULES.rule(
    "subnet.range",
    cause="without a range that the API understands the subnet cannot be made, and gcloud does not notice it",
    remedy="name a range like 192.168.1.0/24",
    needs=("subnetworks",),
)
def _range(subject: Subject) -> Iterator[Breach]:
    for subnet in subject.subnetworks:
        text = subnet.value.ip_cidr_range
        if range_of(text) is None and (text or not subject.whole):
            yield Breach(
                pointer=f"{subnet.pointer}/ipCidrRange",
                text=f"subnet {subnet.value.name} has {f'range {text!r}, which is none' if text else 'no range'}",
            )


@RULES.rule(
    "subnet.public",
    cause="the addresses belong to somebody on the internet, whom nodes and Pods then cannot reach",
    remedy="take private space: 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 (192.169.0.0/16 is public)",
    needs=("subnetworks",),
)
def _public(subject: Subject) -> Iterator[Breach]:
    for each in _ranges(subject):
        if not any(each.range.subnet_of(private) for private in _PRIVATE):
            yield Breach(pointer=each.pointer, text=f"{each.what} has range {each.range}, which is public space")


@RULES.rule(
    "subnet.overlap",
    cause="a node cannot tell two of its NICs apart, or a NIC from Pods and Services, if their ranges overlap",
    remedy="give each NIC, the nodes, Pods and Services ranges of their own",
    needs=("subnetworks",),
)
def _overlap(subject: Subject) -> Iterator[Breach]:
    ranges = list(_ranges(subject))
    for index, one in enumerate(ranges):
        for other in ranges[:index]:
            if one.range.overlaps(other.range) and one.pointer != other.pointer:
                yield Breach(
                    pointer=one.pointer,
                    text=f"{one.what} has range {one.range}, which overlaps {other.range} of {other.what}",
                )


@RULES.rule(
    "subnet.overlap-elsewhere",
    severity="warning",
    cause="networks with overlapping ranges cannot be peered, and a route to one hides the other",
    remedy="take a range that nothing else in the project has",
    needs=("subnetworks",),
)
def _overlap_elsewhere(subject: Subject) -> Iterator[Breach]:
    ours = list(_ranges(subject))
    taken = {each.pointer for each in ours}
    for subnet in subject.subnetworks:
        where = f"{subnet.pointer}/ipCidrRange"
        found = range_of(subnet.value.ip_cidr_range)
        if where in taken or found is None:
            continue
        for each in ours:
            if each.range.overlaps(found):
                yield Breach(
                    pointer=where,
                    text=f"subnet {subnet.value.name} of network {short(subnet.value.network)} has range {found}, "
                    f"which overlaps {each.range} of {each.what}",
                )
                break


@RULES.rule(
    "subnet.size",
    cause="each node takes an address of each subnet, and Google keeps four",
    remedy="take a larger range; a /24 holds 252 nodes",
    needs=("subnetworks",),
)
def _size(subject: Subject) -> Iterator[Breach]:
    for pool in subject.wired:
        nodes = max(pool.made_for, subject.wanted(pool))
        for nic in pool.nics:
            subnet = subject.subnetwork(nic.subnetwork, network=nic.network)
            found = range_of(subnet.value.ip_cidr_range) if subnet else None
            if subnet is None or found is None:
                continue
            room = found.num_addresses - RESERVED
            if room < nodes + pool.surge:
                yield Breach(
                    pointer=f"{subnet.pointer}/ipCidrRange",
                    text=f"subnet {subnet.value.name} ({found}) holds {counted(max(0, room), 'node')}, and "
                    f"{pool.says} has {nodes}{f' and {pool.surge} more while it is upgraded' if pool.surge else ''}",
                    severity="error" if room < nodes else "warning",
                )


def mtu_of(network: Network) -> int:
    """The MTU that a network has, with the defaults of the API."""
    return network.mtu or (MTU_MOST if "roce" in network.network_profile else MTU_DEFAULT)


def range_of(text: str) -> IPv4Network | None:
    """An IPv4 range without host bits, as the API takes it; None for anything else."""
    try:
        found = ip_network(text, strict=True)
    except ValueError:
        return None
    return found if isinstance(found, IPv4Network) and "/" in text else None


def needed_networks(family: Family) -> int:
    """VPC networks behind the additional NICs of a family: one a NIC, and one for all RDMA NICs."""
    rdma = any(each.mode == "RDMA" for each in family.networks)
    return sum(each.mode != "RDMA" for each in family.networks) + rdma


def _behind(subject: Subject) -> Iterator[tuple[Pool, At[Network]]]:
    """Each network behind a NIC of a pool, once."""
    seen: set[str] = set()
    for pool in subject.wired:
        for nic in pool.nics:
            network = subject.network(nic.network)
            if network is not None and network.pointer not in seen:
                seen.add(network.pointer)
                yield pool, network


def _ranges(subject: Subject) -> Iterable[Range]:
    """Ranges that one node has to tell apart: of its NICs, of the cluster's subnet, of Pods and of Services.

    A plan or requests without a pool: those of all their subnets.
    """
    found: dict[str, Range] = {}

    def add(what: str, where: str, text: str) -> None:
        parsed = range_of(text)
        if parsed is not None:
            found.setdefault(where, Range(what, where, parsed))

    if not subject.whole and not subject.pools:
        for subnet in subject.subnetworks:
            add(f"subnet {subnet.value.name}", f"{subnet.pointer}/ipCidrRange", subnet.value.ip_cidr_range)
    for pool in subject.wired:
        for nic in pool.nics:
            behind = subject.subnetwork(nic.subnetwork, network=nic.network)
            if behind is not None:
                what = f"subnet {behind.value.name} of network {short(behind.value.network)}"
                add(what, f"{behind.pointer}/ipCidrRange", behind.value.ip_cidr_range)
    cluster = subject.state.cluster
    if cluster is None:
        return found.values()
    primary = subject.subnetwork(subject.cluster_subnetwork, network=subject.cluster_network)
    if primary is not None:
        what = f"subnet {primary.value.name} of the cluster"
        add(what, f"{primary.pointer}/ipCidrRange", primary.value.ip_cidr_range)
    policy = cluster.ip_allocation_policy
    for what, member, name, text in (
        (_PODS, "clusterIpv4CidrBlock", policy.cluster_secondary_range_name, policy.cluster_ipv4_cidr_block),
        (
            "the range of Services",
            "servicesIpv4CidrBlock",
            policy.services_secondary_range_name,
            policy.services_ipv4_cidr_block,
        ),
    ):
        if range_of(text) is not None:
            add(what, f"/cluster/ipAllocationPolicy/{member}", text)
            continue
        for index, each in enumerate(primary.value.secondary_ip_ranges if primary else ()):
            if primary is not None and name and each.range_name == name:
                where = f"{primary.pointer}/secondaryIpRanges/{index}/ipCidrRange"
                add(what, where, each.ip_cidr_range)
    for pool in subject.wired:
        text = pool.pool.network_config.pod_ipv4_cidr_block
        own = range_of(text)
        shared = any(own.subnet_of(each.range) for each in found.values() if each.what == _PODS) if own else True
        if not shared:
            add(f"the range of Pods of {pool.says}", pool.at("networkConfig", "podIpv4CidrBlock"), text)
    return found.values()

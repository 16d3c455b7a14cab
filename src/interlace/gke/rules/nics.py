"""Rules about the additional NICs of a node pool: how many, in which order, and what is behind each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interlace.fabric.version import VersionError, gke_version
from interlace.gke.checking import MANAGED_FROM
from interlace.gke.places import short
from interlace.gke.rules.declared import Pair, declared, orders, pair_of
from interlace.gke.rules.nodepool import Nic, Pool
from interlace.gke.rules.references import region_in
from interlace.gke.rules.subject import NUMBERED, Subject
from interlace.rules.rule import Breach, Rules

RULES: Final[Rules[Subject]] = Rules()


@RULES.rule(
    "pool.nic-count",
    cause="GPUDirect takes exactly the NICs of the machine; with one too few or too many it sees fewer GPUs than there "
    "are, or none",
    remedy="make the pool anew with one --additional-node-network for each NIC of the family; it cannot be changed",
    needs=("cluster",),
)
def _count(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if pool.family is None or pool.managed:
            continue
        have, want = len(pool.nics), len(pool.family.networks)
        if have == want:
            continue
        extra = (
            ": an additional network, gVNIC or not, takes the place of a NIC of the GPUs"
            if have > want and not any(each.mode == "RDMA" for each in pool.family.networks)
            else ""
        )
        yield Breach(
            pointer=pool.at("networkConfig", "additionalNodeNetworkConfigs"),
            text=f"{pool.says} has {have} additional networks, and {pool.family.id} has {want}{extra}",
        )


@RULES.rule(
    "pool.nic-order",
    cause="the i-th additional network is the i-th NIC; a Pod that asks for a network by name then gets a NIC that is "
    "far from its GPU",
    remedy="make the GKENetworkParamSets anew in the order of the pool, or the pool with its networks in their order",
    needs=("cluster",),
)
def _order(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        mixed = _by_mode(pool)
        if mixed is not None:
            yield mixed
        elif declared(subject):
            for row in orders(subject, pool):
                yield from _by_objects(pool, row)
        else:
            yield from _by_number(pool, pool.nics)


def _by_mode(pool: Pool) -> Breach | None:
    """The first NIC whose place is that of another kind, where a family has both kinds."""
    places = pool.family.networks if pool.family else ()
    astray = [
        (nic, place)
        for nic, place in zip(pool.nics, places, strict=False)
        if nic.meant is not None and nic.meant.mode != place.mode
    ]
    if len(pool.nics) != len(places) or not astray:
        return None
    nic, place = astray[0]
    return Breach(
        pointer=nic.pointer,
        text=f"{pool.says} has {'/'.join(pair_of(nic))} as NIC {nic.index + 1}, the place of {place.name} "
        f"({place.mode})",
        remedy=f"make the pool anew with its networks in the order {', '.join(each.name for each in places)}",
    )


def _by_objects(pool: Pool, row: tuple[Pair, ...]) -> Iterator[Breach]:
    """The first NIC that the Network objects have elsewhere; those that only one side has are told by other rules."""
    shown = {pair_of(nic): nic for nic in reversed(pool.nics)}
    ours = [pair for pair in dict.fromkeys(map(pair_of, pool.nics)) if pair in row]
    theirs = [pair for pair in dict.fromkeys(row) if pair in shown]
    astray = [(ours[index], pair) for index, pair in enumerate(theirs) if pair != ours[index]]
    if astray:
        (have, want), nic = astray[0], shown[astray[0][0]]
        yield Breach(
            pointer=nic.pointer,
            text=f"{pool.says} has {'/'.join(have)} as NIC {nic.index + 1}, where the Network objects have "
            f"{'/'.join(want)}; {len(astray)} NICs are in another order",
        )


def _by_number(pool: Pool, nics: tuple[Nic, ...]) -> Iterator[Breach]:
    """Names that differ in a number at the end tell the order too."""
    for sort in (False, True):
        alike = [nic for nic in nics if nic.rdma is sort]
        names = [short(nic.subnetwork if sort else nic.network) for nic in alike]
        found = [NUMBERED.match(name) for name in names]
        matches = [match for match in found if match]
        if len(matches) != len(alike) or len({match[1] for match in matches}) > 1:
            continue
        numbers = [int(match[2]) for match in matches]
        if len(set(numbers)) == len(numbers) and numbers != sorted(numbers):
            first = next(index for index, each in enumerate(sorted(numbers)) if each != numbers[index])
            yield Breach(
                pointer=alike[first].pointer,
                text=f"{pool.says} has its networks in the order {', '.join(names)}",
            )


@RULES.rule(
    "pool.nic-vpc-shared",
    cause="two NICs of one VM cannot be in the same VPC network, and the second parameter set for it is refused",
    remedy="give each NIC a VPC network of its own",
    needs=("cluster",),
)
def _vpc_shared(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        seen: dict[str, int] = {}
        for nic in pool.nics:
            name = short(nic.network)
            if not name or nic.rdma:
                continue
            if name in seen and pair_of(nic) != pair_of(pool.nics[seen[name]]):
                yield Breach(
                    pointer=f"{nic.pointer}/network",
                    text=f"{pool.says} has network {name} behind NIC {seen[name] + 1} and NIC {nic.index + 1}",
                )
            seen.setdefault(name, nic.index)


@RULES.rule(
    "pool.nic-subnet-shared",
    cause="two NICs of one VM cannot be in the same subnet",
    remedy="give each NIC a subnet of its own",
    needs=("cluster",),
)
def _subnet_shared(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        seen: dict[tuple[str, str], int] = {}
        for nic in pool.nics:
            pair = pair_of(nic)
            if not pair[1]:
                continue
            if pair in seen:
                yield Breach(
                    pointer=f"{nic.pointer}/subnetwork",
                    text=f"{pool.says} has subnet {pair[1]} behind NIC {seen[pair] + 1} and NIC {nic.index + 1}",
                )
            seen.setdefault(pair, nic.index)


@RULES.rule(
    "pool.nic-primary",
    cause="the network of the cluster is behind the first NIC already, and a device network may not be on it",
    remedy="give the NIC a VPC network of its own",
    needs=("cluster",),
)
def _primary(subject: Subject) -> Iterator[Breach]:
    primary = short(subject.cluster_network)
    for pool in subject.pools:
        for nic in pool.nics:
            if primary and short(nic.network) == primary:
                yield Breach(
                    pointer=f"{nic.pointer}/network",
                    text=f"{pool.says} has network {primary}, that of the cluster, behind NIC {nic.index + 1} too",
                )


@RULES.rule(
    "pool.nic-network-missing",
    cause="the node pool cannot be made, or its nodes cannot come back, without the network",
    remedy="make the network, or write its name as it is",
    needs=("cluster", "networks"),
)
def _network_missing(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for nic in pool.nics:
            if not nic.network:
                yield Breach(
                    pointer=f"{nic.pointer}/network", text=f"{pool.says} names no network for NIC {nic.index + 1}"
                )
            elif subject.whole and not subject.network(nic.network):
                yield from _absent(subject, pool, nic.network, f"{nic.pointer}/network", "network")


@RULES.rule(
    "pool.nic-subnet-missing",
    cause="the node pool cannot be made, or its nodes cannot come back, without the subnet",
    remedy="make the subnet in the region of the cluster, or write its name as it is",
    needs=("cluster", "subnetworks"),
)
def _subnet_missing(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for nic in pool.nics:
            where = f"{nic.pointer}/subnetwork"
            if not nic.subnetwork:
                yield Breach(pointer=where, text=f"{pool.says} names no subnet for NIC {nic.index + 1}")
            elif subject.whole and not subject.subnetwork(nic.subnetwork, network=nic.network):
                yield from _absent(subject, pool, nic.subnetwork, where, "subnet")


def _absent(subject: Subject, pool: Pool, reference: str, where: str, what: str) -> Iterator[Breach]:
    if subject.foreign(reference):
        yield Breach(
            pointer=where,
            text=f"{pool.says} has {what} {reference} of another project, which was not observed",
            remedy="look at it in its own project",
            severity="info",
        )
    else:
        yield Breach(pointer=where, text=f"{pool.says} has {what} {short(reference)}, which does not exist")


@RULES.rule(
    "pool.nic-subnet-of-other-network",
    cause="GKE looks a subnet up by region and name, so a NIC lands in another network than the one that is named",
    remedy="name the subnet of the network",
    needs=("cluster", "subnetworks"),
)
def _subnet_of_other_network(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for nic in pool.nics:
            subnet = subject.subnetwork(nic.subnetwork, network=nic.network)
            if subnet is None or not nic.network or not subnet.value.network:
                continue
            if short(subnet.value.network) != short(nic.network):
                yield Breach(
                    pointer=f"{nic.pointer}/subnetwork",
                    text=f"{pool.says} has subnet {short(nic.subnetwork)} with network {short(nic.network)} behind NIC "
                    f"{nic.index + 1}, and the subnet is of network {short(subnet.value.network)}",
                )


@RULES.rule(
    "pool.nic-subnet-region",
    cause="nodes have subnets of their own region alone",
    remedy="make the subnet in the region of the cluster",
    needs=("cluster", "subnetworks"),
)
def _subnet_region(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for nic in pool.nics:
            subnet = subject.subnetwork(nic.subnetwork, network=nic.network)
            region = short(subnet.value.region) if subnet else region_in(nic.subnetwork)
            if region and subject.region and region != subject.region:
                yield Breach(
                    pointer=f"{nic.pointer}/subnetwork",
                    text=f"{pool.says} is in region {subject.region}, and subnet {short(nic.subnetwork)} of NIC "
                    f"{nic.index + 1} in {region}",
                )


@RULES.rule(
    "pool.managed-networks",
    cause="networks that GKE makes itself (acceleratorNetworkProfile) are for RDMA machines, and not beside networks "
    "of one's own",
    remedy="make the pool without the profile and with one --additional-node-network for each NIC",
    needs=("cluster",),
)
def _managed(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if not pool.managed:
            continue
        where = pool.at("networkConfig", "acceleratorNetworkProfile")
        profile = pool.pool.network_config.accelerator_network_profile
        if pool.family and pool.family.node.transport != "rdma":
            yield Breach(
                pointer=where,
                text=f"{pool.says} has acceleratorNetworkProfile {profile}, which is not for {pool.family.id}",
            )
            continue
        if pool.nics:
            yield Breach(
                pointer=where,
                text=f"{pool.says} has acceleratorNetworkProfile {profile} and {len(pool.nics)} additional networks",
                remedy="leave one of the two out",
            )
        version = pool.pool.version or (subject.state.cluster.current_master_version if subject.state.cluster else "")
        if _older(version, MANAGED_FROM):
            yield Breach(
                pointer=where,
                text=f"{pool.says} has acceleratorNetworkProfile {profile} on version {version}, which is older than "
                f"{MANAGED_FROM}",
                remedy="upgrade, or name the networks",
            )


def _older(version: str, least: str) -> bool:
    try:
        return gke_version(version) < gke_version(least)
    except VersionError:
        return False

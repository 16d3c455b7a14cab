"""Rules about GKENetworkParamSet objects: what GKE's public controller would say of them, and more.

Each reason of the controller is a rule: it speaks where the controller has set the reason, and where spec, networks and
subnets say that it will. What the controller does not compare, the pool and the sets, is compared here.
Source: kubernetes/cloud-provider-gcp, validation of parameter sets; the API package gke-networking-api.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from interlace.gke.observed.kubernetes import ParamSet
from interlace.gke.places import short
from interlace.gke.rules.conditions import refused, says
from interlace.gke.rules.declared import pair_named, pair_of
from interlace.gke.rules.subject import At, Subject
from interlace.rules.rule import Breach, Rules

RULES: Final[Rules[Subject]] = Rules()

_SETS: Final = "kubernetes/gkeNetworkParamSets"
_REASONED: Final = frozenset(
    {
        "SubnetNotFound",
        "VPCNotFound",
        "SecondaryRangeAndDeviceModeUnspecified",
        "SecondaryRangeNotFound",
        "DeviceModeCantBeUsedWithSecondaryRange",
        "DeviceModeCantUseDefaultVPC",
        "DeviceModeVPCAlreadyInUse",
        "DeviceModeSubnetAlreadyInUse",
    }
)
"""Reasons of a parameter set that have a rule of their own."""

_Foretell = Callable[[Subject, At[ParamSet]], str | None]
"""What of the set's spec is wrong, or None; what the node pool has wrong too is told by the rules about its NICs."""


def _reason(reason: str, id: str, *, field: str, cause: str, remedy: str, foretell: _Foretell) -> None:
    """Register the rule for one reason of a parameter set. ``field``: of the spec, where it is wrong."""

    def judge(subject: Subject) -> Iterator[Breach]:
        for each in subject.param_sets:
            said = refused(each.value.status.conditions, "Ready", reason)
            why = f"the controller says {reason}{said}" if said is not None else foretell(subject, each)
            if why is not None:
                yield Breach(
                    pointer=f"{each.pointer}/spec/{field}",
                    text=f"GKENetworkParamSet {each.value.metadata.name} is not usable: {why}",
                )

    RULES.rule(id, cause=cause, remedy=remedy, needs=(_SETS,))(judge)


def _no_subnet(subject: Subject, each: At[ParamSet]) -> str | None:
    subnet = each.value.spec.vpc_subnet
    if not subnet:
        return "it names no subnet"
    told = any(short(nic.subnetwork) == short(subnet) for pool in subject.pools for nic in pool.nics)
    if "subnetworks" in subject.unread or subject.foreign(subnet) or _shared_vpc(subject) or told:
        return None
    found = subject.subnetwork(subnet)
    if found is None:
        return f"there is no subnet {short(subnet)}"
    region = short(found.value.region)
    if region and subject.region and region != subject.region:
        return f"subnet {short(subnet)} is in region {region}, not in {subject.region}"
    return None


def _no_vpc(subject: Subject, each: At[ParamSet]) -> str | None:
    vpc = each.value.spec.vpc
    if not vpc:
        return "it names no VPC network"
    told = any(short(nic.network) == short(vpc) for pool in subject.pools for nic in pool.nics)
    if "networks" in subject.unread or subject.foreign(vpc) or _shared_vpc(subject) or subject.network(vpc) or told:
        return None
    return f"there is no VPC network {short(vpc)}"


def _nothing_said(_: Subject, each: At[ParamSet]) -> str | None:
    spec = each.value.spec
    if spec.device_mode or spec.pod_ipv4_ranges.range_names or spec.network_attachment:
        return None
    return "it has neither deviceMode nor podIPv4Ranges"


def _range_missing(subject: Subject, each: At[ParamSet]) -> str | None:
    subnet = subject.subnetwork(each.value.spec.vpc_subnet, network=each.value.spec.vpc)
    if subnet is None:
        return None
    have = {one.range_name for one in subnet.value.secondary_ip_ranges}
    lacking = [one for one in each.value.spec.pod_ipv4_ranges.range_names if one not in have]
    return f"subnet {subnet.value.name} has no range {', '.join(lacking)}" if lacking else None


def _both_said(_: Subject, each: At[ParamSet]) -> str | None:
    spec = each.value.spec
    return "it has deviceMode and podIPv4Ranges" if spec.device_mode and spec.pod_ipv4_ranges.range_names else None


def _on_primary(subject: Subject, each: At[ParamSet]) -> str | None:
    spec = each.value.spec
    primary = short(subject.cluster_network)
    return f"{primary} is the network of the cluster" if spec.device_mode and primary == short(spec.vpc) != "" else None


def _same(field: Callable[[ParamSet], str], what: str) -> _Foretell:
    """Whether another set before it has the same value; the controller refuses the newer of two."""

    def foretell(subject: Subject, each: At[ParamSet]) -> str | None:
        value = short(field(each.value))
        spec = each.value.spec
        behind_rdma = any(nic.rdma and pair_of(nic) == pair_named(spec) for pool in subject.pools for nic in pool.nics)
        if not value or not spec.device_mode or spec.device_mode == "RDMA" or behind_rdma:
            return None
        for other in subject.param_sets:
            older = _age(other) < _age(each)
            if other.pointer != each.pointer and older and short(field(other.value)) == value:
                return f"GKENetworkParamSet {other.value.metadata.name} has {what} {value} already"
        return None

    return foretell


_reason(
    "SubnetNotFound",
    "paramset.subnet-not-found",
    field="vpcSubnet",
    cause="the controller finds no subnet of that name in the region of the cluster, so Pods get no NIC",
    remedy="name the subnet that the node pool has at this place",
    foretell=_no_subnet,
)
_reason(
    "VPCNotFound",
    "paramset.vpc-not-found",
    field="vpc",
    cause="the controller finds no VPC network of that name, so Pods get no NIC",
    remedy="name the network that the node pool has at this place",
    foretell=_no_vpc,
)
_reason(
    "SecondaryRangeAndDeviceModeUnspecified",
    "paramset.mode-unspecified",
    field="deviceMode",
    cause="the controller does not know what to make of the network",
    remedy="set deviceMode to NetDevice (TCPX, TCPXO) or RDMA",
    foretell=_nothing_said,
)
_reason(
    "SecondaryRangeNotFound",
    "paramset.range-not-found",
    field="podIPv4Ranges",
    cause="a network for Pods takes their addresses from a secondary range of the subnet",
    remedy="networks of GPUs take no ranges: set deviceMode instead",
    foretell=_range_missing,
)
_reason(
    "DeviceModeCantBeUsedWithSecondaryRange",
    "paramset.mode-with-range",
    field="podIPv4Ranges",
    cause="a NIC that is given to a Pod whole has no range of Pod addresses",
    remedy="leave podIPv4Ranges out",
    foretell=_both_said,
)
_reason(
    "DeviceModeCantUseDefaultVPC",
    "paramset.cluster-vpc",
    field="vpc",
    cause="the NIC of the cluster's own network belongs to the node and cannot be given to a Pod",
    remedy="name the network of an additional NIC",
    foretell=_on_primary,
)
_reason(
    "DeviceModeVPCAlreadyInUse",
    "paramset.vpc-in-use",
    field="vpc",
    cause="each NIC has a VPC network of its own, so the newer of two sets for one network is refused",
    remedy="let each GKENetworkParamSet name the network of another NIC of the node pool",
    foretell=_same(lambda each: each.spec.vpc, "network"),
)
_reason(
    "DeviceModeSubnetAlreadyInUse",
    "paramset.subnet-in-use",
    field="vpcSubnet",
    cause="each NIC has a subnet of its own, so the newer of two sets for one subnet is refused",
    remedy="let each GKENetworkParamSet name the subnet of another NIC of the node pool",
    foretell=_same(lambda each: each.spec.vpc_subnet, "subnet"),
)


@RULES.rule(
    "paramset.not-ready",
    cause="a Network is usable when its parameter set is Ready",
    remedy="see the message of the condition and the events of the object",
    needs=(_SETS,),
)
def _set_not_ready(subject: Subject) -> Iterator[Breach]:
    for each in subject.param_sets:
        if not each.value.status.conditions:
            yield Breach(
                pointer=f"{each.pointer}/status/conditions",
                text=f"GKENetworkParamSet {each.value.metadata.name} has no conditions: GKE has not looked at it yet",
                severity="warning",
            )
        for index, condition in enumerate(each.value.status.conditions):
            if condition.type == "Ready" and condition.status != "True" and condition.reason not in _REASONED:
                yield Breach(
                    pointer=f"{each.pointer}/status/conditions/{index}",
                    text=f"GKENetworkParamSet {each.value.metadata.name} is not Ready{says(condition)}",
                )


@RULES.rule(
    "paramset.subnet-of-other-vpc",
    cause="the controller looks the subnet up by name and region and does not compare its network, so Pods get another "
    "NIC than the one that is named",
    remedy="name network and subnet of one NIC of the node pool",
    needs=(_SETS, "subnetworks"),
)
def _subnet_of_other_vpc(subject: Subject) -> Iterator[Breach]:
    for each in subject.param_sets:
        spec, another = each.value.spec, _another_vpc(subject, each)
        if another:
            yield Breach(
                pointer=f"{each.pointer}/spec/vpcSubnet",
                text=f"GKENetworkParamSet {each.value.metadata.name} names subnet {short(spec.vpc_subnet)} with "
                f"network {short(spec.vpc)}, and the subnet is of network {another}",
            )


@RULES.rule(
    "paramset.device-mode",
    cause="Pods get the NIC in another way than GPUDirect of the family takes it",
    remedy="set deviceMode to NetDevice for TCPX and TCPXO, to RDMA for the NICs of the GPUs in RDMA families",
    needs=(_SETS, "cluster"),
)
def _device_mode(subject: Subject) -> Iterator[Breach]:
    modes = {pair_of(nic): nic.meant.mode for pool in subject.pools for nic in pool.nics if nic.meant}
    for each in subject.param_sets:
        spec = each.value.spec
        want = modes.get(pair_named(spec))
        if want and spec.device_mode and spec.device_mode != want:
            yield Breach(
                pointer=f"{each.pointer}/spec/deviceMode",
                text=f"GKENetworkParamSet {each.value.metadata.name} has deviceMode {spec.device_mode}, and the NIC of "
                f"the pool is {want}",
                remedy=f"make the set anew with deviceMode {want}",
            )


@RULES.rule(
    "paramset.not-in-pool",
    cause="no node has a NIC in that network and subnet, so Pods that ask for it stay Pending",
    remedy="name network and subnet as the node pool has them",
    needs=(_SETS, "cluster"),
)
def _not_in_pool(subject: Subject) -> Iterator[Breach]:
    pairs = {pair_of(nic) for pool in subject.pools for nic in pool.nics}
    devices = {
        each.value.spec.parameters_ref.name for each in subject.kubernetes_networks if each.value.spec.type == "Device"
    }
    for each in subject.param_sets:
        spec = each.value.spec
        ours = spec.device_mode or each.value.metadata.name in devices
        usable = not (_no_subnet(subject, each) or _no_vpc(subject, each) or _another_vpc(subject, each))
        if pairs and ours and usable and pair_named(spec) not in pairs and not spec.pod_ipv4_ranges.range_names:
            yield Breach(
                pointer=f"{each.pointer}/spec",
                text=f"GKENetworkParamSet {each.value.metadata.name} is for {'/'.join(pair_named(spec))}, and no node "
                "pool has a NIC there",
            )


def _another_vpc(subject: Subject, each: At[ParamSet]) -> str:
    """The network of the set's subnet where that is not the one of the set; else empty."""
    spec = each.value.spec
    subnet = subject.subnetwork(spec.vpc_subnet, network=spec.vpc)
    of = short(subnet.value.network) if subnet else ""
    return of if of and spec.vpc and of != short(spec.vpc) else ""


def _age(each: At[ParamSet]) -> tuple[str, int]:
    return each.value.metadata.creation_timestamp, int(each.pointer.rpartition("/")[2])


def _shared_vpc(subject: Subject) -> bool:
    """The controller looks no VPC up on a shared one, since it lies in another project."""
    return subject.foreign(subject.cluster_network)

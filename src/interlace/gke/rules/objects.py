"""Rules about Network objects: whether there is one for each NIC, and whether Pods can use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interlace.gke.places import short
from interlace.gke.rules.conditions import refused, says
from interlace.gke.rules.declared import declared, pair_named, pair_of
from interlace.gke.rules.nodepool import Pool
from interlace.gke.rules.subject import Subject
from interlace.rules.rule import Breach, Rules
from interlace.rules.words import counted

RULES: Final[Rules[Subject]] = Rules()

_SETS: Final = "kubernetes/gkeNetworkParamSets"
_NETWORKS: Final = "kubernetes/networks"
_KIND: Final = "GKENetworkParamSet"


@RULES.rule(
    "network-object.missing",
    cause="Pods cannot ask for a NIC that has no Network object",
    remedy="apply what `interlace manifests --family FAMILY --part networks` prints",
    needs=(_NETWORKS, _SETS, "cluster"),
)
def _objects_missing(subject: Subject) -> Iterator[Breach]:
    usable = set(declared(subject).values())
    for pool in subject.pools:
        if pool.managed or not pool.wanted:
            continue
        lacking = [nic for nic in pool.nics if pair_of(nic) not in usable]
        if len(lacking) > _misdirected(subject, pool):
            sets = {pair_named(each.value.spec): f", which GKENetworkParamSet {each.value.metadata.name} names"
                    for each in subject.param_sets}  # fmt: skip
            names = ", ".join(
                f"{short(nic.subnetwork if nic.rdma else nic.network)}{sets.get(pair_of(nic), '')}" for nic in lacking
            )
            some = f"{len(lacking)} of {counted(len(pool.nics), 'NIC')} of {pool.says}"
            yield Breach(
                pointer="/kubernetes/networks",
                text=f"there is no Network object with a parameter set for {some}: {names}",
                remedy=f"apply what `interlace manifests --family {pool.family.id} --part networks` prints"
                if pool.family
                else "",
            )


@RULES.rule(
    "network-object.type",
    cause="GKE gives a NIC to a Pod through Networks of type Device alone",
    remedy="set spec.type to Device",
    needs=(_NETWORKS, _SETS),
)
def _type(subject: Subject) -> Iterator[Breach]:
    devices = {each.value.metadata.name for each in subject.param_sets if each.value.spec.device_mode}
    for each in subject.kubernetes_networks:
        spec = each.value.spec
        if spec.type != "Device" and spec.parameters_ref.name in devices:
            yield Breach(
                pointer=f"{each.pointer}/spec/type",
                text=f"Network {each.value.metadata.name} has type {spec.type or '(none)'} and a parameter set with "
                "deviceMode",
            )


@RULES.rule(
    "network-object.params",
    cause="a Network without its parameter set has no NIC behind it",
    remedy="make the GKENetworkParamSet, or name the one that is there in spec.parametersRef.name",
    needs=(_NETWORKS, _SETS),
)
def _params(subject: Subject) -> Iterator[Breach]:
    sets = {each.value.metadata.name for each in subject.param_sets}
    for each in subject.kubernetes_networks:
        reference = each.value.spec.parameters_ref
        if each.value.spec.type != "Device":
            continue
        if reference.kind not in ("", _KIND):
            yield Breach(
                pointer=f"{each.pointer}/spec/parametersRef/kind",
                text=f"Network {each.value.metadata.name} names a {reference.kind}, not a {_KIND}",
                remedy=f"write kind {_KIND} in spec.parametersRef",
            )
        elif reference.name not in sets:
            yield Breach(
                pointer=f"{each.pointer}/spec/parametersRef/name",
                text=f"Network {each.value.metadata.name} names {_KIND} {reference.name or '(none)'}, which does not "
                "exist",
            )


@RULES.rule(
    "network-object.device-mode-missing",
    cause="the controller takes a Network of type Device only with a set that has a deviceMode",
    remedy="set deviceMode in the GKENetworkParamSet",
    needs=(_NETWORKS,),
)
def _device_mode_missing(subject: Subject) -> Iterator[Breach]:
    without = {
        each.value.metadata.name
        for each in subject.param_sets
        if not each.value.spec.device_mode and each.value.spec.pod_ipv4_ranges.range_names
    }
    for each in subject.kubernetes_networks:
        said = refused(each.value.status.conditions, "ParamsReady", "DeviceModeMissing")
        if said is not None or (each.value.spec.type == "Device" and each.value.spec.parameters_ref.name in without):
            yield Breach(
                pointer=f"{each.pointer}/spec/parametersRef",
                text=f"Network {each.value.metadata.name} is of type Device, and its parameter set has no deviceMode",
            )


@RULES.rule(
    "network-object.not-ready",
    cause="Pods that ask for a Network that is not Ready stay Pending, or are refused",
    remedy="see the parameter set that it names, and the message of the condition",
    needs=(_NETWORKS,),
)
def _network_not_ready(subject: Subject) -> Iterator[Breach]:
    for each in subject.kubernetes_networks:
        if not each.value.status.conditions:
            yield Breach(
                pointer=f"{each.pointer}/status/conditions",
                text=f"Network {each.value.metadata.name} has no conditions: GKE has not looked at it yet",
                severity="warning",
            )
        for index, condition in enumerate(each.value.status.conditions):
            known = condition.reason == "DeviceModeMissing"
            if condition.type in ("Ready", "ParamsReady") and condition.status != "True" and not known:
                yield Breach(
                    pointer=f"{each.pointer}/status/conditions/{index}",
                    text=f"Network {each.value.metadata.name} is not {condition.type}{says(condition)}",
                )


def _misdirected(subject: Subject, pool: Pool) -> int:
    """Device Networks that have no set, or one that fits no NIC: each is told by a rule of its own."""
    pairs = {pair_of(nic) for nic in pool.nics}
    fitting = {each.value.metadata.name for each in subject.param_sets if pair_named(each.value.spec) in pairs}
    return sum(
        each.value.spec.type == "Device" and each.value.spec.parameters_ref.name not in fitting
        for each in subject.kubernetes_networks
    )

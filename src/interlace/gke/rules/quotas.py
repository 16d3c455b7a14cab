"""Rules about quotas: whether what is still to be made fits, and whether the whole would.

Quota of networks is found out only when the operation ends, quota of GPUs when the pool is made: so both are asked
here first. A specific reservation holds its own GPUs, CPUs and local SSDs; those quotas then count no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interlace.gke.places import short
from interlace.gke.quotas import (
    GPU_FAMILY,
    GPUS_ALL_REGIONS,
    VM_FAMILY,
    Limit,
    find,
    gpu_limit,
    gpu_rows,
    limit,
    metric,
)
from interlace.gke.rules.needs import (
    Need,
    boot_disk,
    cpus,
    firewalls,
    gigabytes_of_local_ssd,
    networks,
    nodes,
    subnetworks,
)
from interlace.gke.rules.nodepool import Provisioning
from interlace.gke.rules.subject import Subject
from interlace.rules.finding import Severity
from interlace.rules.rule import Breach, Rules

RULES: Final[Rules[Subject]] = Rules()

_ASK: Final = "ask for more (IAM & Admin, Quotas), or free some"
_EVERY: Final[tuple[Provisioning, ...]] = ("standard", "spot", "reserved")
_SSD_DISKS: Final = ("", "pd-balanced", "pd-ssd")


def _breach(have: Limit | None, need: Need, *, severity: Severity | None = None) -> Iterator[Breach]:
    """The limit is too small for what is still to come, or for the whole."""
    if have is None:
        return
    used = f", with {have.usage:g} in use" if have.usage is not None else ""
    if need.more and have.free < need.more:
        lack = f"{need.what} still needed: {need.more}"
    elif have.value < need.whole:
        lack = f"{need.what} needed in all: {need.whole}"
    else:
        return
    yield Breach(pointer=have.pointer, text=f"{have.what} is {have.value:g}{used}; {lack}", severity=severity)


def _project(subject: Subject, name: str) -> Limit | None:
    return metric(subject.state.project_info, name, section="projectInfo")


def _region(subject: Subject, name: str) -> Limit | None:
    return metric(subject.state.region_info, name, section="regionInfo")


@RULES.rule(
    "quota.networks",
    cause="each NIC of the GPUs needs a VPC network of its own; the quota is small in new projects, and the refusal "
    "comes only at the end of the operation",
    remedy=f"{_ASK}; networks that a deleted cluster left behind count too",
    needs=("projectInfo",),
)
def _networks(subject: Subject) -> Iterator[Breach]:
    yield from _breach(_project(subject, "NETWORKS"), networks(subject))


@RULES.rule(
    "quota.subnetworks",
    cause="each NIC of the GPUs needs a subnet of its own; those of auto-mode networks count too",
    remedy=_ASK,
    needs=("projectInfo",),
)
def _subnetworks(subject: Subject) -> Iterator[Breach]:
    yield from _breach(_project(subject, "SUBNETWORKS"), subnetworks(subject))


@RULES.rule(
    "quota.firewalls",
    cause="each network of the GPUs needs a rule, and GKE makes some of its own for a cluster",
    remedy=_ASK,
    needs=("projectInfo",),
)
def _firewalls(subject: Subject) -> Iterator[Breach]:
    yield from _breach(_project(subject, "FIREWALLS"), firewalls(subject))


@RULES.rule(
    "quota.gpu-family",
    cause="GPUs are counted by family and region in Cloud Quotas alone; the lists of Compute Engine lack them",
    remedy=f"{_ASK}: Compute Engine API, GPUS_PER_GPU_FAMILY; or take a reservation",
    needs=("quotaInfos",),
)
def _gpu_family(subject: Subject) -> Iterator[Breach]:
    family = subject.family
    need = nodes(subject, "standard")
    if family is None or not need.whole:
        return
    infos = subject.state.quota_infos
    if find(infos, GPU_FAMILY) is None:
        yield Breach(
            pointer="/quotaInfos",
            text=f"quota {GPU_FAMILY} is not among those that were read, so it is not known whether GPUs may be had",
            remedy="read it with role cloudquotas.viewer",
            severity="info",
        )
        return
    have = gpu_limit(infos, family.node.accelerator, region=subject.region)
    gpus = need.times(family.node.gpus, "GPUs")
    severity: Severity | None = "warning" if _may_be_reserved(subject) else None
    if have is None:
        rows = "; ".join(gpu_rows(infos)) or "none"
        yield Breach(
            pointer="/quotaInfos",
            text=f"no row of quota {GPU_FAMILY} is for {family.node.accelerator} in {subject.region}, and {gpus.whole} "
            f"GPUs are needed; rows: {rows}",
            severity=severity,
        )
        return
    breaches = list(_breach(have, Need(what="GPUs", more=0, whole=gpus.whole), severity=severity))
    yield from breaches
    surge = max((pool.surge for pool in subject.pools if pool.provisioning == "standard"), default=0) * family.node.gpus
    if not breaches and surge and have.value < gpus.whole + surge:
        yield Breach(
            pointer=have.pointer,
            text=f"{have.what} is {have.value:g}, enough for {gpus.whole} GPUs and not for {surge} more during an "
            "upgrade",
            remedy="upgrade with maxSurge 0 and maxUnavailable 1, or ask for more",
            severity="warning",
        )


@RULES.rule(
    "quota.gpus-all-regions",
    cause="this quota counts the GPUs of all regions and kinds, whatever a family was granted",
    remedy=f"{_ASK}: GPUS_ALL_REGIONS",
    needs=("projectInfo",),
)
def _gpus_all_regions(subject: Subject) -> Iterator[Breach]:
    if subject.family is None:
        return
    infos = subject.state.quota_infos
    have = _project(subject, "GPUS_ALL_REGIONS") or limit(infos, GPUS_ALL_REGIONS, dimensions={}, location="global")
    yield from _held_too(subject, have, subject.family.node.gpus, "GPUs")


@RULES.rule(
    "quota.spot-gpus",
    cause="spot and preemptible GPUs have a quota of their own",
    remedy=f"{_ASK}: PREEMPTIBLE_NVIDIA_H100_GPUS",
    needs=("regionInfo", "cluster"),
)
def _spot_gpus(subject: Subject) -> Iterator[Breach]:
    family = subject.family
    if family is not None:
        kind = family.node.accelerator.split("-")[1].upper()
        need = nodes(subject, "spot").times(family.node.gpus, "GPUs")
        yield from _breach(_region(subject, f"PREEMPTIBLE_NVIDIA_{kind}_GPUS"), need)


@RULES.rule(
    "quota.cpus",
    cause="a machine of the family has very many CPUs, and the pool is refused or stays small without quota for them",
    remedy=f"{_ASK}: CPUs of the VM family in the region",
    needs=("regionInfo",),
)
def _cpus(subject: Subject) -> Iterator[Breach]:
    family = subject.family
    if family is None:
        return
    region = subject.region
    dimensions = {"vm_family": family.machines[0].partition("-")[0].upper(), "region": region}
    own = limit(subject.state.quota_infos, VM_FAMILY, dimensions=dimensions, location=region)
    need = nodes(subject, "standard", "spot").times(cpus(subject), "CPUs")
    severity: Severity | None = "warning" if _may_be_reserved(subject) else None
    yield from _breach(own or _region(subject, "CPUS"), need, severity=severity)


@RULES.rule(
    "quota.cpus-all-regions",
    cause="this quota counts the CPUs of all regions and machine families",
    remedy=f"{_ASK}: CPUS_ALL_REGIONS",
    needs=("projectInfo",),
)
def _cpus_all_regions(subject: Subject) -> Iterator[Breach]:
    yield from _held_too(subject, _project(subject, "CPUS_ALL_REGIONS"), cpus(subject), "CPUs")


@RULES.rule(
    "quota.disks",
    cause="the boot disk of each node counts, and the pool is refused when they do not fit",
    remedy=f"{_ASK}: persistent disk SSD or standard in the region",
    needs=("regionInfo",),
)
def _disks(subject: Subject) -> Iterator[Breach]:
    kind, size = boot_disk(subject)
    name = "SSD_TOTAL_GB" if kind in _SSD_DISKS else "DISKS_TOTAL_GB" if kind == "pd-standard" else ""
    yield from _breach(_region(subject, name), nodes(subject, *_EVERY).times(size, "GB of boot disks"))


@RULES.rule(
    "quota.local-ssd",
    cause="the local SSDs of each node count too",
    remedy=f"{_ASK}: local SSD in the region",
    needs=("regionInfo",),
)
def _local_ssd(subject: Subject) -> Iterator[Breach]:
    need = nodes(subject, "standard", "spot").times(gigabytes_of_local_ssd(subject), "GB of local SSD")
    listed = _region(subject, "LOCAL_SSD_TOTAL_GB")
    if listed is not None:
        yield from _breach(listed, need)
    else:
        yield from _breach(_region(subject, "SSD_TOTAL_GB"), need, severity="warning")


@RULES.rule(
    "quota.instances",
    cause="each node is an instance",
    remedy=f"{_ASK}: VM instances in the region",
    needs=("regionInfo",),
)
def _instances(subject: Subject) -> Iterator[Breach]:
    yield from _breach(_region(subject, "INSTANCES"), nodes(subject, *_EVERY).times(1, "instances"))


@RULES.rule(
    "quota.addresses",
    cause="each node has a public address unless nodes are private",
    remedy=f"{_ASK}: in-use addresses in the region; or make private nodes with Cloud NAT",
    needs=("regionInfo",),
)
def _addresses(subject: Subject) -> Iterator[Breach]:
    cluster, pool = subject.state.cluster, subject.pool
    private = (
        cluster
        and (cluster.private_cluster_config.enable_private_nodes or cluster.network_config.default_enable_private_nodes)
    ) or (pool and pool.pool.network_config.enable_private_nodes)
    if not private:
        more = nodes(subject, *_EVERY).more
        need = Need(what="public addresses", more=more, whole=0)
        # Of a cluster that nobody has described yet it is not known whether its nodes will be private.
        yield from _breach(_region(subject, "IN_USE_ADDRESSES"), need, severity=None if cluster else "warning")


@RULES.rule(
    "quota.resource-policies",
    cause="a placement policy counts",
    remedy=f"{_ASK}: resource policies in the region",
    needs=("regionInfo", "resourcePolicies"),
)
def _resource_policies(subject: Subject) -> Iterator[Breach]:
    names = {short(pool.pool.placement_policy.policy_name) for pool in subject.pools} - {""}
    there = {each.value.name for each in subject.policies}
    need = Need(what="placement policies", more=len(names - there), whole=len(names))
    yield from _breach(_region(subject, "RESOURCE_POLICIES"), need)


def _held_too(subject: Subject, have: Limit | None, amount: int, what: str) -> Iterator[Breach]:
    """A quota that reservations have taken already when they were made, so that it is no error for their nodes."""
    open_to_all = list(_breach(have, nodes(subject, "standard", "spot").times(amount, what)))
    severity: Severity | None = "warning" if _may_be_reserved(subject) or not open_to_all else None
    yield from _breach(have, nodes(subject, *_EVERY).times(amount, what), severity=severity)


def _may_be_reserved(subject: Subject) -> bool:
    """Whether a reservation of the family's machine is there that a pool which is still to be made could take."""
    family = subject.family
    return (
        subject.pool is None
        and family is not None
        and any(
            short(each.value.specific_reservation.instance_properties.machine_type) in family.machines
            for each in subject.reservations
        )
    )

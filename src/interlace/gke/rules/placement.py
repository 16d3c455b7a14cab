"""Rules about where nodes are put and what kind of VM they are: placement policies, spot, flex-start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interlace.gke.places import short
from interlace.gke.rules.nodepool import Pool
from interlace.gke.rules.subject import Subject
from interlace.rules.rule import Breach, Rules
from interlace.rules.words import counted

RULES: Final[Rules[Subject]] = Rules()


@RULES.rule(
    "placement.beside-reservation",
    cause="machines of a reservation are placed already; a VM with another placement policy than the reservation's "
    "gets none of them, and the pool fails after it was made",
    remedy="make the pool without placement policy, or with the policy that the reservation has",
    needs=("cluster",),
)
def _beside_reservation(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        placed = pool.pool.placement_policy
        if not _compact(pool) or not pool.specific_reservations:
            continue
        name = pool.specific_reservations[0]
        policy = short(placed.policy_name)
        listed = [each.value for each in subject.reservations if each.value.name == name]
        reserved = {short(each) for reservation in listed for each in reservation.resource_policies.values()}
        if policy and policy in reserved:
            continue
        has = f"which has {', '.join(sorted(reserved))}" if reserved else "which has none"
        yield Breach(
            pointer=pool.at("placementPolicy"),
            text=f"{pool.says} has placement policy {policy or placed.type} beside reservation {name}, "
            + (has if listed else "of which it is not known whether it has one"),
            severity="error" if listed else "warning",
        )


@RULES.rule(
    "placement.zones",
    cause="compact placement is within one zone",
    remedy="make the pool in one zone with --node-locations",
    needs=("cluster",),
)
def _zones(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if _compact(pool) and len(pool.zones) > 1:
            yield Breach(
                pointer=pool.at("placementPolicy"),
                text=f"{pool.says} has compact placement in {len(pool.zones)} zones",
            )


@RULES.rule(
    "placement.blue-green",
    cause="a compact group takes no second set of nodes for a blue-green upgrade",
    remedy="upgrade with strategy SURGE",
    needs=("cluster",),
)
def _blue_green(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if _compact(pool) and pool.pool.upgrade_settings.strategy == "BLUE_GREEN":
            yield Breach(
                pointer=pool.at("upgradeSettings", "strategy"),
                text=f"{pool.says} has compact placement and upgrades by BLUE_GREEN",
            )


@RULES.rule(
    "placement.policy-missing",
    cause="the pool cannot be made, or its nodes cannot come back, without the policy",
    remedy="make the policy in the region of the cluster, or write its name as it is",
    needs=("cluster", "resourcePolicies"),
)
def _policy_missing(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        name = short(pool.pool.placement_policy.policy_name)
        if not name or not subject.live:
            continue
        alike = [each.value for each in subject.policies if each.value.name == name]
        regions = {short(each.region) for each in alike if each.region}
        where = pool.at("placementPolicy", "policyName")
        if not alike:
            yield Breach(pointer=where, text=f"{pool.says} has placement policy {name}, which does not exist")
        elif regions and subject.region and subject.region not in regions:
            yield Breach(
                pointer=where,
                text=f"{pool.says} is in region {subject.region}, and its placement policy {name} in "
                f"{', '.join(sorted(regions))}",
            )


@RULES.rule(
    "placement.policy-kind",
    cause="only a placement policy that is READY and collocates puts nodes near each other",
    remedy="make a policy with `gcloud compute resource-policies create group-placement --collocation=collocated`",
    needs=("cluster", "resourcePolicies"),
)
def _policy_kind(subject: Subject) -> Iterator[Breach]:
    used = {short(pool.pool.placement_policy.policy_name): pool for pool in subject.pools}
    for policy in subject.policies:
        pool = used.get(policy.value.name) if policy.value.name else None
        if pool is None:
            continue
        group = policy.value.group_placement_policy
        if group is None or group.collocation != "COLLOCATED":
            yield Breach(
                pointer=f"{policy.pointer}/groupPlacementPolicy",
                text=f"policy {policy.value.name} of {pool.says} does not collocate VMs",
                severity="warning",
            )
        if policy.value.status not in ("", "READY"):
            yield Breach(
                pointer=f"{policy.pointer}/status",
                text=f"policy {policy.value.name} of {pool.says} is {policy.value.status}",
            )
        nodes = max(pool.pool.initial_node_count, subject.state.want.nodes if pool.wanted else 0)
        if group is not None and 0 < group.vm_count < nodes:
            yield Breach(
                pointer=f"{policy.pointer}/groupPlacementPolicy/vmCount",
                text=f"policy {policy.value.name} holds {counted(group.vm_count, 'VM')}, and {pool.says} has {nodes} "
                "nodes",
                cause="a group takes no more VMs than its policy says",
                remedy=f"make a policy without --vm-count, or with at least {nodes}",
            )


@RULES.rule(
    "placement.none",
    severity="info",
    cause="nodes that are far from each other in the data centre reach each other over more switches",
    remedy="make the pool with a compact placement policy, or from a reservation with one",
    needs=("cluster",),
)
def _none(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if not _compact(pool) and not pool.specific_reservations:
            yield Breach(
                pointer=pool.at("placementPolicy"),
                text=f"{pool.says} has neither compact placement nor a reservation",
            )


@RULES.rule(
    "pool.spot-reservation",
    cause="a reservation is for standard VMs; spot and preemptible ones get none of it",
    remedy="leave spot or the reservation out",
    needs=("cluster",),
)
def _spot_reservation(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        config = pool.pool.config
        if (config.spot or config.preemptible) and pool.specific_reservations:
            yield Breach(
                pointer=pool.at("config", "spot" if config.spot else "preemptible"),
                text=f"{pool.says} has spot VMs and reservation {pool.specific_reservations[0]}",
            )


@RULES.rule(
    "pool.spot",
    severity="warning",
    cause="Google takes spot VMs back at any time, which ends every job over several nodes; such pools are reported to "
    "come up in state ERROR",
    remedy="take a reservation, or standard VMs",
    needs=("cluster",),
)
def _spot(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        config = pool.pool.config
        if (config.spot or config.preemptible) and not pool.specific_reservations:
            yield Breach(
                pointer=pool.at("config", "spot" if config.spot else "preemptible"), text=f"{pool.says} has spot VMs"
            )


@RULES.rule(
    "pool.flex-start",
    cause="GKE takes flex-start only for a pool that scales by itself and has no reservation",
    remedy="turn autoscaling on and leave the reservation out, or leave flex-start out",
    needs=("cluster",),
)
def _flex_start(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if not pool.pool.config.flex_start:
            continue
        if not pool.pool.autoscaling.enabled:
            yield Breach(pointer=pool.at("config", "flexStart"), text=f"{pool.says} has flex-start without autoscaling")
        if pool.specific_reservations:
            yield Breach(
                pointer=pool.at("config", "flexStart"),
                text=f"{pool.says} has flex-start and reservation {pool.specific_reservations[0]}",
            )


def _compact(pool: Pool) -> bool:
    placed = pool.pool.placement_policy
    return bool(placed.policy_name) or placed.type == "COMPACT"

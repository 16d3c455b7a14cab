"""Quotas: what is used, what is allowed, and when a request learns of it.

NETWORKS is checked when the operation ends, as reports show; the others when the request comes.

Invariant: usage is always counted from what exists, never kept.
"""

from __future__ import annotations

from typing import Any, Final

from interlace.sim.gke.catalog import region_of, vm_family
from interlace.sim.gke.errors import Refusal
from interlace.sim.gke.routes import Call
from interlace.sim.gke.world import World, quota_failure

Json = dict[str, Any]
_METRICS: Final = {
    "networks": "NETWORKS",
    "subnetworks": "SUBNETWORKS",
    "firewalls": "FIREWALLS",
    "resourcePolicies": "RESOURCE_POLICIES",
}
_UNLIMITED: Final = 1e12


def metric_of(world: World, collection: str) -> tuple[str, float]:
    """Name and limit of the quota that counts a collection."""
    metric = _METRICS.get(collection, "RESERVATIONS")
    limits = world.catalog.region_quotas if metric == "RESOURCE_POLICIES" else world.catalog.global_quotas
    return metric, limits.get(metric, _UNLIMITED)


def check_insert(world: World, call: Call, collection: str) -> None:
    """403 when one more does not fit, for the quotas that are checked at once."""
    metric, limit = metric_of(world, collection)
    if metric == "NETWORKS":
        return
    pending = sum(1 for path in world.store.creating if path.split("/")[-2] == collection)
    if collection == "resourcePolicies":
        used, where = len(world.store.under(call.path.rpartition("/")[0], collection)), f"in region {call.place}"
    else:
        used, where = sum(1 for _ in world.store.of(call.project, collection)), "globally"
    if used + pending + 1 > limit:
        raise Refusal(403, f"Quota '{metric}' exceeded.  Limit: {float(limit)} {where}.", "quotaExceeded")


def check_completion(world: World, call: Call, collection: str) -> None:
    """OperationFailed when one more does not fit, for the quota that is checked at the end."""
    metric, limit = metric_of(world, collection)
    if metric == "NETWORKS" and sum(1 for _ in world.store.of(call.project, collection)) + 1 > limit:
        raise quota_failure(metric, limit)


def nodes(world: World, project: str) -> list[tuple[str, Json, int]]:
    """Pools of a project with their zone (the first) and number of nodes that run."""
    found = []
    for path, pool in world.store.of(project, "nodePools"):
        if path in world.shortages:
            continue
        zones = pool.get("locations", [])
        found.append((zones[0] if zones else path.split("/")[3], pool, pool.get("initialNodeCount", 0) * len(zones)))
    return found


def gpus_in_use(world: World, project: str, region: str, family: str) -> int:
    """GPUs of a family that run in a region without a reservation."""
    total = 0
    for zone, pool, count in nodes(world, project):
        config = pool["config"]
        if region_of(zone) != region or reserved(config):
            continue
        for each in config.get("accelerators", []):
            kind = world.catalog.accelerators.get(each["acceleratorType"])
            if kind is not None and kind.family == family:
                total += int(each["acceleratorCount"]) * count
    return total


def family_cpus_in_use(world: World, project: str, region: str, family: str) -> int:
    """CPUs of a family of machines with GPUs that run in a region."""
    kinds = world.catalog.machine_types
    here = [
        (pool["config"]["machineType"], count)
        for zone, pool, count in nodes(world, project)
        if region_of(zone) == region
    ]
    return sum(kinds[name].cpus * count for name, count in here if name in kinds and vm_family(name) == family)


def reserved(config: Json) -> bool:
    """Whether nodes of this configuration come out of a named reservation."""
    affinity = config.get("reservationAffinity", {})
    return bool(affinity.get("consumeReservationType") == "SPECIFIC_RESERVATION" and affinity.get("values"))


def _usage(world: World, project: str, region: str | None) -> dict[str, float]:
    here = [(pool, count) for zone, pool, count in nodes(world, project) if region is None or region_of(zone) == region]
    cpus = plain = gpus = disks = machines = 0
    for pool, count in here:
        kind = world.catalog.machine_types.get(pool["config"]["machineType"])
        machines += count
        disks += pool["config"].get("diskSizeGb", 100) * count
        if kind is not None:
            cpus, gpus = cpus + kind.cpus * count, gpus + kind.gpus * count
            plain += 0 if kind.gpus else kind.cpus * count
    used: dict[str, float] = {
        "CPUS": plain,
        "CPUS_ALL_REGIONS": cpus,
        "GPUS_ALL_REGIONS": gpus,
        "INSTANCES": machines,
        "IN_USE_ADDRESSES": machines,
        "SSD_TOTAL_GB": disks,
    }
    for collection, metric in _METRICS.items():
        members = world.store.of(project, collection)
        used[metric] = sum(1 for path, _ in members if region is None or f"/regions/{region}/" in path)
    used["ROUTES"] = used["SUBNETWORKS"] + used["NETWORKS"]
    return used


def table(world: World, project: str, region: str | None = None) -> list[Json]:
    """``quotas`` of a project, or of a region."""
    used = _usage(world, project, region)
    limits = world.catalog.global_quotas if region is None else world.catalog.region_quotas
    return [
        {"metric": metric, "limit": float(limit), "usage": float(used.get(metric, 0))}
        for metric, limit in limits.items()
    ]

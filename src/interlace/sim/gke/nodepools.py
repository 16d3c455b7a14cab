"""Node pools: what the server makes of a body, which nodes come up, and what changes in place.

Invariant: a pool that fails stays, with its status and conditions, until somebody deletes it.
"""

from __future__ import annotations

from typing import Any, Final

from interlace.sim.gke import capacity, quotas
from interlace.sim.gke.catalog import region_of, vm_family
from interlace.sim.gke.errors import Refusal, bad_request, check_name, not_found
from interlace.sim.gke.faults import Kind
from interlace.sim.gke.operations import COMPUTE, OperationFailed, container_link
from interlace.sim.gke.routes import Call
from interlace.sim.gke.store import etag, relative, short_hash
from interlace.sim.gke.world import World

Json = dict[str, Any]
SHORTAGES: Final = (
    Kind.STOCKOUT,
    Kind.PARTIAL_STOCKOUT,
    Kind.QUOTA_AT_COMPLETION,
    Kind.ERROR_ONLY,
    Kind.CONDITION_NOT_MET,
)
DEFAULT_SCOPES: Final = tuple(
    f"https://www.googleapis.com/auth/{each}"
    for each in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
)
_CONFIG: Final = frozenset(
    [
        "accelerators",
        "bootDisk",
        "confidentialNodes",
        "containerdConfig",
        "diskSizeGb",
        "diskType",
        "fastSocket",
        "gcfsConfig",
        "gvnic",
        "imageType",
        "kubeletConfig",
        "linuxNodeConfig",
        "loggingConfig",
        "machineType",
        "maxRunDuration",
        "storagePools",
        "workloadMetadataConfig",
    ]
)
"""Fields of an update that are fields of the node configuration under the same name."""
_POOL: Final = frozenset({"locations", "upgradeSettings", "nodeDrainConfig", "queuedProvisioning", "maintenancePolicy"})
_ADDRESS: Final = frozenset({"name", "projectId", "zone", "clusterId", "nodePoolId", "etag"})


def node_config(world: World, body: Json) -> Json:
    """A node configuration with the server's defaults."""
    machine = body.get("machineType", "e2-medium")
    kind = world.catalog.machine_types.get(machine)
    labels = {"goog-gke-node-pool-provisioning-model": _provisioning(body)} | body.get("resourceLabels", {})
    defaults: Json = {
        "machineType": machine,
        "diskSizeGb": 100,
        "oauthScopes": list(DEFAULT_SCOPES),
        "imageType": "COS_CONTAINERD",
        "serviceAccount": "default",
        "diskType": "pd-balanced",
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
    }
    config = defaults | body | {"metadata": {"disable-legacy-endpoints": "true"} | body.get("metadata", {})}
    config["imageType"] = config["imageType"].upper()
    if body.get("accelerators"):
        labels["goog-gke-accelerator-type"] = body["accelerators"][0].get("acceleratorType", "")
        taints = body.get("taints", [])
        if not any(each.get("key") == "nvidia.com/gpu" for each in taints):
            config["taints"] = [*taints, {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    named = {"localSsdCount", "ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"}
    if kind is not None and kind.local_ssds and not named & set(body):
        config["ephemeralStorageLocalSsdConfig"] = {"localSsdCount": kind.local_ssds}
    config["resourceLabels"] = labels
    return config


def _provisioning(config: Json) -> str:
    if config.get("spot") or config.get("preemptible"):
        return "spot"
    return "reservation" if quotas.reserved(config) else "on-demand"


def pool(world: World, cluster_path: str, cluster: Json, body: Json) -> Json:
    """A new pool of a cluster, still without nodes. Refusal."""
    name = body.get("name", "")
    check_name("node_pool.name", name)
    path = f"{cluster_path}/nodePools/{name}"
    config = node_config(world, body.get("config", {}))
    locations = list(body.get("locations") or cluster["locations"])
    channel = cluster.get("releaseChannel", {}).get("channel", "")
    management = {"autoUpgrade": bool(channel), "autoRepair": True} | body.get("management", {})
    policy = cluster["ipAllocationPolicy"]
    network = {
        "podRange": policy.get("clusterSecondaryRangeName", ""),
        "podIpv4CidrBlock": policy["clusterIpv4CidrBlock"],
        "enablePrivateNodes": bool(cluster["networkConfig"].get("defaultEnablePrivateNodes", False)),
    } | body.get("networkConfig", {})
    document = body | {
        "name": name,
        "config": config,
        "initialNodeCount": body.get("initialNodeCount", 0),
        "locations": locations,
        "networkConfig": network,
        "selfLink": container_link(path, numbered=False),
        "version": body.get("version") or cluster["currentMasterVersion"],
        "instanceGroupUrls": [_group(cluster_path, name, zone) for zone in locations],
        "status": "PROVISIONING",
        "management": management,
        "maxPodsConstraint": body.get("maxPodsConstraint", cluster["defaultMaxPodsConstraint"]),
        "podIpv4CidrSize": body.get("podIpv4CidrSize", 24),
        "upgradeSettings": {"maxSurge": 1, "strategy": "SURGE"} | body.get("upgradeSettings", {}),
    }
    return document | {"etag": etag(document)}


def _group(cluster_path: str, pool_name: str, zone: str) -> str:
    project, cluster = cluster_path.split("/")[1], cluster_path.rpartition("/")[2]
    suffix = short_hash(f"{cluster_path}/{pool_name}/{zone}")
    name = f"gke-{cluster}-{pool_name}-{suffix}-grp"
    return f"{COMPUTE}projects/{project}/zones/{zone}/instanceGroupManagers/{name}"


def check(world: World, call: Call, cluster_path: str, cluster: Json, document: Json) -> None:
    """What a new pool is refused for at once: places, machines, networks, policy, channel, quota."""
    config, channel = document["config"], cluster.get("releaseChannel", {}).get("channel", "")
    for zone in document["locations"]:
        if not world.catalog.offered(config["machineType"], zone):
            raise bad_request(f'Machine type with name "{config["machineType"]}" does not exist in zone "{zone}".')
    if channel and not document["management"]["autoUpgrade"] and cluster_path not in world.enrolled:
        raise bad_request(f"Auto_upgrade cannot be false when release_channel {channel} is set.")
    if world.catalog.resolve(document["version"], channel) is None:
        raise bad_request(f'No valid versions with the prefix "{document["version"]}" found.')
    check_networks(world, cluster, document)
    _check_policy(world, call, document)
    check_quota(world, call.project, document, document["initialNodeCount"] * len(document["locations"]))


def check_networks(world: World, cluster: Json, document: Json) -> None:
    """The additional networks exist, each NIC has its own (for RDMA: subnetwork), the cluster takes them."""
    extra = document["networkConfig"].get("additionalNodeNetworkConfigs", [])
    if extra and not cluster["networkConfig"].get("enableMultiNetworking"):
        raise bad_request("additional_node_network_configs requires a cluster with multi-networking enabled.")
    host = cluster["networkConfig"]["network"].split("/")[1]
    region = region_of(document["locations"][0])
    seen = [cluster["networkConfig"]["network"]]
    for each in extra:
        network = relative(each.get("network", ""), project=host, collection="networks")
        place = f"regions/{region}"
        subnet = relative(each.get("subnetwork", ""), project=host, collection="subnetworks", place=place)
        found, below = world.store.usable(network), world.store.usable(subnet)
        if found is None:
            raise bad_request(f'Network "{each.get("network")}" does not exist.')
        if below is None or not below["network"].endswith(f"/{network}"):
            raise bad_request(f'Subnetwork "{each.get("subnetwork")}" does not exist in network "{each["network"]}".')
        if subnet in seen or (network in seen and not found.get("networkProfile")):
            raise bad_request(f'Network "{each.get("network")}" is used by more than one interface of the nodes.')
        seen += [network, subnet]


def _check_policy(world: World, call: Call, document: Json) -> None:
    name = document.get("placementPolicy", {}).get("policyName", "")
    place = f"regions/{region_of(document['locations'][0])}"
    if (
        name
        and world.store.usable(relative(name, project=call.project, collection="resourcePolicies", place=place)) is None
    ):
        raise bad_request(f'Resource policy "{name}" does not exist in {place}.')


def check_quota(world: World, project: str, document: Json, machines: int) -> None:
    """403 unless ``machines`` more of a pool fit into every quota."""
    config, region = document["config"], region_of(document["locations"][0])
    for name, wanted, limit, used in demands(world, project, region, config, machines):
        if used + wanted > limit:
            left = limit - used
            raise Refusal(
                403,
                f'Insufficient regional quota to satisfy request: resource "{name}": request requires '
                f"'{float(wanted)}' and is short '{float(wanted - left)}'. project has a quota of '{float(limit)}' "
                f"with '{float(left)}' available.",
            )


def demands(
    world: World, project: str, region: str, config: Json, machines: int
) -> list[tuple[str, float, float, float]]:
    """Name of each quota that the machines count against, what they need, the limit and what is used."""
    kind = world.catalog.machine_types.get(config["machineType"])
    here = {each["metric"]: each for each in quotas.table(world, project, region)}
    everywhere = {each["metric"]: each for each in quotas.table(world, project)}
    rows = [("SSD_TOTAL_GB", config["diskSizeGb"] * machines, here["SSD_TOTAL_GB"])]
    if kind is not None and not kind.gpus:
        rows.append(("CPUS", kind.cpus * machines, here["CPUS"]))
    if kind is not None:
        rows.append(("CPUS_ALL_REGIONS", kind.cpus * machines, everywhere["CPUS_ALL_REGIONS"]))
    found = [(name, need, row["limit"], row["usage"]) for name, need, row in rows]
    if kind is not None and kind.gpus:
        vms = vm_family(config["machineType"])
        used = quotas.family_cpus_in_use(world, project, region, vms)
        found.append(("CPUS_PER_VM_FAMILY", kind.cpus * machines, world.catalog.vm_family_quota, used))
    if kind is not None and kind.gpus and not quotas.reserved(config):
        family = world.catalog.accelerators[kind.gpu].family
        need = kind.gpus * machines
        if config.get("spot") or config.get("preemptible"):
            limit = world.catalog.region_quotas.get(f"PREEMPTIBLE_{family}_GPUS", 0)
            found.append((f"PREEMPTIBLE_{family}_GPUS", need, limit, 0))
        else:
            used = quotas.gpus_in_use(world, project, region, family)
            found.append(("GPUS_PER_GPU_FAMILY", need, world.catalog.gpu_family_quota, used))
            row = everywhere["GPUS_ALL_REGIONS"]
            found.append(("GPUS_ALL_REGIONS", need, row["limit"], row["usage"]))
    return found


def bring_up(world: World, project: str, path: str, shortage: Kind | None) -> None:
    """Let the nodes of the pool at ``path`` come up, or fail as ``shortage`` or an empty reservation says."""
    document = world.store.get(path)
    if document is None:
        return
    machines = document["initialNodeCount"] * len(document["locations"])
    reservation = _reservation(world, project, document)
    if shortage is None and reservation is not None:
        if not _fits(world, document, reservation, machines):
            shortage = Kind.STOCKOUT
        else:
            capacity.take(reservation, machines)
    elif shortage is None and quotas.reserved(document["config"]):
        shortage = Kind.STOCKOUT
    if shortage is None:
        world.shortages.pop(path, None)
        world.store.put(path, without_error(document) | {"status": "RUNNING"})
        return
    world.shortages[path] = shortage
    running = 1 if shortage is Kind.PARTIAL_STOCKOUT and machines > 1 else 0
    failure = _failure(path, document, shortage, machines, running)
    world.store.put(
        path,
        document
        | {
            "status": "RUNNING_WITH_ERROR" if running else "ERROR",
            "statusMessage": failure.message,
            "conditions": [{"code": failure.code, "canonicalCode": failure.canonical, "message": failure.message}],
        },
    )
    raise failure


def release(world: World, project: str, path: str) -> None:
    """Give the machines of a pool back to its reservation."""
    document = world.store.get(path)
    shortage = world.shortages.pop(path, None)
    if document is None or shortage is not None:
        return
    reservation = _reservation(world, project, document)
    if reservation is not None:
        capacity.take(reservation, -document["initialNodeCount"] * len(document["locations"]))


def without_error(document: Json) -> Json:
    """A pool that no longer says what went wrong."""
    return {key: value for key, value in document.items() if key not in {"statusMessage", "conditions"}}


def _reservation(world: World, project: str, document: Json) -> Json | None:
    if not quotas.reserved(document["config"]):
        return None
    value = document["config"]["reservationAffinity"]["values"][0].partition("/reservationBlocks")[0]
    place = f"zones/{document['locations'][0]}"
    if value.startswith("projects/") and value.count("/") == 3:  # of another project, named without its zone
        value = value.replace("/reservations/", f"/{place}/reservations/")
    return world.store.get(relative(value, project=project, collection="reservations", place=place))


def _fits(world: World, document: Json, reservation: Json, machines: int) -> bool:
    """Whether the reservation has that many such machines free, in the block that the pool names, if it names one."""
    value = document["config"]["reservationAffinity"]["values"][0]
    kept = reservation["specificReservation"]["instanceProperties"]["machineType"]
    if kept != document["config"]["machineType"] or capacity.free(reservation) < machines:
        return False
    _, named, block = value.partition("/reservationBlocks/")
    found = capacity.blocks(world, reservation["name"], reservation)
    return not named or any(each["name"] == block.partition("/")[0] and each["count"] >= machines for each in found)


def _failure(path: str, document: Json, kind: Kind, machines: int, running: int) -> OperationFailed:
    cluster, name, zone = path.split("/")[5], document["name"], document["locations"][0]
    instance = f"gke-{cluster}-{name}-{short_hash(path)}-x1y2"
    counts = f"Expected {machines}, running {running}"
    if kind in {Kind.STOCKOUT, Kind.PARTIAL_STOCKOUT}:
        project = path.split("/")[1]
        text = (
            f"Google Compute Engine: Not all instances running in IGM after 35m2.1s. {counts}, transitioning "
            f"{machines - running}. Current errors: [GCE_STOCKOUT]: Instance '{instance}' creation failed: The zone "
            f"'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request."
        )
        return OperationFailed(text, code="GCE_STOCKOUT")
    if kind is Kind.CONDITION_NOT_MET:
        text = (
            f"Google Compute Engine: Not all instances running in IGM. {counts}. Current errors: [CONDITION_NOT_MET]: "
            f"Instance '{instance}' creation failed: Constraint constraints/compute.vmCanIpForward violated."
        )
        return OperationFailed(text, code="UNKNOWN", canonical="FAILED_PRECONDITION")
    text = (
        f"Insufficient quota to satisfy the request: Not all instances running in IGM. {counts}. Current errors: "
        f"[GCE_QUOTA_EXCEEDED]: Instance '{instance}' creation failed: Quota 'GPUS_PER_GPU_FAMILY' exceeded.  "
        f"Limit: 8.0 in region {region_of(zone)}."
    )
    return OperationFailed(text, code="GCE_QUOTA_EXCEEDED", message_too=kind is not Kind.ERROR_ONLY)


def updated(world: World, call: Call, cluster: Json, current: Json, body: Json) -> Json:
    """A pool after ``nodePools.update``. Refusal for a field that cannot change in place."""
    changes = {key: value for key, value in body.items() if key not in _ADDRESS}
    if not changes:
        raise bad_request("Must specify a field to update.")
    if body.get("etag") not in {None, current["etag"]}:
        raise Refusal(400, "The etag does not match.", status="FAILED_PRECONDITION")
    document, config = dict(current), dict(current["config"])
    for field, value in changes.items():
        if field in _CONFIG:
            config[field] = value
        elif field in _POOL:
            document[field] = (document[field] | value) if field == "upgradeSettings" else value
        elif field in {"labels", "resourceLabels", "taints", "tags"}:
            config[field] = value.get("labels" if field.endswith(("labels", "Labels")) else field, None) or value.get(
                field, [] if field in {"taints", "tags"} else {}
            )
        elif field == "nodeVersion":
            version = world.catalog.resolve(value, "")
            if version is None:
                raise bad_request(f'No valid versions with the prefix "{value}" found.')
            document["version"] = version
        elif field == "nodeNetworkConfig":
            document["networkConfig"] = document["networkConfig"] | value
        else:
            raise bad_request(f"The simulation does not know how to change {field} of a node pool.")
    document["config"] = config
    document["instanceGroupUrls"] = [
        _group(call.path.rpartition("/nodePools/")[0], document["name"], zone) for zone in document["locations"]
    ]
    check_networks(world, cluster, document)
    return refreshed(document)


def refreshed(document: Json) -> Json:
    """With the etag of its content."""
    return document | {"etag": etag({key: value for key, value in document.items() if key != "etag"})}


def found(world: World, path: str) -> Json:
    """The pool, or 404."""
    document = world.store.get(path)
    if document is None:
        raise not_found("container", path)
    return document

"""The container API: clusters and node pools, one operation at a time on each, and its operations.

Invariant: a cluster or a pool is visible from the request on, with a status. An operation on a cluster keeps others off
all that is in it, one on a pool off that pool, and the number of those on pools is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from interlace.sim.gke import clusters, nodepools
from interlace.sim.gke.errors import (
    Refusal,
    already_exists,
    bad_request,
    check_name,
    has_operation,
    not_found,
    too_many_operations,
)
from interlace.sim.gke.faults import Kind
from interlace.sim.gke.operations import Operation, OperationFailed
from interlace.sim.gke.routes import Call
from interlace.sim.gke.world import World

Json = dict[str, Any]


def answer(world: World, call: Call) -> Json:
    """The body of the answer of container. Refusal."""
    change = _CHANGES.get(call.route.name)
    if change is not None:
        return world.operations.document(change(world, call), world.clock())
    return _READS[call.route.name](world, call)


def _create_cluster(world: World, call: Call) -> Operation:
    body = dict((call.body or {}).get("cluster") or {})
    name = body.get("name", "")
    check_name("cluster.name", name)
    if call.place not in world.catalog.regions and call.place not in world.catalog.zones:
        raise bad_request(f'Location "{call.place}" does not exist.')
    path = f"{call.path}/{name}"
    if world.store.get(path) is not None:
        raise already_exists("container", path)
    document = clusters.cluster(world, call, path, body)
    enrolled = "releaseChannel" not in body and not world.faults.striking(call.line, (Kind.ENROLLED,))
    if enrolled:
        world.enrolled.add(path)
    else:
        world.enrolled.discard(path)
    pools = _initial_pools(world, call, path, document, body)
    rules = clusters.firewalls(world, path, document)
    struck = world.faults.striking(call.line, nodepools.SHORTAGES)
    world.store.put(path, document)
    clusters.claim(world, document)
    for pool in pools:
        world.store.put(f"{path}/nodePools/{pool['name']}", pool)

    def ready() -> None:
        for rule, rule_document in rules.items():
            world.store.put(rule, rule_document)
        failures = []
        for pool in pools:
            try:
                nodepools.bring_up(
                    world, call.project, f"{path}/nodePools/{pool['name']}", struck.kind if struck else None
                )
            except OperationFailed as failure:
                failures.append(failure)
        if not failures:
            world.store.put(path, document | {"status": "RUNNING"})
            return
        world.store.put(path, document | {"status": "ERROR", "statusMessage": failures[0].message})
        raise failures[0]

    return world.start(
        call, type="CREATE_CLUSTER", target=path, effect=ready, seconds=world.durations.cluster, lock=path
    )


def _initial_pools(world: World, call: Call, path: str, document: Json, body: Json) -> list[Json]:
    wanted = body.get("nodePools") or [
        {
            "name": "default-pool",
            "initialNodeCount": body.get("initialNodeCount", 0),
            "config": body.get("nodeConfig", {}),
        }
    ]
    made = [nodepools.pool(world, path, document, dict(each)) for each in wanted]
    if any(each["initialNodeCount"] < 1 for each in made[:1]) and not body.get("nodePools"):
        raise bad_request("Cluster.initial_node_count must be greater than zero.")
    for each in made:
        nodepools.check(world, call, path, document, each)
    return made


def _delete_cluster(world: World, call: Call) -> Operation:
    path = call.path
    document = clusters.found(world, path)
    hold(world, path)
    world.store.put(path, document | {"status": "STOPPING"})
    keep = world.faults.striking(call.line, (Kind.LEFTOVER_FIREWALLS,)) is not None

    def go() -> None:
        for pool, _ in world.store.under(path, "nodePools"):
            nodepools.release(world, call.project, pool)
        world.store.remove(path)
        world.enrolled.discard(path)
        clusters.unclaim(world, path, document)
        if not keep:
            for rule in clusters.firewalls(world, path, document):
                world.store.remove(rule)

    return world.start(call, type="DELETE_CLUSTER", target=path, effect=go, seconds=world.durations.cluster, lock=path)


def hold(world: World, path: str) -> None:
    """400 when an operation holds the cluster, or anything in it."""
    for operation in world.operations.holding(path):
        raise has_operation(operation.name)


def hold_pool(world: World, cluster: str, path: str) -> None:
    """400 when an operation holds the cluster or this pool, 429 when too many hold its pools."""
    running = list(world.operations.holding(cluster))
    for operation in running:
        if operation.lock in {cluster, path}:
            raise has_operation(operation.name)
    if len(running) >= world.pool_operation_limit:
        raise too_many_operations(cluster.rpartition("/")[2], world.pool_operation_limit)


def _create_pool(world: World, call: Call) -> Operation:
    cluster_path = call.path.rpartition("/")[0]
    cluster = clusters.found(world, cluster_path)
    body = dict((call.body or {}).get("nodePool") or {})
    path = f"{cluster_path}/nodePools/{body.get('name', '')}"
    if world.store.get(path) is not None:
        raise already_exists("container", path)
    hold_pool(world, cluster_path, path)
    document = nodepools.pool(world, cluster_path, cluster, body)
    nodepools.check(world, call, cluster_path, cluster, document)
    struck = world.faults.striking(call.line, nodepools.SHORTAGES)
    world.store.put(path, document)

    def ready() -> None:
        nodepools.bring_up(world, call.project, path, struck.kind if struck else None)

    return world.start(
        call, type="CREATE_NODE_POOL", target=path, effect=ready, seconds=world.durations.pool, lock=path
    )


def _pool(world: World, call: Call) -> tuple[str, str, Json]:
    """Names of the cluster and the pool of a call, and the pool, which nothing holds."""
    cluster_path = call.path.rpartition("/nodePools/")[0]
    clusters.found(world, cluster_path)
    document = nodepools.found(world, call.path)
    hold_pool(world, cluster_path, call.path)
    return cluster_path, call.path, document


def _delete_pool(world: World, call: Call) -> Operation:
    _, path, document = _pool(world, call)
    world.store.put(path, document | {"status": "STOPPING"})

    def go() -> None:
        nodepools.release(world, call.project, path)
        world.store.remove(path)

    return world.start(call, type="DELETE_NODE_POOL", target=path, effect=go, seconds=world.durations.pool, lock=path)


def _change_pool(world: World, call: Call, type: str, document: Json) -> Operation:
    path = call.path
    before = world.store.get(path) or {}
    world.store.put(path, before | {"status": "RECONCILING"})

    def change() -> None:
        status = "ERROR" if path in world.shortages else "RUNNING"
        world.store.put(path, nodepools.refreshed(document | {"status": status}))

    return world.start(call, type=type, target=path, effect=change, seconds=world.durations.update, lock=path)


def _update_pool(world: World, call: Call) -> Operation:
    cluster_path, _, document = _pool(world, call)
    body = call.body or {}
    changed = nodepools.updated(world, call, clusters.found(world, cluster_path), document, body)
    return _change_pool(world, call, "UPGRADE_NODES" if "nodeVersion" in body else "UPDATE_CLUSTER", changed)


def _set_size(world: World, call: Call) -> Operation:
    _, path, document = _pool(world, call)
    count = (call.body or {}).get("nodeCount", 0)
    if count < 0:
        raise bad_request("node_count must not be negative.")
    running = 0 if path in world.shortages else document["initialNodeCount"]
    if count > running:
        nodepools.check_quota(world, call.project, document, (count - running) * len(document["locations"]))
    wanted = document | {"initialNodeCount": count}
    nodepools.release(world, call.project, path)
    struck = world.faults.striking(call.line, nodepools.SHORTAGES)
    world.store.put(path, nodepools.without_error(wanted) | {"status": "RECONCILING"})

    def ready() -> None:
        nodepools.bring_up(world, call.project, path, struck.kind if struck else None)

    return world.start(
        call, type="SET_NODE_POOL_SIZE", target=path, effect=ready, seconds=world.durations.pool, lock=path
    )


def _set_management(world: World, call: Call) -> Operation:
    cluster_path, _, document = _pool(world, call)
    channel = clusters.found(world, cluster_path).get("releaseChannel", {}).get("channel", "")
    management = {"autoUpgrade": False, "autoRepair": False} | (call.body or {}).get("management", {})
    if channel and not management["autoUpgrade"] and cluster_path not in world.enrolled:
        raise bad_request(f"Auto_upgrade cannot be false when release_channel {channel} is set.")
    return _change_pool(world, call, "SET_NODE_POOL_MANAGEMENT", document | {"management": management})


def _set_autoscaling(world: World, call: Call) -> Operation:
    _, _, document = _pool(world, call)
    return _change_pool(world, call, "UPDATE_CLUSTER", _scaled(document, (call.body or {}).get("autoscaling", {})))


def _scaled(document: Json, autoscaling: Json) -> Json:
    kept = {key: value for key, value in document.items() if key != "autoscaling"}
    return kept | ({"autoscaling": autoscaling} if autoscaling.get("enabled") else {})


def _rollback(world: World, call: Call) -> Operation:
    _, _, document = _pool(world, call)
    return _change_pool(world, call, "UPGRADE_NODES", document)


def _change_cluster(world: World, call: Call, type: str, document: Json) -> Operation:
    path = call.path
    world.store.put(path, clusters.found(world, path) | {"status": "RECONCILING"})

    def change() -> None:
        world.store.put(path, document | {"status": "RUNNING"})

    return world.start(call, type=type, target=path, effect=change, seconds=world.durations.update, lock=path)


def _update_cluster(world: World, call: Call) -> Operation:
    path = call.path
    current = clusters.found(world, path)
    hold(world, path)
    update = dict((call.body or {}).get("update") or {})
    update.pop("etag", None)
    pool_id = update.pop("desiredNodePoolId", "")
    if len(update) != 1:
        raise bad_request("Must specify exactly one update.")
    ((field, value),) = update.items()
    if field == "desiredMasterVersion":
        version = world.catalog.resolve(value, current.get("releaseChannel", {}).get("channel", ""))
        if version is None:
            raise bad_request(f'No valid versions with the prefix "{value}" found.')
        changed = clusters.refreshed(current | {"currentMasterVersion": version})
        return _change_cluster(world, call, "UPGRADE_MASTER", changed)
    if field in {"desiredNodeVersion", "desiredNodePoolAutoscaling"}:
        return _change_pools(world, call, current, field, value, pool_id)
    return _change_cluster(world, call, "UPDATE_CLUSTER", clusters.updated(current, field, value))


def _change_pools(world: World, call: Call, current: Json, field: str, value: Any, pool_id: str) -> Operation:
    path = call.path
    pools = [each for each, _ in world.store.under(path, "nodePools") if not pool_id or each.endswith(f"/{pool_id}")]
    if not pools:
        raise not_found("container", f"{path}/nodePools/{pool_id}")
    version = world.catalog.resolve(value, "") if field == "desiredNodeVersion" else ""
    if version is None:
        raise bad_request(f'No valid versions with the prefix "{value}" found.')
    world.store.put(path, current | {"status": "RECONCILING"})

    def change() -> None:
        world.store.put(path, current | ({"currentNodeVersion": version} if version else {}))
        for each in pools:
            document = nodepools.found(world, each)
            changed = document | {"version": version} if version else _scaled(document, value)
            world.store.put(each, nodepools.refreshed(changed))

    kind = "UPGRADE_NODES" if version else "UPDATE_CLUSTER"
    return world.start(call, type=kind, target=path, effect=change, seconds=world.durations.update, lock=path)


def _set_labels(world: World, call: Call) -> Operation:
    current = clusters.found(world, call.path)
    hold(world, call.path)
    return _change_cluster(world, call, "UPDATE_CLUSTER", clusters.with_labels(current, call.body or {}))


def _set_maintenance(world: World, call: Call) -> Operation:
    current = clusters.found(world, call.path)
    hold(world, call.path)
    body = (call.body or {}).get("maintenancePolicy", {})
    return _change_cluster(world, call, "UPDATE_CLUSTER", clusters.with_maintenance(current, body))


def _get_cluster(world: World, call: Call) -> Json:
    return clusters.shown(world, call.path, clusters.found(world, call.path))


def _list_clusters(world: World, call: Call) -> Json:
    parent = call.path.rpartition("/")[0]
    rows = [clusters.shown(world, path, each) for path, each in world.store.under(parent, "clusters")]
    return {"clusters": rows} if rows else {}


def _get_pool(world: World, call: Call) -> Json:
    clusters.found(world, call.path.rpartition("/nodePools/")[0])
    return nodepools.found(world, call.path)


def _list_pools(world: World, call: Call) -> Json:
    parent = call.path.rpartition("/")[0]
    clusters.found(world, parent)
    rows = [each for _, each in world.store.under(parent, "nodePools")]
    return {"nodePools": rows} if rows else {}


def _operation(world: World, call: Call) -> Operation:
    operation = world.operations.find(call.parameters["operationsId"])
    if operation is None or operation.service != "container" or call.place not in {"-", operation.location}:
        raise not_found("container", call.path)
    return operation


def _get_operation(world: World, call: Call) -> Json:
    return world.operations.document(_operation(world, call), world.clock())


def _list_operations(world: World, call: Call) -> Json:
    now = world.clock()
    everything = world.operations.all("container", call.project)
    rows = [world.operations.document(each, now) for each in everything if call.place in {"-", each.location}]
    return {"operations": rows} if rows else {}


def _cancel(world: World, call: Call) -> Json:
    """Only what changes pools can be cancelled; the pool stays as it is."""
    operation = _operation(world, call)
    if "/nodePools/" not in operation.target or operation.done:
        raise Refusal(400, "The operation cannot be cancelled.", status="FAILED_PRECONDITION")

    def cancelled() -> None:
        raise OperationFailed("Operation was cancelled.", canonical="CANCELLED")

    operation.effect, operation.due = cancelled, world.clock()
    world.operations.settle(world.clock())
    return {}


def _server_config(world: World, call: Call) -> Json:  # noqa: ARG001  the form of a reader
    versions = world.catalog.versions
    return {
        "defaultClusterVersion": versions.default,
        "validMasterVersions": list(versions.valid),
        "validNodeVersions": list(versions.valid),
        "defaultImageType": "COS_CONTAINERD",
        "validImageTypes": ["COS_CONTAINERD", "UBUNTU_CONTAINERD"],
        "channels": [
            {"channel": name, "defaultVersion": each.default, "validVersions": list(each.valid)}
            for name, each in versions.channels.items()
        ],
    }


_CHANGES: Final[dict[str, Callable[[World, Call], Operation]]] = {
    "clusters.create": _create_cluster,
    "clusters.delete": _delete_cluster,
    "clusters.update": _update_cluster,
    "clusters.setResourceLabels": _set_labels,
    "clusters.setMaintenancePolicy": _set_maintenance,
    "nodePools.create": _create_pool,
    "nodePools.delete": _delete_pool,
    "nodePools.update": _update_pool,
    "nodePools.setSize": _set_size,
    "nodePools.setManagement": _set_management,
    "nodePools.setAutoscaling": _set_autoscaling,
    "nodePools.rollback": _rollback,
}
_READS: Final[dict[str, Callable[[World, Call], Json]]] = {
    "clusters.get": _get_cluster,
    "clusters.list": _list_clusters,
    "nodePools.get": _get_pool,
    "nodePools.list": _list_pools,
    "operations.get": _get_operation,
    "operations.list": _list_operations,
    "operations.cancel": _cancel,
    "locations.getServerConfig": _server_config,
}

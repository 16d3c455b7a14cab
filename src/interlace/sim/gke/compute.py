"""The compute API: insert, get, list, delete and patch of five kinds of resource, and its operations.

Invariant: a resource appears when its insert operation ends and goes when its delete operation ends; what stands in the
way is said at the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from interlace.sim.gke import capacity, networks, places, quotas
from interlace.sim.gke.errors import Refusal, already_exists, in_use, invalid, not_found, not_ready
from interlace.sim.gke.listing import aggregated, listed
from interlace.sim.gke.operations import Operation
from interlace.sim.gke.routes import Call
from interlace.sim.gke.world import World

Json = dict[str, Any]
Maker = Callable[[World, Call, str, Json], Json]

MAKERS: Final[dict[str, Maker]] = {
    "networks": networks.network,
    "subnetworks": networks.subnetwork,
    "firewalls": networks.firewall,
    "resourcePolicies": capacity.resource_policy,
    "reservations": capacity.reservation,
}
_SINGULAR: Final = {
    "networks": "network",
    "subnetworks": "subnetwork",
    "firewalls": "firewall",
    "resourcePolicies": "resourcePolicy",
    "reservations": "reservation",
}
_OPERATIONS: Final = frozenset({"globalOperations", "regionOperations", "zoneOperations"})


def answer(world: World, call: Call) -> Json:
    """The body of the answer of compute. Refusal."""
    _check_place(world, call)
    collection, verb = call.route.collection, call.route.verb
    if collection in _OPERATIONS:
        return _operation(world, call, verb)
    if collection in MAKERS:
        change = _CHANGES.get(call.route.name)
        if change is not None:
            return _document(world, change(world, call, collection))
        return _read(world, call, collection, verb)
    return places.answer(world, call)


def _check_place(world: World, call: Call) -> None:
    region, zone = call.parameters.get("region"), call.parameters.get("zone")
    if region is not None and region not in world.catalog.regions:
        raise (
            invalid("region", region, "Unknown region.")
            if call.body is not None
            else not_found("compute", f"projects/{call.project}/regions/{region}")
        )
    if zone is not None and zone not in world.catalog.zones:
        raise (
            invalid("zone", zone, "Unknown zone.")
            if call.body is not None
            else not_found("compute", f"projects/{call.project}/zones/{zone}")
        )


def _document(world: World, operation: Operation) -> Json:
    return world.operations.document(operation, world.clock())


def _insert(world: World, call: Call, collection: str) -> Operation:
    body = call.body or {}
    path = f"{call.path}/{body['name']}"
    if world.store.get(path) is not None or path in world.store.creating:
        raise already_exists("compute", path)
    document = MAKERS[collection](world, call, path, body)
    quotas.check_insert(world, call, collection)
    world.store.creating[path] = document

    def appear() -> None:
        quotas.check_completion(world, call, collection)
        world.store.put(path, document)

    metric, limit = quotas.metric_of(world, collection)
    effect = world.later(call, appear, metric, limit)

    def settle() -> None:
        del world.store.creating[path]
        effect()

    operation = world.start(call, type="insert", target=path, effect=settle, seconds=world.durations.compute)
    operation.target_id = document["id"]
    return operation


def _delete(world: World, call: Call, collection: str) -> Operation:
    path = call.path
    idle(world, path)
    user = user_of(world, path, collection)
    if user is not None:
        raise in_use(_SINGULAR[collection], path, user)
    world.store.leaving.add(path)

    def go() -> None:
        world.store.remove(path)

    return world.start(call, type="delete", target=path, effect=go, seconds=world.durations.compute)


def found(world: World, path: str) -> Json:
    """The resource, or 404."""
    document = world.store.get(path)
    if document is None:
        raise not_found("compute", path)
    return document


def idle(world: World, path: str) -> Json:
    """The resource; 404 without one, 400 while an operation on it runs."""
    document = found(world, path)
    if any(operation.target == path for operation in world.operations.running()):
        raise not_ready(path)
    return document


def user_of(world: World, path: str, collection: str) -> str | None:
    """Relative name of something that refers to ``path``, or is about to."""
    project, name = path.split("/")[1], path.rpartition("/")[2]
    if collection == "networks":
        members = [each for kind in ("firewalls", "subnetworks") for each in world.store.of(project, kind)]
        for user, document in (*members, *world.store.creating.items()):
            if document.get("network", "").endswith(f"/{path}"):
                return user
    for user, document in _everywhere(world, "clusters"):
        network = document["networkConfig"]
        if path in {network["network"], network["subnetwork"]}:
            return user
    for user, document in _everywhere(world, "nodePools"):
        if _uses(document, collection, name):
            return user
    return None


def _everywhere(world: World, collection: str) -> list[tuple[str, Json]]:
    return [each for project in world.projects for each in world.store.of(project, collection)]


def _uses(pool: Json, collection: str, name: str) -> bool:
    extra = pool.get("networkConfig", {}).get("additionalNodeNetworkConfigs", [])
    if collection == "networks":
        return any(each["network"].rpartition("/")[2] == name for each in extra)
    if collection == "subnetworks":
        return any(each["subnetwork"].rpartition("/")[2] == name for each in extra)
    if collection == "resourcePolicies":
        return bool(pool.get("placementPolicy", {}).get("policyName", "").rpartition("/")[2] == name)
    if collection == "reservations" and quotas.reserved(pool["config"]):
        value = pool["config"]["reservationAffinity"]["values"][0].partition("/reservationBlocks")[0]
        return bool(value.rpartition("/")[2] == name)
    return False


def _patched(world: World, call: Call, collection: str) -> Operation:
    path = call.path
    current, body = idle(world, path), call.body or {}
    if collection == "networks":
        document = networks.patch_network(current, body)
    elif collection == "subnetworks":
        document = networks.patch_subnetwork(current, body)
    elif collection == "firewalls":
        document = networks.patch_firewall(world, call, current, body)
    else:
        document = current | body
    return _change(world, call, path, document, call.route.verb)


def _replaced(world: World, call: Call, collection: str) -> Operation:  # noqa: ARG001  the form of a change
    """PUT of a firewall rule: what the body leaves out goes back to its default."""
    current = idle(world, call.path)
    kept = {key: current[key] for key in ("id", "creationTimestamp")}
    document = networks.firewall(world, call, call.path, {"name": current["name"]} | (call.body or {})) | kept
    return _change(world, call, call.path, document, "update")


def _private_access(world: World, call: Call, collection: str) -> Operation:  # noqa: ARG001  the form of a change
    path = call.path.rpartition("/")[0]
    current = idle(world, path)
    wanted = (call.body or {}).get("privateIpGoogleAccess", False)
    document = networks.refreshed(current | {"privateIpGoogleAccess": wanted})
    return _change(world, call, path, document, "setPrivateIpGoogleAccess")


def _change(world: World, call: Call, path: str, document: Json, type: str) -> Operation:
    def change() -> None:
        if world.store.get(path) is not None:
            world.store.put(path, document)

    return world.start(call, type=type, target=path, effect=change, seconds=world.durations.update)


_CHANGES: Final[dict[str, Callable[[World, Call, str], Operation]]] = {
    **{f"{collection}.insert": _insert for collection in MAKERS},
    **{f"{collection}.delete": _delete for collection in MAKERS},
    "networks.patch": _patched,
    "subnetworks.patch": _patched,
    "firewalls.patch": _patched,
    "firewalls.update": _replaced,
    "resourcePolicies.patch": _patched,
    "reservations.update": _patched,
    "subnetworks.setPrivateIpGoogleAccess": _private_access,
}


def _read(world: World, call: Call, collection: str, verb: str) -> Json:
    if verb == "get":
        return _shown(world, call.path, found(world, call.path))
    if verb == "list":
        parent = call.path.rpartition("/")[0]
        documents = [_shown(world, path, each) for path, each in world.store.under(parent, collection)]
        return listed(call, documents, collection)
    if verb == "aggregatedList":
        pairs = [(path, _shown(world, path, each)) for path, each in world.store.of(call.project, collection)]
        return aggregated(call, pairs, collection, world.catalog)
    if verb == "getEffectiveFirewalls":
        network = call.path.rpartition("/")[0]
        found(world, network)
        rules = [
            each for _, each in world.store.of(call.project, "firewalls") if each["network"].endswith(f"/{network}")
        ]
        return {"firewalls": rules}
    raise Refusal(404, f"The simulation does not know compute.{call.route.name}.", "notFound")


def _shown(world: World, path: str, document: Json) -> Json:
    """A network names its subnetworks, in the order in which they were made."""
    if document["kind"] != "compute#network":
        return document
    project = path.split("/")[1]
    members = [
        each["selfLink"]
        for _, each in sorted(world.store.of(project, "subnetworks"), key=lambda pair: int(pair[1]["id"]))
        if each["network"].endswith(f"/{path}")
    ]
    return document | ({"subnetworks": members} if members else {})


def _operation(world: World, call: Call, verb: str) -> Json:
    if verb in {"list", "aggregatedList"}:
        everything = world.operations.all("compute", call.project)
        pairs = [(each.path, _document(world, each)) for each in everything]
        if verb == "aggregatedList":
            return aggregated(call, pairs, "operations", world.catalog)
        return listed(call, [each for path, each in pairs if f"/{call.scope}/" in path], "operations")
    operation = named_operation(world, call)
    if operation is None:
        raise not_found("compute", call.path.removesuffix("/wait"))
    return _document(world, operation)


def named_operation(world: World, call: Call) -> Operation | None:
    """The operation that the path names, if it lives there."""
    operation = world.operations.find(call.parameters.get("operation", ""))
    if operation is None or operation.scope != call.scope or operation.project != call.project:
        return None
    return operation

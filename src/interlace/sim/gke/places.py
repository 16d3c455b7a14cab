"""What compute tells about the project and what is offered where: regions, zones, machine types, GPUs, profiles.

Invariant: made from the catalog and the state at each question; nothing is kept.
"""

from __future__ import annotations

from typing import Any

from interlace.sim.gke import capacity, quotas
from interlace.sim.gke.catalog import region_of
from interlace.sim.gke.errors import NUMBER, not_found
from interlace.sim.gke.listing import aggregated, listed
from interlace.sim.gke.routes import Call
from interlace.sim.gke.world import World

Json = dict[str, Any]


def answer(world: World, call: Call) -> Json:
    """The answer to a question that is about no resource of the project's own. Refusal."""
    collection, verb, project = call.route.collection, call.route.verb, call.project
    if collection == "projects":
        return {
            "kind": "compute#project",
            "id": NUMBER,
            "name": project,
            "selfLink": world.link(f"projects/{project}"),
            "quotas": quotas.table(world, project),
        }
    if collection == "reservationBlocks":
        return _blocks(world, call, verb)
    everything = _everything(world, call)
    if verb == "get":
        for path, document in everything:
            if path == call.path:
                return document
        raise not_found("compute", call.path)
    if verb == "aggregatedList":
        return aggregated(call, everything, collection, world.catalog)
    parent = call.path.rpartition("/")[0]
    return listed(call, [each for path, each in everything if path.startswith(f"{parent}/")], collection)


def _blocks(world: World, call: Call, verb: str) -> Json:
    reservation = call.path.partition("/reservationBlocks")[0]
    document = world.store.get(reservation)
    if document is None:
        raise not_found("compute", reservation)
    found = capacity.blocks(world, reservation, document)
    if verb == "list":
        return listed(call, found, "reservationBlocks")
    for each in found:
        if each["name"] == call.parameters["block"]:
            return {"resource": each}
    raise not_found("compute", call.path)


def _everything(world: World, call: Call) -> list[tuple[str, Json]]:
    makers = {
        "regions": _regions,
        "zones": _zones,
        "machineTypes": _machines,
        "acceleratorTypes": _accelerators,
        "networkProfiles": _profiles,
    }
    return makers[call.route.collection](world, f"projects/{call.project}")


def _regions(world: World, home: str) -> list[tuple[str, Json]]:
    found = []
    for index, (name, zones) in enumerate(world.catalog.regions.items()):
        path = f"{home}/regions/{name}"
        document = {
            "kind": "compute#region",
            "id": str(1000 + index * 10),
            "name": name,
            "description": name,
            "status": "UP",
            "selfLink": world.link(path),
            "zones": [world.link(f"{home}/zones/{zone}") for zone in zones],
            "quotas": quotas.table(world, home.partition("/")[2], name),
        }
        found.append((path, document))
    return found


def _zones(world: World, home: str) -> list[tuple[str, Json]]:
    return [
        (
            f"{home}/zones/{name}",
            {
                "kind": "compute#zone",
                "id": str(2000 + index),
                "name": name,
                "description": name,
                "status": "UP",
                "region": world.link(f"{home}/regions/{region_of(name)}"),
                "selfLink": world.link(f"{home}/zones/{name}"),
            },
        )
        for index, name in enumerate(world.catalog.zones)
    ]


def _machines(world: World, home: str) -> list[tuple[str, Json]]:
    found = []
    for index, (name, kind) in enumerate(world.catalog.machine_types.items()):
        for zone in kind.zones or world.catalog.zones:
            path = f"{home}/zones/{zone}/machineTypes/{name}"
            document: Json = {
                "kind": "compute#machineType",
                "id": str(3000 + index),
                "name": name,
                "description": f"{kind.cpus} vCPUs, {kind.memory_mb // 1024} GB RAM",
                "guestCpus": kind.cpus,
                "memoryMb": kind.memory_mb,
                "isSharedCpu": kind.shared,
                "zone": zone,
                "selfLink": world.link(path),
            }
            if kind.gpus:
                document["accelerators"] = [{"guestAcceleratorType": kind.gpu, "guestAcceleratorCount": kind.gpus}]
            found.append((path, document))
    return found


def _accelerators(world: World, home: str) -> list[tuple[str, Json]]:
    found = []
    for index, (name, kind) in enumerate(world.catalog.accelerators.items()):
        zones = {zone for each in world.catalog.machine_types.values() if each.gpu == name for zone in each.zones}
        for zone in sorted(zones):
            path = f"{home}/zones/{zone}/acceleratorTypes/{name}"
            document = {
                "kind": "compute#acceleratorType",
                "id": str(10000 + index),
                "name": name,
                "description": kind.description,
                "zone": world.link(f"{home}/zones/{zone}"),
                "maximumCardsPerInstance": 16,
                "selfLink": world.link(path),
            }
            found.append((path, document))
    return found


def _profiles(world: World, home: str) -> list[tuple[str, Json]]:
    found = []
    for index, zone in enumerate(world.catalog.rdma_profile_zones):
        path = f"{home}/global/networkProfiles/{zone}-vpc-roce"
        document = {
            "kind": "compute#networkProfile",
            "id": str(4000 + index),
            "name": f"{zone}-vpc-roce",
            "description": "RoCE in one zone",
            "location": {"name": zone, "scope": "ZONE"},
            "selfLink": world.link(path),
        }
        found.append((path, document))
    return found

"""Placement policies and reservations, and which of a reservation's machines are taken.

Invariant: as in ``networks``: pure, refused before an operation exists.
"""

from __future__ import annotations

from typing import Any

from interlace.sim.gke.errors import invalid
from interlace.sim.gke.routes import Call
from interlace.sim.gke.world import World

Json = dict[str, Any]
_BLOCK = 16
"""Machines in a block of a simulated reservation."""


def resource_policy(world: World, call: Call, path: str, body: Json) -> Json:
    """A new resource policy, such as a placement."""
    body = {key: value for key, value in body.items() if key != "region"}
    kinds = [key for key in body if key.endswith("Policy")]
    if len(kinds) != 1:
        raise invalid("resource", "", "Exactly one kind of policy is required.")
    return body | {
        "kind": "compute#resourcePolicy",
        "id": world.store.next_id(),
        "creationTimestamp": world.operations.compute_time(world.clock()),
        "region": world.link(f"projects/{call.project}/{call.scope}"),
        "selfLink": world.link(path),
        "status": "READY",
    }


def reservation(world: World, call: Call, path: str, body: Json) -> Json:
    """A new reservation; all that it asks for is assured."""
    world.zone_of(call.place)
    specific = body.get("specificReservation") or {}
    properties = dict(specific.get("instanceProperties") or {})
    machine = properties.get("machineType", "")
    count = str(specific.get("count", ""))
    if not count.isdigit() or int(count) < 1:
        raise invalid("resource.specificReservation.count", count, "Must be a positive number.")
    if not world.catalog.offered(machine, call.place):
        raise invalid(
            "resource.specificReservation.instanceProperties.machineType",
            machine,
            f"Machine type with name '{machine}' does not exist in zone '{call.place}'.",
        )
    kind = world.catalog.machine_types[machine]
    if kind.gpus and not properties.get("guestAccelerators"):
        properties["guestAccelerators"] = [{"acceleratorType": kind.gpu, "acceleratorCount": kind.gpus}]
    if kind.local_ssds and not properties.get("localSsds"):
        properties["localSsds"] = [{"diskSizeGb": "375", "interface": "NVME"}] * kind.local_ssds
    return body | {
        "kind": "compute#reservation",
        "id": world.store.next_id(),
        "creationTimestamp": world.operations.compute_time(world.clock()),
        "zone": world.link(f"projects/{call.project}/{call.scope}"),
        "selfLink": world.link(path),
        "status": "READY",
        "specificReservationRequired": body.get("specificReservationRequired", False),
        "specificReservation": {
            "count": count,
            "assuredCount": count,
            "inUseCount": "0",
            "instanceProperties": properties,
        },
        "shareSettings": body.get("shareSettings", {"shareType": "LOCAL"}),
    }


def free(document: Json) -> int:
    """Machines of a reservation that nobody uses."""
    specific = document["specificReservation"]
    return int(specific["assuredCount"]) - int(specific["inUseCount"])


def take(document: Json, machines: int) -> None:
    """Note that ``machines`` more are used (fewer, when negative)."""
    specific = document["specificReservation"]
    document["specificReservation"] = specific | {"inUseCount": str(int(specific["inUseCount"]) + machines)}


def blocks(world: World, path: str, document: Json) -> list[Json]:
    """The blocks of a dense reservation: 16 machines each, used in order."""
    if document.get("deploymentType") != "DENSE":
        return []
    specific = document["specificReservation"]
    whole, used = int(specific["count"]), int(specific["inUseCount"])
    found = []
    for index, start in enumerate(range(0, whole, _BLOCK)):
        count = min(_BLOCK, whole - start)
        name = f"{path.rpartition('/')[2]}-block-{index + 1:04}"
        found.append(
            {
                "kind": "compute#reservationBlock",
                "id": str(int(document["id"]) * 100 + index),
                "creationTimestamp": document["creationTimestamp"],
                "name": name,
                "zone": document["zone"],
                "selfLink": world.link(f"{path}/reservationBlocks/{name}"),
                "status": "READY",
                "count": count,
                "inUseCount": min(count, max(0, used - start)),
            }
        )
    return found

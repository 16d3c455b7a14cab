"""What is there: the collections in which a cluster's resources lie, each listed once, and what is at work on them.

Invariant: only reads. What is returned is what the API said, whole, so that whoever compares decides what matters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from interlace.gke.bodies.requests import QUERY, listing, read
from interlace.gke.client import Client
from interlace.gke.failures import ApiError
from interlace.gke.operations import Operation, read_operation
from interlace.gke.picture import Picture, Scope
from interlace.gke.places import cluster_of
from interlace.gke.request import Request
from interlace.gke.resource import Key


async def observe(client: Client, scope: Scope) -> Picture:
    """List everything, all at once. Raises the errors of a client."""
    samples = (
        Key("network", "global", "-"),
        Key("subnetwork", scope.region, "-"),
        Key("firewall", "global", "-"),
        Key("resourcePolicy", scope.region, "-"),
    )
    async with asyncio.TaskGroup() as group:
        lists = [group.create_task(_collection(client, scope, key)) for key in samples]
        cluster = group.create_task(_cluster(client, scope))
        working = [group.create_task(_working(client, each, service=service)) for service, each in _operations(scope)]
    bodies: dict[Key, Mapping[str, Any]] = {}
    for each in (*lists, cluster):
        bodies.update(each.result())
    return Picture(
        scope=scope,
        bodies=bodies,
        working={key: operation for each in working for key, operation in each.result().items()},
    )


async def observe_one(client: Client, scope: Scope, key: Key) -> Mapping[str, Any] | None:
    """One resource as it is now; None if it does not exist. Raises the errors of a client."""
    try:
        found: Mapping[str, Any] = await client.ask(
            read(key, project=scope.project_of(key), version=scope.version_of(key))
        )
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    return found


async def working_on(client: Client, scope: Scope, key: Key) -> Operation | None:
    """The operation that is under way for a resource. Raises the errors of a client."""
    for service, request in _operations(scope):
        if service == ("container" if cluster_of(key) else "compute"):
            found = (await _working(client, request, service=service)).get(key)
            if found is not None:
                return found
    return None


async def _collection(client: Client, scope: Scope, sample: Key) -> dict[Key, Mapping[str, Any]]:
    request = listing(sample, project=scope.project_of(sample), version=scope.version_of(sample))
    try:
        items = await client.ask_all(request)
    except ApiError as error:
        if error.status == 403 and not scope.must_read(sample.kind):
            return {}
        raise
    return {Key(sample.kind, sample.place, str(item["name"])): item for item in items}


async def _cluster(client: Client, scope: Scope) -> dict[Key, Mapping[str, Any]]:
    key = Key("cluster", scope.location, scope.cluster)
    body = await observe_one(client, scope, key)
    if body is None:
        return {}
    place = f"{scope.location}/{scope.cluster}"
    return {key: body, **{Key("nodePool", place, pool["name"]): pool for pool in body.get("nodePools") or ()}}


def _operations(scope: Scope) -> list[tuple[str, Request]]:
    """Lists of operations, with the service that they belong to."""
    pending = {**QUERY, "filter": "status!=DONE"}
    places = []
    if scope.project == scope.network_project or scope.must_read("network") or scope.must_read("subnetwork"):
        places += [(scope.network_project, "global"), (scope.network_project, f"regions/{scope.region}")]
    if scope.project != scope.network_project:
        places.append((scope.project, f"regions/{scope.region}"))
    found = [
        (
            "compute",
            Request(
                service="compute",
                method="GET",
                path=f"/compute/v1/projects/{project}/{place}/operations",
                query=pending,
            ),
        )
        for project, place in places
    ]
    path = f"/v1/projects/{scope.project}/locations/{scope.location}/operations"
    return [*found, ("container", Request(service="container", method="GET", path=path, query=dict(QUERY)))]


async def _working(client: Client, request: Request, *, service: str) -> dict[Key, Operation]:
    if service == "compute":
        items = await client.ask_all(request)
    else:
        items = (await client.ask(request) or {}).get("operations") or []
    found: dict[Key, Operation] = {}
    for item in items:
        operation = read_operation(item, service=service)
        if operation is not None and not operation.done and operation.target is not None:
            found[operation.target] = operation
    return found

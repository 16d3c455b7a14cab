"""What one tenant can put into a claim must not keep anybody from reading the others.

Opaque parameters are kept as the bytes that came, so JSON that the server accepts reaches every watcher: text with
half a surrogate pair, values nested thousands deep. On the real server alone: the embedded one refuses both.
Nulls in lists of a claim are empty items, on both servers.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlace.api.resource import ResourceClaim
from interlace.kube.client import Client
from interlace.kube.informer import Informer
from interlace.sim.plane import Plane
from tests.contract.space import ADMIN, a_space
from tests.contract.test_claims import RESOURCE, claim_text
from tests.waiting import eventually

ODD = {
    "half a surrogate pair": r'{"apiVersion":"v1","kind":"K","x":"\ud800"}',
    "thousands of levels": '{"apiVersion":"v1","kind":"K","x":' + "[" * 3000 + "]" * 3000 + "}",
}


@pytest.mark.parametrize("parameters", ODD.values(), ids=ODD)
async def test_a_claim_with_odd_parameters_hides_no_other_claim(real_plane: Plane, parameters: str) -> None:
    config = real_plane.credentials(ADMIN[0], groups=ADMIN[1])
    async with (
        a_space(real_plane) as space,
        Client(config, user_agent="odd", qps=0) as client,
        asyncio.TaskGroup() as group,
    ):
        path = space.path("resourceclaims", api=RESOURCE)
        await client.request("POST", path, body=claim_text("before", parameters))
        informer = Informer(client, ResourceClaim, namespace=space.name)
        running = group.create_task(informer.run())
        await eventually(lambda: informer.has_synced, within=10, what="the first list")
        await client.request("POST", path, body=claim_text("during", parameters))
        await client.request("POST", path, body=claim_text("plain", "{}"))
        await eventually(lambda: informer.get("plain", space.name), within=10, what="the claim behind the odd ones")
        assert {claim.metadata.name for claim in informer.items()} == {"before", "during", "plain"}
        assert (await client.get(ResourceClaim, "before", namespace=space.name)).metadata.name == "before"
        assert len((await client.list(ResourceClaim, namespace=space.name)).items) == 3
        running.cancel()


EXACTLY = {"deviceClassName": "class.example.com"}
REQUEST = {"name": "r", "exactly": EXACTLY}
OPAQUE = {"driver": "d.example.com", "parameters": {}}
HOLES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a request": (
        {"requests": [REQUEST, None]},
        ["spec.devices.requests[1].name", "spec.devices.requests[1]"],
    ),
    "a configuration": ({"requests": [REQUEST], "config": [None]}, ["spec.devices.config[0].opaque"]),
    "a name in a configuration": (
        {"requests": [REQUEST], "config": [{"requests": [None], "opaque": OPAQUE}]},
        ["spec.devices.config[0].requests[0]", "spec.devices.config[0].requests[0]"],
    ),
    "a constraint": ({"requests": [REQUEST], "constraints": [None]}, ["spec.devices.constraints[0]"]),
    "an alternative": (
        {"requests": [{"name": "r", "firstAvailable": [None]}]},
        [
            "spec.devices.requests[0].firstAvailable[0].name",
            "spec.devices.requests[0].firstAvailable[0].deviceClassName",
        ],
    ),
    "a selector": (
        {"requests": [{"name": "r", "exactly": EXACTLY | {"selectors": [None]}}]},
        ["spec.devices.requests[0].exactly.selectors[0].cel"],
    ),
}


@pytest.mark.parametrize("hole", HOLES)
async def test_a_null_in_a_list_is_an_empty_item(plane: Plane, hole: str) -> None:
    devices, fields = HOLES[hole]
    async with a_space(plane) as space:
        body = {"metadata": {"name": "holes"}, "spec": {"devices": devices}}
        reply = await space.wire("POST", space.path("resourceclaims", api=RESOURCE), body)
        assert reply.code == 422, reply
        assert [cause["field"] for cause in reply.body["details"]["causes"]] == fields


async def test_an_empty_item_gets_its_defaults(plane: Plane) -> None:
    devices = {"requests": [{"name": "r", "exactly": EXACTLY | {"tolerations": [None]}}]}
    async with a_space(plane) as space:
        body = {"metadata": {"name": "holes"}, "spec": {"devices": devices}}
        reply = await space.wire("POST", space.path("resourceclaims", api=RESOURCE), body)
        assert reply.code == 201, reply
        assert reply.body["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] == [{"operator": "Equal"}]

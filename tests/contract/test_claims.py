"""ResourceClaims: the byte comparison of opaque parameters and who may write which status.

Every test runs on both servers.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from interlace.kube.config import Config
from tests.contract.space import ADMIN, Space, pod
from tests.contract.wire import APPLY, JSON_PATCH, MERGE, STRATEGIC, Json, Reply, Wire

RESOURCE = "/apis/resource.k8s.io/v1"
DRIVER = "one.example.com"

SORTED = '{"apiVersion":"v1","kind":"K","x":{"a":1,"b":2}}'
UNSORTED = '{"kind":"K","apiVersion":"v1","x":{"b":2,"a":1}}'
SPACED = '{"apiVersion": "v1", "kind": "K", "x": {"a":1, "b":2}}'


def claim_text(name: str, parameters: str, *, meta: str = "", status: str = "") -> bytes:
    """A claim as the very bytes that are sent."""
    opaque = f'{{"driver":"{DRIVER}","parameters":{parameters}}}'
    spec = (
        '{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"class.example.com"}}],'
        f'"config":[{{"requests":["r"],"opaque":{opaque}}}]}}}}'
    )
    return (
        f'{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"{name}"{meta}}},'
        f'"spec":{spec}{status}}}'
    ).encode()


def allocation(parameters: str, node: str) -> str:
    """The status that a scheduler writes."""
    terms = f'[{{"matchFields":[{{"key":"metadata.name","operator":"In","values":["{node}"]}}]}}]'
    opaque = f'{{"driver":"{DRIVER}","parameters":{parameters}}}'
    return (
        ',"status":{"allocation":{"devices":{"results":[{"request":"r",'
        f'"driver":"{DRIVER}","pool":"{node}","device":"channel-0"}}],'
        f'"config":[{{"source":"FromClaim","requests":["r"],"opaque":{opaque}}}]}},'
        f'"nodeSelector":{{"nodeSelectorTerms":{terms}}}}}}}'
    )


def device(node: str, *, ready: str = "True") -> Json:
    """What a driver reports for the allocated device."""
    condition = {
        "type": "Ready",
        "status": ready,
        "reason": "Prepared",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {"driver": DRIVER, "pool": node, "device": "channel-0", "conditions": [condition]}


async def put_status(space: Space, name: str, parameters: str, node: str, **query: str) -> Reply:
    """Allocate with PUT, parameters byte for byte."""
    path = space.path("resourceclaims", api=RESOURCE) + f"/{name}"
    meta = (await space.wire("GET", path)).body["metadata"]
    extra = f',"namespace":"{space.name}","uid":"{meta["uid"]}","resourceVersion":"{meta["resourceVersion"]}"'
    body = claim_text(name, parameters, meta=extra, status=allocation(parameters, node))
    return await space.wire("PUT", path + "/status", body, **query)


async def allocated(space: Space, parameters: str, node: str = "n1", name: str = "c") -> str:
    """A claim with these parameters, allocated on a node; its path."""
    path = space.path("resourceclaims", api=RESOURCE)
    made = await space.wire("POST", path, claim_text(name, parameters))
    assert made.code == 201, made
    bound = await put_status(space, name, parameters, node)
    assert bound.code == 200, bound
    return f"{path}/{name}"


async def report(wire: Wire, path: str, how: str, entry: Json) -> Reply:
    """Write a device status in one of the four ways of patching."""
    status = {"devices": [entry]}
    if how == "apply":
        body: Json = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "status": status}
        return await wire("PATCH", path + "/status", body, media=APPLY, fieldManager=DRIVER, force="true")
    if how == "json":
        operation = {"op": "add", "path": "/status/devices", "value": [entry]}
        return await wire("PATCH", path + "/status", [operation], media=JSON_PATCH)
    media = MERGE if how == "merge" else STRATEGIC
    return await wire("PATCH", path + "/status", {"status": status}, media=media)


@pytest.mark.parametrize(
    ("parameters", "how", "code"),
    [
        (SORTED, "apply", 200),
        (SORTED, "merge", 200),
        (SORTED, "json", 200),
        (SORTED, "strategic", 200),
        (UNSORTED, "apply", 422),
        (UNSORTED, "merge", 200),
        (UNSORTED, "json", 200),
        (UNSORTED, "strategic", 422),
        (SPACED, "apply", 422),
        (SPACED, "merge", 422),
        (SPACED, "json", 422),
        (SPACED, "strategic", 422),
    ],
)
async def test_a_patch_passes_if_the_parameters_survive_it_byte_by_byte(
    space: Space, parameters: str, how: str, code: int
) -> None:
    path = await allocated(space, parameters)
    reply = await report(space.wire, path, how, device("n1"))
    assert reply.code == code, reply
    if code == 422:
        assert [cause["field"] for cause in reply.body["details"]["causes"]] == ["status.allocation"]
        assert reply.message.endswith("field is immutable")


@pytest.mark.parametrize("stored", [SORTED, UNSORTED, SPACED])
@pytest.mark.parametrize("sent", [SORTED, UNSORTED, SPACED])
async def test_a_put_passes_with_the_same_bytes_alone(space: Space, stored: str, sent: str) -> None:
    await allocated(space, stored)
    reply = await put_status(space, "c", sent, "n1", dryRun="All")
    assert reply.code == (200 if stored == sent else 422), reply


async def test_an_allocation_can_be_taken_back_and_takes_device_status_along(space: Space) -> None:
    path = await allocated(space, SORTED)
    assert (await report(space.wire, path, "apply", device("n1"))).code == 200
    freed = await space.wire("PATCH", path + "/status", {"status": {"allocation": None}}, media=MERGE)
    assert freed.code == 200
    assert not freed.body["status"].get("devices")


async def test_a_device_that_is_not_allocated_has_no_status(space: Space) -> None:
    path = await allocated(space, SORTED)
    reply = await report(space.wire, path, "apply", {**device("n1"), "device": "channel-7"})
    assert (reply.code, "must be an allocated device in the claim" in reply.message) == (422, True)


async def test_device_status_is_owned_by_driver_pool_and_device(space: Space) -> None:
    path = await allocated(space, SORTED)
    reply = await report(space.wire, path, "apply", device("n1"))
    mine = next(e for e in reply.body["metadata"]["managedFields"] if e["manager"] == DRIVER)
    assert list(mine["fieldsV1"]["f:status"]["f:devices"]) == [
        f'k:{{"device":"channel-0","driver":"{DRIVER}","pool":"n1"}}'
    ]
    assert mine["subresource"] == "status"


async def test_specs_of_claims_and_templates_do_not_change(space: Space) -> None:
    path = space.path("resourceclaims", api=RESOURCE)
    await space.wire("POST", path, claim_text("c", SORTED))
    reply = await space.wire("PATCH", path + "/c", {"spec": {"devices": {"requests": []}}}, media=MERGE)
    assert (reply.code, reply.message.endswith("field is immutable")) == (422, True)
    templates = space.path("resourceclaimtemplates", api=RESOURCE)
    spec = json.loads(claim_text("c", SORTED))["spec"]
    await space.wire("POST", templates, {"metadata": {"name": "t"}, "spec": {"spec": spec}})
    body = {"spec": {"metadata": {"labels": {"a": "b"}}}}
    reply = await space.wire("PATCH", templates + "/t", body, media=MERGE)
    assert (reply.code, reply.message.endswith("field is immutable")) == (422, True)


@asynccontextmanager
async def a_driver_on(space: Space, node: str, *, rules: list[Json]) -> AsyncIterator[Wire]:
    """A client with the token of a pod on a node, and these rights in the namespace."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    role = {"metadata": {"name": "driver"}, "rules": rules}
    assert (await space.wire("POST", space.path("roles", api=rbac), role)).code == 201
    binding = {
        "metadata": {"name": "driver"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "driver"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": space.name}],
    }
    assert (await space.wire("POST", space.path("rolebindings", api=rbac), binding)).code == 201
    assert (await space.wire("POST", "/api/v1/nodes", {"metadata": {"name": node}})).code == 201
    made = await space.wire("POST", space.path("pods"), pod("driver", nodeName=node))
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": made.body["metadata"]["uid"]}
    path = space.path("serviceaccounts") + "/default/token"
    token = await space.wire("POST", path, {"spec": {"boundObjectRef": bound}})
    assert token.code == 201, token
    user, groups = ADMIN
    ca = space.plane.credentials(user, groups=groups).ca
    async with Wire(Config(server=space.plane.url, ca=ca, token=token.body["status"]["token"])) as wire:
        yield wire


STATUS_RULE: Json = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["patch"]}
DRIVER_RULE: Json = {
    "apiGroups": ["resource.k8s.io"],
    "resources": ["resourceclaims/driver"],
    "resourceNames": [DRIVER],
    "verbs": ["associated-node:patch"],
}


async def test_the_right_to_patch_status_alone_lets_no_driver_report(space: Space) -> None:
    node = f"{space.name}-a"
    path = await allocated(space, SORTED, node)
    async with a_driver_on(space, node, rules=[STATUS_RULE]) as wire:
        reply = await report(wire, path, "apply", device(node))
    assert (reply.code, reply.reason) == (422, "Invalid"), reply


async def test_a_driver_reports_for_its_own_node_and_for_no_other(space: Space) -> None:
    node, other = f"{space.name}-a", f"{space.name}-b"
    mine = await allocated(space, SORTED, node, "mine")
    theirs = await allocated(space, SORTED, other, "theirs")
    async with a_driver_on(space, node, rules=[STATUS_RULE, DRIVER_RULE]) as wire:
        assert (await report(wire, mine, "apply", device(node))).code == 200
        refused = await report(wire, theirs, "apply", device(other))
        assert (refused.code, refused.reason) == (422, "Invalid"), refused
        reserving = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
        refused = await wire("PATCH", mine + "/status", reserving, media=MERGE)
        assert (refused.code, refused.reason) == (422, "Invalid"), refused


async def test_a_device_class_or_claim_that_makes_no_sense_is_refused(space: Space) -> None:
    expression = {"cel": {"expression": "device.driver == "}}
    reply = await space.wire(
        "POST",
        f"{RESOURCE}/deviceclasses",
        {"metadata": {"name": f"{space.name}.example.com"}, "spec": {"selectors": [expression]}},
    )
    assert reply.code == 422
    assert reply.body["details"]["causes"][0]["field"] == "spec.selectors[0].cel.expression"
    reply = await space.wire(
        "POST",
        space.path("resourceclaims", api=RESOURCE),
        {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r"}]}}},
    )
    assert (reply.code, reply.reason) == (422, "Invalid")

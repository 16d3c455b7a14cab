"""Our own kinds as a server serves them: schema, defaults, rules, status, columns. Every test runs on both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.sim.plane import Plane
from tests.contract.space import CRDS, DOMAINS, Space, a_space, domain, our_kinds
from tests.contract.wire import APPLY, JSON_PATCH, MERGE, STRATEGIC, Json, admin
from tests.waiting import eventually

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(plane: Plane) -> Plane:
    async with admin(plane) as wire:
        await our_kinds(wire)
    return plane


@pytest_asyncio.fixture(loop_scope="module")
async def space(served: Plane) -> AsyncIterator[Space]:
    async with a_space(served) as made:
        yield made


def row(name: str, index: int) -> Json:
    """One row of a clique."""
    return {"nodeName": name, "ipAddress": "10.0.0.1", "cliqueID": "c.1", "index": index}


async def test_defaults_are_filled_in_and_status_is_left_out(space: Space) -> None:
    made = await space.wire(
        "POST", space.path("computedomains", api=DOMAINS), {**domain("d"), "status": {"status": "Ready"}}
    )
    assert made.code == 201
    assert made.body["spec"]["numNodes"] == 0
    assert made.body["spec"]["channel"]["allocationMode"] == "Single"
    assert "status" not in made.body
    assert made.body["metadata"]["generation"] == 1


@pytest.mark.parametrize("item", [True, 7, "x", [[]]])
async def test_a_row_that_is_no_object_is_refused(space: Space, item: Any) -> None:
    body = {"metadata": {"name": "c"}, "daemons": [row("n", 0), item]}
    body |= {"apiVersion": domain("d")["apiVersion"], "kind": "ComputeDomainClique"}
    reply = await space.wire("POST", space.path("computedomaincliques", api=DOMAINS), body)
    assert (reply.code, reply.reason) == (422, "Invalid"), reply.message
    assert "daemons[1]" in reply.message


async def test_the_spec_cannot_change(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    await space.wire("POST", path, domain("d"))
    reply = await space.wire("PATCH", path + "/d", {"spec": {"numNodes": 3}}, media=MERGE)
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert reply.body["details"]["causes"][0]["field"] == "spec"
    assert "immutable" in reply.message


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"numNodes": -1}, "spec.numNodes"),
        ({"numNodes": "many"}, "spec.numNodes"),
        ({"channel": {"resourceClaimTemplate": {"name": 5}}}, "spec.channel.resourceClaimTemplate.name"),
        (
            {"channel": {"allocationMode": "Some", "resourceClaimTemplate": {"name": "x"}}},
            "spec.channel.allocationMode",
        ),
        ({"channel": {}}, "spec.channel.resourceClaimTemplate"),
    ],
)
async def test_a_bad_spec_is_refused_and_the_field_named(space: Space, spec: Json, field: str) -> None:
    reply = await space.wire("POST", space.path("computedomains", api=DOMAINS), domain("d", **spec))
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert field in [cause["field"] for cause in reply.body["details"]["causes"]]


async def test_a_domain_needs_a_spec(space: Space) -> None:
    body = {key: value for key, value in domain("d").items() if key != "spec"}
    reply = await space.wire("POST", space.path("computedomains", api=DOMAINS), body)
    assert (reply.code, "spec: Required value" in reply.message) == (422, True)


async def test_unknown_fields_are_pruned_with_a_warning_or_refused_if_asked(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    lax = await space.wire("POST", path, domain("lax", colour="red"))
    assert (lax.code, "colour" in lax.body["spec"]) == (201, False)
    assert lax.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'
    strict = await space.wire("POST", path, domain("strict", colour="red"), fieldValidation="Strict")
    assert strict.code == 400
    assert strict.message == (
        'ComputeDomain in version "v1beta1" cannot be handled as a ComputeDomain: '
        'strict decoding error: unknown field "spec.colour"'
    )


async def test_another_kind_or_version_in_the_body_is_refused(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    assert (await space.wire("POST", path, {**domain("d"), "kind": "Other"})).code in (400, 422)
    assert (await space.wire("POST", path, {**domain("d"), "apiVersion": "resource.nvidia.com/v7"})).code == 400
    assert (await space.wire("POST", path, {"metadata": {"name": "d"}, "spec": domain("d")["spec"]})).code == 400


async def test_custom_objects_are_not_replaced_without_a_version(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    await space.wire("POST", path, domain("d"))
    reply = await space.wire("PUT", path + "/d", domain("d"))
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in reply.message


async def test_status_and_spec_are_apart(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    await space.wire("POST", path, domain("d"))
    spec = await space.wire("PATCH", path + "/d", {"status": {"status": "Ready"}}, media=MERGE)
    assert "status" not in spec.body
    both = {"metadata": {"labels": {"x": "y"}}, "spec": {"numNodes": 9}, "status": {"status": "Ready"}}
    status = await space.wire("PATCH", path + "/d/status", both, media=MERGE)
    assert status.body["status"]["status"] == "Ready"
    assert status.body["spec"]["numNodes"] == 0
    assert "labels" not in status.body["metadata"]
    assert status.body["metadata"]["generation"] == 1


async def test_a_status_out_of_the_enumeration_is_refused(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    await space.wire("POST", path, domain("d"))
    reply = await space.wire("PATCH", path + "/d/status", {"status": {"status": "Perhaps"}}, media=MERGE)
    assert (reply.code, reply.reason) == (422, "Invalid")


async def test_nodes_in_a_status_are_owned_by_name(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    await space.wire("POST", path, domain("d"))

    def body(name: str) -> Json:
        node = {"name": name, "ipAddress": "10.0.0.1", "cliqueID": "c.1", "index": 0, "status": "Ready"}
        return {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "status": {"nodes": [node]}}

    async def apply(name: str, manager: str) -> list[str]:
        reply = await space.wire("PATCH", path + "/d/status", body(name), media=APPLY, fieldManager=manager)
        assert reply.code == 200, reply
        return [node["name"] for node in reply.body["status"]["nodes"]]

    assert await apply("n1", "one") == ["n1"]
    assert await apply("n2", "two") == ["n1", "n2"]
    assert await apply("n3", "one") == ["n2", "n3"]


async def test_rows_of_a_clique_are_keyed_by_node(space: Space) -> None:
    path = space.path("computedomaincliques", api=DOMAINS)
    body = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainClique",
        "metadata": {"name": "u.c.1"},
        "daemons": [row("n1", 0)],
    }
    made = await space.wire("POST", path, body)
    assert (made.code, made.body["daemons"][0]["status"]) == (201, "NotReady")
    more = await space.wire(
        "PATCH", path + "/u.c.1", {**body, "daemons": [row("n2", 1)]}, media=APPLY, fieldManager="m"
    )
    assert [item["nodeName"] for item in more.body["daemons"]] == ["n1", "n2"]
    assert more.body["metadata"]["generation"] == 2, "without a status subresource every change counts"
    twice = await space.wire("PATCH", path + "/u.c.1", {"daemons": [row("n1", 0), row("n1", 1)]}, media=MERGE)
    assert (twice.code, "Duplicate value" in twice.message) == (422, True)


async def test_strategic_merge_is_for_built_in_kinds(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    await space.wire("POST", path, domain("d"))
    reply = await space.wire("PATCH", path + "/d", {"metadata": {"labels": {"a": "b"}}}, media=STRATEGIC)
    assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")


async def test_apply_with_an_unknown_field_is_refused(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    reply = await space.wire("PATCH", path + "/d", domain("d", colour="red"), media=APPLY, fieldManager="m")
    assert (reply.code, ".spec.colour: field not declared in schema" in reply.message) == (500, True)


async def test_a_domain_with_a_finalizer_lives_until_it_is_taken_off(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    body = domain("d")
    body["metadata"]["finalizers"] = ["resource.nvidia.com/computeDomain"]
    await space.wire("POST", path, body)
    marked = await space.wire("DELETE", path + "/d")
    assert marked.body["metadata"]["generation"] == 2
    patch = [{"op": "remove", "path": "/metadata/finalizers/0"}]
    assert (await space.wire("PATCH", path + "/d", patch, media=JSON_PATCH)).code == 200
    assert (await space.wire("GET", path + "/d")).code == 404


async def test_columns_are_those_of_the_definition(space: Space) -> None:
    path = space.path("computedomains", api=DOMAINS)
    await space.wire("POST", path, domain("d"))
    await space.wire("PATCH", path + "/d/status", {"status": {"status": "Ready"}}, media=MERGE)
    shown = (await space.wire("GET", path, accept=TABLE)).body
    cells = dict(zip([c["name"] for c in shown["columnDefinitions"]], shown["rows"][0]["cells"], strict=True))
    assert (cells["Name"], cells["Status"]) == ("d", "Ready")
    assert cells["Age"].endswith("s")


def other_definition(group: str) -> Json:
    """A definition of nothing in particular."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Json = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "singular": "thing", "shortNames": ["th"]},
            "versions": [version],
        },
    }


async def test_a_definition_is_served_established_listed_and_gone_with_its_objects(space: Space) -> None:
    group = f"{space.name}.example.com"
    assert (await space.wire("POST", CRDS, other_definition(group))).code == 201
    things = space.path("things", api=f"/apis/{group}/v1")

    async def established() -> bool:
        found = (await space.wire("GET", f"{CRDS}/things.{group}")).body
        return any(
            c["type"] == "Established" and c["status"] == "True" for c in found["status"].get("conditions") or ()
        )

    await eventually(established, within=10)

    async def served() -> bool:
        return (await space.wire("GET", things)).code == 200

    await eventually(served, within=10)
    body = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t"}, "anything": {"goes": [1]}}
    made = await space.wire("POST", things, body)
    assert (made.code, made.body["anything"]) == (201, {"goes": [1]})

    async def discovered() -> bool:
        reply = await space.wire("GET", f"/apis/{group}/v1")
        return reply.code == 200 and [r["name"] for r in reply.body["resources"]] == ["things"]

    await eventually(discovered, within=10)
    assert (await space.wire("DELETE", f"{CRDS}/things.{group}")).code == 200

    async def gone() -> bool:
        return (await space.wire("GET", f"{CRDS}/things.{group}")).code == 404

    await eventually(gone, within=15)

    async def unserved() -> bool:
        return (await space.wire("GET", things + "/t")).code == 404

    await eventually(unserved, within=10)


async def test_a_definition_under_a_wrong_name_is_refused(space: Space) -> None:
    body: dict[str, Any] = other_definition(f"{space.name}.example.com")
    body["metadata"]["name"] = "wrong.example.com"
    reply = await space.wire("POST", CRDS, body)
    assert (reply.code, "must be spec.names.plural" in reply.message) == (422, True)

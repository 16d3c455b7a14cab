"""Server-side apply and the ownership of fields. Every test runs on both servers."""

from __future__ import annotations

from typing import Any

from tests.contract.space import Space, deployment
from tests.contract.wire import APPLY, MERGE, STRATEGIC, Json, Reply, Wire

APPS = "/apis/apps/v1"


def config(**spec: Any) -> Json:
    """An apply configuration for the deployment ``d``."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


async def apply(wire: Wire, path: str, body: Json, manager: str = "one", **query: str) -> Reply:
    """Apply as ``manager``."""
    return await wire("PATCH", path, body, media=APPLY, fieldManager=manager, **query)


def owned(body: Json, manager: str, subresource: str = "") -> Json:
    """What a manager owns."""
    entries = [
        entry
        for entry in body["metadata"]["managedFields"]
        if entry["manager"] == manager and entry.get("subresource", "") == subresource
    ]
    assert len(entries) == 1, body["metadata"]["managedFields"]
    fields: Json = entries[0]["fieldsV1"]
    return fields


async def test_apply_creates_and_owns_what_it_states(space: Space) -> None:
    path = space.path("configmaps") + "/c"
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "labels": {"x": "y"}},
        "data": {"k": "v"},
    }
    made = await apply(space.wire, path, body)
    assert made.code == 201
    assert owned(made.body, "one") == {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}
    assert made.body["metadata"]["managedFields"][0]["operation"] == "Apply"


async def test_applying_the_same_again_changes_nothing(space: Space) -> None:
    path = space.path("configmaps") + "/c"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}
    first = await apply(space.wire, path, body)
    again = await apply(space.wire, path, body)
    assert (again.code, again.version) == (200, first.version)


async def test_what_an_applier_no_longer_states_goes(space: Space) -> None:
    path = space.path("configmaps") + "/c"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}
    await apply(space.wire, path, body)
    await space.wire("PATCH", path, {"data": {"other": "3"}}, media=MERGE)
    after = await apply(space.wire, path, {**body, "data": {"a": "1"}})
    assert after.body["data"] == {"a": "1", "other": "3"}


async def test_a_field_with_two_owners_stays_until_both_let_go(space: Space) -> None:
    path = space.path("configmaps") + "/c"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    await apply(space.wire, path, body, "one")
    await apply(space.wire, path, body, "two")
    one = await apply(space.wire, path, {**body, "data": {}}, "one")
    assert one.body["data"] == {"a": "1"}
    two = await apply(space.wire, path, {**body, "data": {}}, "two")
    assert not two.body.get("data")


async def test_a_conflict_names_field_and_manager_and_force_takes_it(space: Space) -> None:
    path = space.path("deployments", api=APPS)
    await space.wire("POST", path, deployment("d"), fieldManager="maker")
    refused = await apply(space.wire, path + "/d", config(replicas=3))
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.message == 'Apply failed with 1 conflict: conflict with "maker" using apps/v1: .spec.replicas'
    assert refused.body["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "maker" using apps/v1',
            "field": ".spec.replicas",
        }
    ]
    forced = await apply(space.wire, path + "/d", config(replicas=0, minReadySeconds=1), force="true")
    assert owned(forced.body, "one") == {"f:spec": {"f:minReadySeconds": {}, "f:replicas": {}}}
    taken = await apply(space.wire, path + "/d", config(replicas=2), force="true")
    assert "f:replicas" not in owned(taken.body, "maker")["f:spec"]
    assert "minReadySeconds" not in taken.body["spec"]


async def test_several_conflicts_are_told_by_manager(space: Space) -> None:
    path = space.path("deployments", api=APPS)
    await space.wire("POST", path, deployment("d"), fieldManager="maker")
    body = config(replicas=3, paused=False)
    refused = await apply(space.wire, path + "/d", body)
    assert refused.message == (
        'Apply failed with 2 conflicts: conflicts with "maker" using apps/v1:\n- .spec.paused\n- .spec.replicas'
    )


async def test_items_of_a_keyed_list_have_owners_of_their_own(space: Space) -> None:
    path = space.path("deployments", api=APPS)
    await space.wire("POST", path, deployment("d"), fieldManager="maker")

    def with_container(name: str) -> Json:
        containers = [{"name": name, "image": "a.example/x:1"}]
        return config(template={"spec": {"containers": containers}})

    added = await apply(space.wire, path + "/d", with_container("side"))
    containers = added.body["spec"]["template"]["spec"]["containers"]
    assert [c["name"] for c in containers] == ["main", "side"]
    mine = owned(added.body, "one")["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert mine == {'k:{"name":"side"}': {".": {}, "f:image": {}, "f:name": {}}}
    removed = await apply(space.wire, path + "/d", config())
    assert [c["name"] for c in removed.body["spec"]["template"]["spec"]["containers"]] == ["main"]


async def test_finalizers_are_a_set_and_owners_are_keyed_by_uid(space: Space) -> None:
    owner = await space.config_map("owner")
    path = space.path("configmaps") + "/c"
    uid = owner["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}

    def body(finalizer: str, **meta: Any) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "finalizers": [finalizer], **meta},
        }

    await apply(space.wire, path, body("example.com/a"), "one")
    both = await apply(space.wire, path, body("example.com/b", ownerReferences=[reference]), "two")
    assert both.body["metadata"]["finalizers"] == ["example.com/a", "example.com/b"]
    assert owned(both.body, "two")["f:metadata"] == {
        "f:finalizers": {'v:"example.com/b"': {}},
        "f:ownerReferences": {f'k:{{"uid":"{uid}"}}': {}},
    }
    left = await apply(space.wire, path, {**body("x"), "metadata": {"name": "c"}}, "one")
    assert left.body["metadata"]["finalizers"] == ["example.com/b"]
    await apply(space.wire, path, {**body("x"), "metadata": {"name": "c"}}, "two")


async def test_conditions_of_two_writers_stand_side_by_side(space: Space) -> None:
    path = space.path("poddisruptionbudgets", api="/apis/policy/v1")
    await space.wire("POST", path, {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}})

    def body(kind: str, status: str) -> Json:
        condition = {
            "type": kind,
            "status": status,
            "reason": "R",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b"},
            "status": {"conditions": [condition]},
        }

    await apply(space.wire, path + "/b/status", body("One", "True"), "one")
    await apply(space.wire, path + "/b/status", body("Two", "True"), "two")
    last = await apply(space.wire, path + "/b/status", body("One", "False"), "one")
    found = {c["type"]: c["status"] for c in last.body["status"]["conditions"]}
    assert (found["One"], found["Two"]) == ("False", "True")


async def test_an_update_takes_fields_and_names_its_writer(space: Space) -> None:
    path = space.path("configmaps") + "/c"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}
    await apply(space.wire, path, body)
    patched = await space.wire("PATCH", path, {"data": {"a": "9"}}, media=MERGE, fieldManager="patcher")
    assert owned(patched.body, "one") == {"f:data": {"f:b": {}}}
    assert owned(patched.body, "patcher") == {"f:data": {"f:a": {}}}
    named = await space.wire("PATCH", path, {"data": {"c": "1"}}, media=STRATEGIC)
    assert owned(named.body, "contract") == {"f:data": {"f:c": {}}}, "named after the user agent"


async def test_emptying_managed_fields_forgets_all_owners(space: Space) -> None:
    path = space.path("configmaps") + "/c"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    await apply(space.wire, path, body)
    cleared = await space.wire("PATCH", path, {"metadata": {"managedFields": [{}]}}, media=MERGE)
    assert "managedFields" not in cleared.body["metadata"]
    after = await apply(space.wire, path, {**body, "data": {"a": "2"}}, "two")
    assert (after.code, "before-first-apply" in after.message) == (409, True)


async def test_status_and_spec_have_owners_apart(space: Space) -> None:
    path = space.path("poddisruptionbudgets", api="/apis/policy/v1")
    await space.wire("POST", path, {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}})
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    spec = {**body, "spec": {"minAvailable": 1}, "status": {"desiredHealthy": 5}}
    status = {**body, "spec": {"minAvailable": 7}, "status": {"disruptedPods": {"p": "2026-01-01T00:00:00Z"}}}
    applied = await apply(space.wire, path + "/b", spec)
    assert owned(applied.body, "one") == {"f:spec": {"f:minAvailable": {}}}
    applied = await apply(space.wire, path + "/b/status", status)
    assert applied.body["spec"]["minAvailable"] == 1
    assert set(owned(applied.body, "one", "status")) == {"f:status"}


async def test_a_configuration_that_makes_no_sense_is_refused(space: Space) -> None:
    path = space.path("deployments", api=APPS)
    await space.wire("POST", path, deployment("d"))
    cases: list[tuple[Json, dict[str, str], int, str]] = [
        (config(), {"fieldManager": ""}, 422, "fieldManager: Required value: is required for apply patch"),
        (config(colour="red"), {}, 500, ".spec.colour: field not declared in schema"),
        ({**config(), "apiVersion": "apps/v9"}, {}, 400, "invalid object type: apps/v9, Kind=Deployment"),
        ({**config(), "metadata": {"name": "e"}}, {}, 400, "does not match the name on the URL (d)"),
        ({**config(), "metadata": {"name": "d", "managedFields": []}}, {}, 400, "metadata.managedFields must be nil"),
    ]
    for body, query, code, message in cases:
        reply = await space.wire("PATCH", path + "/d", body, media=APPLY, **{"fieldManager": "one", **query})
        assert reply.code == code, (reply, message)
        assert message in reply.message

"""How objects go: finalizers, grace, preconditions, propagation, eviction. Every test runs on both servers."""

from __future__ import annotations

import pytest

from tests.contract.space import Space, pod
from tests.contract.wire import JSON_PATCH, MERGE, Json

HOLD = "example.com/hold"
UID = "11111111-1111-1111-1111-111111111111"


async def a_bound_pod(space: Space, name: str = "p", **meta: object) -> Json:
    """A pod on a node without a kubelet."""
    body = pod(name)
    body["metadata"].update(meta)
    body["spec"]["nodeName"] = f"{space.name}-node"
    made = await space.wire("POST", space.path("pods"), body)
    assert made.code == 201, made
    found: Json = made.body
    return found


async def test_an_object_without_finalizers_goes_at_once(space: Space) -> None:
    made = await space.config_map()
    gone = await space.wire("DELETE", space.path("configmaps") + "/one")
    assert (gone.body["kind"], gone.body["status"]) == ("Status", "Success")
    assert gone.body["details"] == {"name": "one", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (await space.wire("DELETE", space.path("configmaps") + "/one")).code == 404


async def test_an_object_with_a_finalizer_waits_for_it(space: Space) -> None:
    await space.config_map(metadata={"finalizers": [HOLD]})
    path = space.path("configmaps") + "/one"
    marked = await space.wire("DELETE", path)
    assert marked.code == 200
    assert marked.body["metadata"]["deletionTimestamp"]
    assert (await space.wire("DELETE", path)).version == marked.version, "asking again changes nothing"
    twin = await space.wire("POST", space.path("configmaps"), {"metadata": {"name": "one"}})
    assert (twin.code, twin.message) == (409, 'object is being deleted: configmaps "one" already exists')
    more = await space.wire("PATCH", path, {"metadata": {"finalizers": [HOLD, "example.com/new"]}}, media=MERGE)
    assert more.code == 422
    assert "no new finalizers can be added if the object is being deleted" in more.message
    kept = await space.wire("PATCH", path, {"metadata": {"deletionTimestamp": None}}, media=MERGE)
    assert kept.body["metadata"]["deletionTimestamp"] == marked.body["metadata"]["deletionTimestamp"]
    freed = await space.wire("PATCH", path, [{"op": "remove", "path": "/metadata/finalizers"}], media=JSON_PATCH)
    assert freed.code == 200
    assert (await space.wire("GET", path)).code == 404


async def test_watchers_see_the_mark_and_then_the_end(space: Space) -> None:
    made = await space.config_map(metadata={"finalizers": [HOLD]})
    path = space.path("configmaps")
    async with space.wire.watch(path, resourceVersion=made["metadata"]["resourceVersion"]) as events:
        await space.wire("DELETE", path + "/one")
        marked = await events.next()
        assert (marked["type"], "deletionTimestamp" in marked["object"]["metadata"]) == ("MODIFIED", True)
        await space.wire("PATCH", path + "/one", {"metadata": {"finalizers": None}}, media=MERGE)
        seen = await events.until(lambda e: e["type"] == "DELETED")
        assert seen[-1]["object"]["metadata"]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("uid", UID, f"the UID in the precondition ({UID}) does not match the UID in record"),
        ("resourceVersion", "1", "the ResourceVersion in the precondition (1) does not match the ResourceVersion in"),
    ],
)
async def test_preconditions_protect(space: Space, key: str, value: str, message: str) -> None:
    await space.config_map()
    path = space.path("configmaps") + "/one"
    reply = await space.wire("DELETE", path, {"preconditions": {key: value}})
    assert (reply.code, reply.reason) == (409, "Conflict")
    assert message in reply.message
    assert (await space.wire("GET", path)).code == 200


async def test_preconditions_that_hold_let_it_go(space: Space) -> None:
    meta = (await space.config_map())["metadata"]
    body = {"preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
    assert (await space.wire("DELETE", space.path("configmaps") + "/one", body)).code == 200


@pytest.mark.parametrize(("policy", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")])
async def test_propagation_leaves_the_work_to_the_garbage_collector(space: Space, policy: str, finalizer: str) -> None:
    await space.config_map(metadata={"finalizers": [HOLD]})
    path = space.path("configmaps") + "/one"
    marked = await space.wire("DELETE", path, {"propagationPolicy": policy, "dryRun": ["All"]})
    assert marked.body["metadata"]["finalizers"] == [HOLD, finalizer]
    assert "deletionTimestamp" not in (await space.wire("GET", path)).body["metadata"]


async def test_an_unknown_propagation_is_invalid(space: Space) -> None:
    await space.config_map()
    reply = await space.wire("DELETE", space.path("configmaps") + "/one", {"propagationPolicy": "Sideways"})
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert 'propagationPolicy: Unsupported value: "Sideways"' in reply.message


async def test_options_in_a_body_hide_those_in_the_query(space: Space) -> None:
    await space.config_map()
    path = space.path("configmaps") + "/one"
    assert (await space.wire("DELETE", path, {"propagationPolicy": "Background"}, dryRun="All")).code == 200
    assert (await space.wire("GET", path)).code == 404


async def test_a_collection_is_deleted_by_selector(space: Space) -> None:
    for name, team in (("a", "red"), ("b", "blue"), ("c", "red")):
        await space.config_map(name, metadata={"labels": {"team": team}})
    path = space.path("configmaps")
    gone = await space.wire("DELETE", path, labelSelector="team=red")
    assert [item["metadata"]["name"] for item in gone.body["items"]] == ["a", "c"]
    left = await space.wire("GET", path, labelSelector="team")
    assert [item["metadata"]["name"] for item in left.body["items"]] == ["b"]


async def test_a_pod_without_a_node_goes_at_once(space: Space) -> None:
    await space.wire("POST", space.path("pods"), pod("p"))
    gone = await space.wire("DELETE", space.path("pods") + "/p")
    assert (gone.code, gone.body["kind"]) == (200, "Pod")
    assert (await space.wire("GET", space.path("pods") + "/p")).code == 404


async def test_a_pod_on_a_node_gets_its_grace(space: Space) -> None:
    made = await a_bound_pod(space)
    path = space.path("pods") + "/p"
    marked = (await space.wire("DELETE", path)).body["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 30
    assert marked["generation"] == made["metadata"]["generation"] + 1
    again = await space.wire("DELETE", path, {"gracePeriodSeconds": 60})
    assert again.body["metadata"]["deletionGracePeriodSeconds"] == 30, "a longer grace is not given"
    shorter = await space.wire("DELETE", path, {"gracePeriodSeconds": 5})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    assert shorter.body["metadata"]["deletionTimestamp"] < marked["deletionTimestamp"]
    forced = await space.wire("DELETE", path, {"gracePeriodSeconds": 0})
    assert forced.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await space.wire("GET", path)).code == 404


async def test_a_finished_pod_goes_without_grace(space: Space) -> None:
    await a_bound_pod(space)
    path = space.path("pods") + "/p"
    assert (await space.wire("PATCH", path + "/status", {"status": {"phase": "Succeeded"}}, media=MERGE)).code == 200
    await space.wire("DELETE", path)
    assert (await space.wire("GET", path)).code == 404


async def test_a_forced_deletion_still_waits_for_finalizers(space: Space) -> None:
    await a_bound_pod(space, finalizers=[HOLD])
    path = space.path("pods") + "/p"
    marked = await space.wire("DELETE", path, {"gracePeriodSeconds": 0})
    assert marked.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await space.wire("GET", path)).code == 200
    await space.wire("PATCH", path, {"metadata": {"finalizers": None}}, media=MERGE)
    assert (await space.wire("GET", path)).code == 404


async def test_an_eviction_deletes_gracefully_and_says_why(space: Space) -> None:
    await a_bound_pod(space)
    path = space.path("pods") + "/p"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    evicted = await space.wire("POST", path + "/eviction", body)
    assert (evicted.code, evicted.body["status"]) == (201, "Success")
    found = (await space.wire("GET", path)).body
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    reasons = {c["type"]: c.get("reason") for c in found["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
    other = await space.wire("POST", space.path("pods") + "/none/eviction", body)
    assert (other.code, other.message) == (400, "name in URL does not match name in Eviction object")
    absent = {**body, "metadata": {"name": "none"}}
    assert (await space.wire("POST", space.path("pods") + "/none/eviction", absent)).code == 404


async def test_a_disruption_budget_holds_an_eviction_off(space: Space) -> None:
    await a_bound_pod(space, labels={"app": "held"})
    path = space.path("pods") + "/p"
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await space.wire("PATCH", path + "/status", {"status": ready}, media=MERGE)
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}}}
    made = await space.wire("POST", space.path("poddisruptionbudgets", api="/apis/policy/v1"), budget)
    assert made.code == 201
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    reply = await space.wire("POST", path + "/eviction", body)
    assert (reply.code, reply.reason) == (429, "TooManyRequests")
    assert reply.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert (await space.wire("GET", path)).code == 200

"""Objects one by one: create, read, replace, refuse. Every test runs on both servers."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.contract.space import Space, deployment, pod
from tests.contract.wire import JSON_PATCH, MERGE, STRATEGIC

LEASES = "/apis/coordination.k8s.io/v1"
UID = "11111111-1111-1111-1111-111111111111"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


async def test_a_new_object_gets_uid_time_version_and_namespace(space: Space) -> None:
    meta = (await space.config_map(data={"k": "v"}))["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert int(meta["resourceVersion"]) > 0
    assert meta["namespace"] == space.name


async def test_versions_grow_over_all_kinds(space: Space) -> None:
    first = await space.config_map("first")
    secret = await space.wire("POST", space.path("secrets"), {"metadata": {"name": "s"}, "stringData": {"a": "b"}})
    last = await space.config_map("last")
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in (first, secret.body, last)]
    assert versions == sorted(set(versions))
    assert secret.body["data"] == {"a": "Yg=="}


async def test_generate_name_makes_a_name(space: Space) -> None:
    made = await space.wire("POST", space.path("configmaps"), {"metadata": {"generateName": "gen-"}})
    assert made.code == 201
    assert re.fullmatch(r"gen-[a-z0-9]{5}", made.body["metadata"]["name"])


async def test_a_second_object_of_the_same_name_already_exists(space: Space) -> None:
    await space.config_map("twin")
    reply = await space.wire("POST", space.path("configmaps"), {"metadata": {"name": "twin"}})
    assert (reply.code, reply.reason) == (409, "AlreadyExists")
    assert reply.message == 'configmaps "twin" already exists'
    assert reply.body["details"] == {"name": "twin", "kind": "configmaps"}


async def test_what_is_not_there_is_not_found(space: Space) -> None:
    reply = await space.wire("GET", space.path("deployments", api="/apis/apps/v1") + "/nobody")
    assert (reply.code, reply.reason) == (404, "NotFound")
    assert reply.message == 'deployments.apps "nobody" not found'
    assert reply.body["details"] == {"name": "nobody", "group": "apps", "kind": "deployments"}


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"metadata": {}}, 422, "metadata.name: Required value: name or generateName is required"),
        ({"metadata": {"name": "Not_A_Name"}}, 422, 'metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123'),
        ({"metadata": {"name": "a", "namespace": "other"}}, 400, "does not match the namespace sent on the request"),
        (
            {"metadata": {"name": "a", "resourceVersion": "1"}},
            500,
            "resourceVersion should not be set on objects to be",
        ),
        ({"kind": "Secret", "metadata": {"name": "a"}}, 400, "cannot be handled as a ConfigMap"),
        (
            {"metadata": {"name": "a"}, "data": {"k": 1}},
            400,
            "cannot unmarshal number into Go struct field ConfigMap.d",
        ),
        ({"metadata": {"name": "a"}, "data": {"no/slash": ""}}, 422, "a valid config key must consist of alphanumeric"),
        ({"metadata": {"name": "a", "finalizers": ["short"]}}, 422, "name is neither a standard finalizer name nor is"),
    ],
)
async def test_a_bad_object_is_refused_in_the_same_words(
    space: Space, body: dict[str, object], code: int, message: str
) -> None:
    reply = await space.wire("POST", space.path("configmaps"), body)
    assert reply.code == code, reply
    assert message in reply.message


async def test_nothing_is_created_in_a_namespace_that_does_not_exist(space: Space) -> None:
    reply = await space.wire("POST", "/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}})
    assert (reply.code, reply.message) == (404, 'namespaces "nowhere" not found')


async def test_nothing_is_created_in_a_namespace_on_its_way_out(space: Space) -> None:
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    assert (await space.wire("POST", space.path("configmaps"), held)).code == 201
    gone = await space.wire("DELETE", f"/api/v1/namespaces/{space.name}")
    assert gone.body["status"]["phase"] == "Terminating"
    reply = await space.wire("POST", space.path("configmaps"), {"metadata": {"name": "late"}})
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert reply.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert "because it is being terminated" in reply.message


async def test_a_dry_run_answers_and_stores_nothing(space: Space) -> None:
    path = space.path("configmaps")
    tried = await space.wire("POST", path, {"metadata": {"name": "ghost"}, "data": {"k": "v"}}, dryRun="All")
    assert (tried.code, tried.body["data"]) == (201, {"k": "v"})
    assert (await space.wire("GET", path + "/ghost")).code == 404
    await space.config_map("real", data={"k": "v"})
    changed = await space.wire("PATCH", path + "/real", {"data": {"k": "w"}}, media=MERGE, dryRun="All")
    assert changed.body["data"] == {"k": "w"}
    assert (await space.wire("DELETE", path + "/real", dryRun="All")).code == 200
    assert (await space.wire("GET", path + "/real")).body["data"] == {"k": "v"}


async def test_unknown_fields_are_dropped_with_a_warning_or_refused_if_asked(space: Space) -> None:
    path = space.path("configmaps")
    lax = await space.wire("POST", path, {"metadata": {"name": "lax"}, "colour": "red"})
    assert lax.code == 201
    assert "colour" not in lax.body
    assert lax.headers["Warning"] == '299 - "unknown field \\"colour\\""'
    strict = await space.wire("POST", path, {"metadata": {"name": "no"}, "colour": "red"}, fieldValidation="Strict")
    assert strict.code == 400
    assert strict.message.endswith('strict decoding error: unknown field "colour"')


async def test_put_with_an_old_version_is_a_conflict_and_changes_nothing(space: Space) -> None:
    old = await space.config_map(data={"k": "1"})
    path = space.path("configmaps") + "/one"
    assert (await space.wire("PUT", path, {**old, "data": {"k": "2"}})).code == 200
    stale = await space.wire("PUT", path, {**old, "data": {"k": "3"}})
    assert (stale.code, stale.reason) == (409, "Conflict")
    assert stale.message == f'Operation cannot be fulfilled on configmaps "one": {MODIFIED}'
    assert (await space.wire("GET", path)).body["data"] == {"k": "2"}


async def test_put_without_a_version_is_unconditional_for_most_kinds_and_refused_for_leases(space: Space) -> None:
    await space.config_map(data={"k": "1"})
    free = await space.wire("PUT", space.path("configmaps") + "/one", {"metadata": {"name": "one"}, "data": {"k": "2"}})
    assert free.code == 200
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    path = space.path("leases", api=LEASES) + "/l"
    assert (await space.wire("PUT", path, lease)).code == 201, "PUT creates a Lease"
    again = await space.wire("PUT", path, lease)
    assert (again.code, again.reason) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in again.message
    assert (await space.wire("PATCH", path, {"spec": {"holderIdentity": "you"}}, media=MERGE)).code == 200


async def test_put_of_another_name_or_uid_is_refused(space: Space) -> None:
    await space.config_map()
    path = space.path("configmaps") + "/one"
    named = await space.wire("PUT", path, {"metadata": {"name": "two"}})
    assert (named.code, named.message) == (400, "the name of the object (two) does not match the name on the URL (one)")
    other = await space.wire("PUT", path, {"metadata": {"name": "one", "uid": UID}})
    assert (other.code, other.reason) == (409, "Conflict")
    assert f"Precondition failed: UID in precondition: {UID}" in other.message
    missing = await space.wire("PUT", space.path("configmaps") + "/none", {"metadata": {"name": "none"}})
    assert missing.code == 404


async def test_a_write_that_changes_nothing_keeps_the_version(space: Space) -> None:
    made = await space.config_map(data={"k": "v"})
    path = space.path("configmaps") + "/one"
    same = await space.wire("PATCH", path, {"data": {"k": "v"}}, media=MERGE)
    assert same.version == made["metadata"]["resourceVersion"]
    assert (await space.wire("PUT", path, same.body)).version == same.version


async def test_a_version_in_a_patch_is_a_precondition(space: Space) -> None:
    made = await space.config_map()
    path = space.path("configmaps") + "/one"
    version = made["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "data": {"k": "v"}}
    assert (await space.wire("PATCH", path, body, media=MERGE)).code == 200
    again = await space.wire("PATCH", path, {**body, "data": {"k": "w"}}, media=MERGE)
    assert (again.code, again.reason) == (409, "Conflict")


async def test_of_two_writers_with_the_same_version_one_wins(space: Space) -> None:
    made = await space.config_map()
    path = space.path("configmaps") + "/one"
    replies = await asyncio.gather(
        *(space.wire("PUT", path, {**made, "data": {"winner": str(index)}}) for index in range(8))
    )
    assert sorted(reply.code for reply in replies) == [200] + [409] * 7


async def test_the_three_patches_do_what_they_say(space: Space) -> None:
    await space.config_map(data={"a": "1", "b": "2"}, metadata={"finalizers": ["example.com/a"]})
    path = space.path("configmaps") + "/one"
    merged = await space.wire("PATCH", path, {"data": {"a": None, "c": "3"}}, media=MERGE)
    assert merged.body["data"] == {"b": "2", "c": "3"}
    operations = [
        {"op": "test", "path": "/data/b", "value": "2"},
        {"op": "move", "from": "/data/b", "path": "/data/d"},
        {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}},
    ]
    patched = await space.wire("PATCH", path, operations, media=JSON_PATCH)
    assert patched.body["data"] == {"c": "3", "d": "2"}
    assert patched.body["metadata"]["labels"] == {"x": "y"}
    strategic = await space.wire("PATCH", path, {"metadata": {"finalizers": ["example.com/b"]}}, media=STRATEGIC)
    assert strategic.body["metadata"]["finalizers"] == ["example.com/b", "example.com/a"]


async def test_a_json_patch_whose_test_fails_changes_nothing(space: Space) -> None:
    await space.config_map(data={"a": "1"})
    path = space.path("configmaps") + "/one"
    operations = [{"op": "remove", "path": "/data/a"}, {"op": "test", "path": "/data/zz", "value": "9"}]
    reply = await space.wire("PATCH", path, operations, media=JSON_PATCH)
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert (await space.wire("GET", path)).body["data"] == {"a": "1"}


async def test_strategic_merge_knows_containers_by_name(space: Space) -> None:
    path = space.path("deployments", api="/apis/apps/v1")
    assert (await space.wire("POST", path, deployment("d"))).code == 201

    async def containers(change: object) -> list[tuple[str, str]]:
        body = {"spec": {"template": {"spec": {"containers": change}}}}
        reply = await space.wire("PATCH", path + "/d", body, media=STRATEGIC)
        assert reply.code == 200, reply
        return [(c["name"], c["image"]) for c in reply.body["spec"]["template"]["spec"]["containers"]]

    assert await containers([{"name": "main", "image": "a.example/x:1"}]) == [("main", "a.example/x:1")]
    assert await containers([{"name": "more", "image": "a.example/y:1"}]) == [
        ("more", "a.example/y:1"),
        ("main", "a.example/x:1"),
    ]
    assert await containers([{"name": "main", "$patch": "delete"}]) == [("more", "a.example/y:1")]


async def test_an_unknown_kind_of_patch_is_unsupported(space: Space) -> None:
    await space.config_map()
    reply = await space.wire("PATCH", space.path("configmaps") + "/one", {"data": {}}, media="application/json")
    assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")


async def test_generation_counts_changes_of_the_spec_alone(space: Space) -> None:
    path = space.path("deployments", api="/apis/apps/v1")
    made = await space.wire("POST", path, deployment("d"))
    assert made.body["metadata"]["generation"] == 1
    labelled = await space.wire("PATCH", path + "/d", {"metadata": {"labels": {"x": "y"}}}, media=MERGE)
    assert labelled.body["metadata"]["generation"] == 1
    status = await space.wire("PATCH", path + "/d/status", {"status": {"collisionCount": 7}}, media=MERGE)
    assert status.body["metadata"]["generation"] == 1
    grown = await space.wire("PATCH", path + "/d", {"spec": {"minReadySeconds": 3}}, media=MERGE)
    assert grown.body["metadata"]["generation"] == 2


async def test_status_is_written_through_its_subresource_alone(space: Space) -> None:
    path = space.path("pods")
    made = await space.wire("POST", path, {**pod("p"), "status": {"phase": "Running"}})
    assert made.body["status"]["phase"] == "Pending"
    spec = await space.wire("PATCH", path + "/p", {"status": {"phase": "Running"}}, media=MERGE)
    assert spec.body["status"]["phase"] == "Pending"
    body = {"spec": {"nodeName": "elsewhere"}, "status": {"phase": "Running", "podIP": "10.1.2.3"}}
    status = await space.wire("PATCH", path + "/p/status", body, media=MERGE)
    assert status.body["status"]["phase"] == "Running"
    assert status.body["status"]["podIPs"] == [{"ip": "10.1.2.3"}]
    assert "nodeName" not in status.body["spec"]


async def test_a_node_is_registered_together_with_its_status(space: Space) -> None:
    name = f"{space.name}-node"
    body = {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"}}}
    made = await space.wire("POST", "/api/v1/nodes", body)
    assert made.body["status"]["allocatable"] == {"cpu": "4"}
    changed = await space.wire("PATCH", f"/api/v1/nodes/{name}", {"status": {"allocatable": {"cpu": "8"}}}, media=MERGE)
    assert changed.body["status"]["allocatable"] == {"cpu": "4"}


async def test_a_pod_gets_the_defaults_that_others_rely_on(space: Space) -> None:
    made = (await space.wire("POST", space.path("pods"), pod("p"))).body
    spec = made["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["serviceAccountName"] == "default"
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert {t["key"]: t["tolerationSeconds"] for t in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready": 300,
        "node.kubernetes.io/unreachable": 300,
    }
    assert made["status"]["qosClass"] == "BestEffort"


async def test_the_spec_of_a_pod_is_fixed_but_for_its_images(space: Space) -> None:
    path = space.path("pods")
    await space.wire("POST", path, pod("p"))
    image = {"spec": {"containers": [{"name": "main", "image": "docker.io/library/busybox:1.36"}]}}
    assert (await space.wire("PATCH", path + "/p", image, media=STRATEGIC)).code == 200
    reply = await space.wire("PATCH", path + "/p", {"spec": {"hostNetwork": True}}, media=MERGE)
    assert reply.code == 422
    assert "spec: Forbidden: pod updates may not change fields other than" in reply.message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"serviceAccountName": "nobody"}, 'serviceaccount "nobody" not found'),
        ({"priorityClassName": "nothing"}, "no PriorityClass with name nothing was found"),
        ({"resourceClaims": [{"name": "c"}]}, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
    ],
)
async def test_a_bad_pod_is_refused_in_the_same_words(space: Space, spec: dict[str, object], message: str) -> None:
    reply = await space.wire("POST", space.path("pods"), pod("p", **spec))
    assert reply.code in (403, 422), reply
    assert message in reply.message


async def test_the_selector_of_a_deployment_is_immutable_and_fits_its_template(space: Space) -> None:
    path = space.path("deployments", api="/apis/apps/v1")
    await space.wire("POST", path, deployment("d"))
    changed = await space.wire("PATCH", path + "/d", {"spec": {"selector": {"matchLabels": {"x": "y"}}}}, media=MERGE)
    assert changed.code == 422
    assert "field is immutable" in changed.message
    unfit = await space.wire("POST", path, deployment("e", selector={"matchLabels": {"x": "y"}}))
    assert "`selector` does not match template `labels`" in unfit.message


async def test_scale_reads_and_writes_replicas(space: Space) -> None:
    path = space.path("deployments", api="/apis/apps/v1")
    await space.wire("POST", path, deployment("d"))
    scaled = await space.wire("PATCH", path + "/d/scale", {"spec": {"replicas": 3}}, media=MERGE)
    assert (scaled.body["kind"], scaled.body["spec"]) == ("Scale", {"replicas": 3})
    assert (await space.wire("GET", path + "/d")).body["spec"]["replicas"] == 3
    refused = await space.wire("PATCH", path + "/d/scale", {"spec": {"replicas": -1}}, media=MERGE)
    assert (refused.code, refused.reason) == (422, "Invalid")


async def test_a_binding_gives_a_pod_its_node_once(space: Space) -> None:
    path = space.path("pods")
    await space.wire("POST", path, pod("p"))
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": f"{space.name}-n"}}
    bound = await space.wire("POST", path + "/p/binding", binding)
    assert (bound.code, bound.body["status"]) == (201, "Success")
    found = (await space.wire("GET", path + "/p")).body
    assert found["spec"]["nodeName"] == f"{space.name}-n"
    assert {c["type"]: c["status"] for c in found["status"]["conditions"]}["PodScheduled"] == "True"
    again = await space.wire("POST", path + "/p/binding", binding)
    assert (again.code, again.reason) == (409, "Conflict")
    assert f'pod p is already assigned to node "{space.name}-n"' in again.message


async def test_events_are_the_same_objects_in_both_versions(space: Space) -> None:
    about = {"kind": "Pod", "namespace": space.name, "name": "p"}
    core = {"metadata": {"name": "old"}, "involvedObject": about, "reason": "R", "message": "m", "count": 2}
    assert (await space.wire("POST", space.path("events"), core)).code == 201
    seen = (await space.wire("GET", space.path("events", api="/apis/events.k8s.io/v1") + "/old")).body
    assert (seen["regarding"]["name"], seen["note"], seen["deprecatedCount"]) == ("p", "m", 2)
    assert seen["apiVersion"] == "events.k8s.io/v1"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/apis/example.com/v1/things", 404),
        ("GET", "/api/v1/things", 404),
        ("GET", "/nothing", 404),
        ("DELETE", "/api/v1/namespaces", 405),
        ("PUT", "/api/v1/namespaces", 405),
        ("POST", "/api/v1/configmaps", 405),
    ],
)
async def test_paths_and_methods_that_make_no_sense_are_refused(
    space: Space, method: str, path: str, code: int
) -> None:
    reply = await space.wire(method, path, {"metadata": {"name": "a"}} if method != "GET" else None)
    assert reply.code == code, reply

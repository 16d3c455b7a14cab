"""Who is asking and what they may: tokens, roles, reviews, discovery. Every test runs on both servers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from interlace.kube.config import Config
from interlace.sim.plane import AuditRecord
from tests.contract.space import ADMIN, Space, pod
from tests.contract.wire import MERGE, Json, Wire
from tests.waiting import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@asynccontextmanager
async def user(space: Space, name: str, *groups: str) -> AsyncIterator[Wire]:
    """A client as a user without rights of its own."""
    async with Wire(space.plane.credentials(name, groups=groups), agent=f"{name}/1") as wire:
        yield wire


@asynccontextmanager
async def bearer(space: Space, token: str) -> AsyncIterator[Wire]:
    """A client with a token."""
    name, groups = ADMIN
    ca = space.plane.credentials(name, groups=groups).ca
    async with Wire(Config(server=space.plane.url, ca=ca, token=token)) as wire:
        yield wire


async def grant(space: Space, subject: Json, *rules: Json) -> None:
    """Give a subject rights in the namespace."""
    name = subject["name"].replace(":", "-")
    assert (
        await space.wire("POST", space.path("roles", api=RBAC), {"metadata": {"name": name}, "rules": rules})
    ).code == 201
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject],
    }
    assert (await space.wire("POST", space.path("rolebindings", api=RBAC), binding)).code == 201


def rule(verbs: list[str], resources: list[str], group: str = "", **more: list[str]) -> Json:
    """One rule of a role."""
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **more}


async def test_a_stranger_is_forbidden_and_told_what(space: Space) -> None:
    async with user(space, "joe") as wire:
        reply = await wire("GET", space.path("pods"))
        assert (reply.code, reply.reason) == (403, "Forbidden")
        assert reply.message == (
            f'pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the namespace "{space.name}"'
        )
        reply = await wire("DELETE", "/api/v1/nodes/n1")
        assert reply.message == (
            'nodes "n1" is forbidden: User "joe" cannot delete resource "nodes" in API group "" at the cluster scope'
        )
        assert (await wire("GET", "/version")).code == 200


async def test_a_role_gives_what_it_lists_and_no_more(space: Space) -> None:
    await space.config_map()
    await grant(space, {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"},
                rule(["get"], ["configmaps"], resourceNames=["one"]), rule(["list"], ["secrets"]))  # fmt: skip
    async with user(space, "ann") as wire:

        async def allowed() -> bool:
            return (await wire("GET", space.path("configmaps") + "/one")).code == 200

        await eventually(allowed, within=10)
        assert (await wire("GET", space.path("configmaps") + "/two")).code == 403
        assert (await wire("GET", space.path("configmaps"))).code == 403
        assert (await wire("GET", space.path("secrets"))).code == 200
        assert (await wire("PATCH", space.path("configmaps") + "/one", {"data": {}}, media=MERGE)).code == 403


async def test_groups_have_rights_too(space: Space) -> None:
    group = f"{space.name}-team"
    await grant(
        space, {"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}, rule(["list"], ["pods"])
    )
    async with user(space, "someone", group) as wire:

        async def allowed() -> bool:
            return (await wire("GET", space.path("pods"))).code == 200

        await eventually(allowed, within=10)


async def test_a_subresource_needs_a_right_of_its_own(space: Space) -> None:
    await space.wire("POST", space.path("pods"), pod("p"))
    await grant(
        space,
        {"kind": "User", "name": "kim", "apiGroup": "rbac.authorization.k8s.io"},
        rule(["get", "patch"], ["pods"]),
    )
    async with user(space, "kim") as wire:

        async def allowed() -> bool:
            return (await wire("GET", space.path("pods") + "/p")).code == 200

        await eventually(allowed, within=10)
        reply = await wire("PATCH", space.path("pods") + "/p/status", {"status": {}}, media=MERGE)
        assert (reply.code, 'cannot patch resource "pods/status"' in reply.message) == (403, True)


async def test_a_token_nobody_issued_is_unauthorized(space: Space) -> None:
    async with bearer(space, "made-up") as wire:
        reply = await wire("GET", "/api/v1/pods")
    assert (reply.code, reply.reason) == (401, "Unauthorized")


async def bound_token(space: Space, pod_name: str) -> str:
    """A token of the default account, bound to a new pod on a new node."""
    node = f"{space.name}-node"
    await space.wire("POST", "/api/v1/nodes", {"metadata": {"name": node}})
    made = await space.wire("POST", space.path("pods"), pod(pod_name, nodeName=node))
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": made.body["metadata"]["uid"]}
    reply = await space.wire(
        "POST", space.path("serviceaccounts") + "/default/token", {"spec": {"boundObjectRef": bound}}
    )
    assert reply.code == 201, reply
    token: str = reply.body["status"]["token"]
    return token


async def test_a_pod_bound_token_says_whose_it_is_and_where(space: Space) -> None:
    token = await bound_token(space, "p")
    async with bearer(space, token) as wire:
        review = await wire("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        who = review.body["status"]["userInfo"]
        assert who["username"] == f"system:serviceaccount:{space.name}:default"
        assert set(who["groups"]) >= {
            "system:serviceaccounts",
            f"system:serviceaccounts:{space.name}",
            "system:authenticated",
        }
        assert who["extra"]["authentication.kubernetes.io/node-name"] == [f"{space.name}-node"]
        assert who["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    reply = await space.wire("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
    assert reply.body["status"]["authenticated"] is True
    assert reply.body["status"]["user"]["username"] == f"system:serviceaccount:{space.name}:default"


async def test_a_pod_bound_token_dies_with_its_pod(space: Space) -> None:
    token = await bound_token(space, "p")
    async with bearer(space, token) as wire:
        assert (await wire("GET", "/version")).code == 200
        assert (await wire("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})).code == 201
        await space.wire("DELETE", space.path("pods") + "/p", {"gracePeriodSeconds": 0})

        async def refused() -> bool:
            return (await wire("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})).code == 401

        await eventually(refused, within=30, every=0.5)


async def test_a_token_request_that_makes_no_sense_is_refused(space: Space) -> None:
    path = space.path("serviceaccounts") + "/default/token"
    short = await space.wire("POST", path, {"spec": {"expirationSeconds": 10}})
    assert (short.code, "may not specify a duration less than 10 minutes" in short.message) == (422, True)
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "nobody"}
    assert (await space.wire("POST", path, {"spec": {"boundObjectRef": bound}})).code == 404
    assert (await space.wire("POST", space.path("serviceaccounts") + "/nobody/token", {"spec": {}})).code == 404


@pytest.mark.parametrize(("verb", "allowed"), [("get", True), ("delete", False)])
async def test_reviews_answer_as_the_authorizer_does(space: Space, verb: str, allowed: bool) -> None:
    await grant(
        space, {"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}, rule(["get"], ["pods"])
    )
    attributes = {"verb": verb, "resource": "pods", "namespace": space.name}

    async def asked() -> bool:
        body = {"spec": {"user": "eve", "resourceAttributes": attributes}}
        reply = await space.wire("POST", f"{AUTHORIZATION}/subjectaccessreviews", body)
        return bool(reply.code == 201 and reply.body["status"]["allowed"] is allowed)

    await eventually(asked, within=10)
    async with user(space, "eve") as wire:
        body = {"spec": {"resourceAttributes": attributes}}
        reply = await wire("POST", f"{AUTHORIZATION}/selfsubjectaccessreviews", body)
        assert reply.body["status"]["allowed"] is allowed


async def test_impersonation_needs_a_right_and_then_acts_as_the_other(space: Space) -> None:
    reply = await space.wire("GET", space.path("pods"), act_as="joe")
    assert (reply.code, 'User "joe" cannot list' in reply.message) == (403, True)
    async with user(space, "mallory") as wire:
        reply = await wire("GET", space.path("pods"), act_as="joe")
    assert reply.code == 403
    assert 'User "mallory" cannot impersonate-on:user-info:list resource "pods"' in reply.message


async def test_the_audit_log_counts_each_request_once(space: Space) -> None:
    async with user(space, f"{space.name}-auditee", "system:masters") as wire:
        path = space.path("configmaps")
        await wire("POST", path, {"metadata": {"name": "a"}})
        await wire("POST", path, {"metadata": {"name": "a"}})
        await wire("GET", path)
        await wire("PATCH", path + "/a", {"data": {"k": "v"}}, media=MERGE)
        async with wire.watch(path) as events:
            await events.next()
            expected = ["create 201", "create 409", "list 200", "patch 200", "watch 200"]

            def recorded() -> list[AuditRecord] | None:
                mine = [r for r in space.plane.audit() if r.user == f"{space.name}-auditee"]
                return mine if len(mine) >= len(expected) else None

            mine = await eventually(recorded, within=10)
    assert mine is not None
    assert [f"{record.verb} {record.code}" for record in mine] == expected
    assert {record.resource for record in mine} == {"configmaps"}
    assert {record.namespace for record in mine} == {space.name}
    assert mine[1].reason == "AlreadyExists"
    assert (mine[3].name, mine[0].user_agent) == ("a", f"{space.name}-auditee/1")


async def test_discovery_lists_what_is_served_in_both_forms(space: Space) -> None:
    for root, group, resource in (("/api", "", "pods"), ("/apis", "apps", "deployments")):
        reply = await space.wire("GET", root, accept=AGGREGATED)
        assert "as=APIGroupDiscoveryList" in reply.headers["Content-Type"]
        versions = {item["metadata"].get("name", ""): item["versions"] for item in reply.body["items"]}
        found = {entry["resource"]: entry for entry in versions[group][0]["resources"]}
        assert found[resource]["scope"] == "Namespaced"
        assert {"get", "list", "watch", "patch"} <= set(found[resource]["verbs"])
        assert "status" in [sub["subresource"] for sub in found[resource]["subresources"]]
    plain = (await space.wire("GET", "/apis/apps/v1")).body
    assert plain["kind"] == "APIResourceList"
    names = {entry["name"]: entry for entry in plain["resources"]}
    assert names["deployments"]["shortNames"] == ["deploy"]
    assert names["deployments/scale"]["kind"] == "Scale"
    groups = {entry["name"] for entry in (await space.wire("GET", "/apis")).body["groups"]}
    assert {"apps", "resource.k8s.io", "coordination.k8s.io", "rbac.authorization.k8s.io"} <= groups


async def test_openapi_describes_each_group(space: Space) -> None:
    answer = (await space.wire("GET", "/openapi/v3")).body  # the real server calls it plain text
    index = (json.loads(answer) if isinstance(answer, bytes) else answer)["paths"]
    url = index["apis/apps/v1"]["serverRelativeURL"].partition("?")[0]
    document = (await space.wire("GET", url)).body
    schemas = document["components"]["schemas"]
    kinds = [gvk["kind"] for schema in schemas.values() for gvk in schema.get("x-kubernetes-group-version-kind", [])]
    assert "Deployment" in kinds
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in json.dumps(patch)


async def test_the_version_and_health_are_open_to_all(space: Space) -> None:
    async with user(space, "anyone") as wire:
        version = (await wire("GET", "/version")).body
        assert version["gitVersion"] == space.plane.version
        for path in ("/healthz", "/livez", "/readyz"):
            assert (await wire("GET", path)).body == b"ok"

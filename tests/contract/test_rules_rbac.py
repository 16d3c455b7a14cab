"""Who may do what, and who somebody is, are the same on both servers."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.kube.config import Config
from interlace.sim.plane import Plane
from tests.contract.wire import Reply, Wire
from tests.contract.wire import admin as as_admin
from tests.waiting import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"
DRA = "/apis/resource.k8s.io/v1"
PODS = "/api/v1/namespaces/y/pods"
NODE_GROUPS = ("system:nodes",)


def accepted(reply: Reply) -> dict[str, Any]:
    """The object as it was stored."""
    assert reply.code in {200, 201}, reply
    found: dict[str, Any] = reply.body
    return found


def pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]
    found = {"nodeName": node, "containers": containers, "automountServiceAccountToken": False} | spec
    return {"metadata": {"name": name}, "spec": found}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(plane: Plane) -> AsyncIterator[Wire]:
    async with as_admin(plane) as wire:
        for namespace in ("y", "z"):
            accepted(await wire("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}))
        for node in ("n1", "n2"):
            accepted(await wire("POST", "/api/v1/nodes", {"metadata": {"name": node}}))
        for account in ("agent", "other"):
            accepted(await wire("POST", "/api/v1/namespaces/y/serviceaccounts", {"metadata": {"name": account}}))
        request = {"name": "channel", "exactly": {"deviceClassName": "channel.example.com"}}
        for name in ("c", "d"):
            claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
            accepted(await wire("POST", f"{DRA}/namespaces/y/resourceclaims", claim))
        claims = [{"name": "channel", "resourceClaimName": "c"}]
        accepted(await wire("POST", PODS, pod("own", "n1", serviceAccountName="agent", resourceClaims=claims)))
        accepted(await wire("POST", PODS, pod("foreign", "n2", serviceAccountName="other")))
        pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
        for node in ("n1", "n2"):
            spec = {"driver": "d.example.com", "nodeName": node, "pool": pool}
            accepted(await wire("POST", f"{DRA}/resourceslices", {"metadata": {"name": f"slice-{node}"}, "spec": spec}))
        for name in ("kate-list", "kate-watch"):
            rules = [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
                {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get", "list"]},
                {"apiGroups": [""], "resources": ["*/log"], "verbs": ["get"]},
            ]
            accepted(await wire("POST", f"{RBAC}/namespaces/y/roles", {"metadata": {"name": name}, "rules": rules}))
        accepted(await wire("POST", f"{RBAC}/namespaces/y/rolebindings", binding("kate", "Role", "kate-list")))
        paths = [{"nonResourceURLs": ["/debug/*"], "verbs": ["get"]}]
        accepted(await wire("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "paths"}, "rules": paths}))
        accepted(await wire("POST", f"{RBAC}/clusterrolebindings", binding("kate", "ClusterRole", "paths")))
        accepted(await wire("POST", f"{RBAC}/namespaces/z/rolebindings", binding("kate", "ClusterRole", "view")))
        yield wire


def binding(user: str, kind: str, role: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": f"{user}-{role}"},
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kate(plane: Plane, admin: Wire) -> AsyncIterator[Wire]:
    """A user with few rights, once the server has seen her bindings."""
    async with Wire(plane.credentials("kate", groups=["team"])) as wire:

        async def known() -> bool:
            first = await wire("GET", "/api/v1/namespaces/y/configmaps")
            second = await wire("GET", "/api/v1/namespaces/z/pods")
            return first.code == second.code == 200

        await eventually(known, within=10, what="kate's rights")
        yield wire


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kubelet(plane: Plane, admin: Wire) -> AsyncIterator[Wire]:
    """The kubelet of n1, once the server knows its pods."""
    async with Wire(plane.credentials("system:node:n1", groups=NODE_GROUPS)) as wire:

        async def known() -> bool:
            replies = [await wire("GET", f"{PODS}/own"), await wire("GET", f"{DRA}/resourceslices/slice-n1")]
            return all(reply.code == 200 for reply in replies)

        await eventually(known, within=10, what="the kubelet's rights")
        yield wire


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        (
            "GET",
            f"{PODS}/p",
            'pods "p" is forbidden: User "kate" cannot get resource "pods" in API group "" in the namespace "y"',
        ),
        (
            "GET",
            PODS,
            'pods is forbidden: User "kate" cannot list resource "pods" in API group "" in the namespace "y"',
        ),
        (
            "GET",
            "/api/v1/nodes",
            'nodes is forbidden: User "kate" cannot list resource "nodes" in API group "" at the cluster scope',
        ),
        (
            "DELETE",
            f"{DRA}/namespaces/y/resourceclaims/c",
            (
                'resourceclaims.resource.k8s.io "c" is forbidden: User "kate" cannot delete resource "resourceclaims" '
                'in API group "resource.k8s.io" in the namespace "y"'
            ),
        ),
        (
            "GET",
            f"{PODS}/own/status",
            (
                'pods "own" is forbidden: User "kate" cannot get resource "pods/status" in API group "" '
                'in the namespace "y"'
            ),
        ),
        ("GET", "/metrics", 'forbidden: User "kate" cannot get path "/metrics"'),
        (
            "GET",
            "/api/v1/namespaces/y/secrets/yours",
            (
                'secrets "yours" is forbidden: User "kate" cannot get resource "secrets" in API group "" '
                'in the namespace "y"'
            ),
        ),
    ],
)
async def test_a_refusal_says_who_may_not_do_what_where(kate: Wire, method: str, path: str, expected: str) -> None:
    reply = await kate(method, path)
    assert (reply.code, reply.reason, reply.message) == (403, "Forbidden", expected)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api", 200),
        ("/apis", 200),
        ("/version", 200),
        ("/readyz", 200),
        ("/openapi/v3", 200),
        ("/api/v1/namespaces/y/configmaps", 200),
        ("/api/v1/namespaces/z/configmaps", 200),
        ("/api/v1/namespaces/z/secrets", 403),
        ("/api/v1/configmaps", 403),
        ("/api/v1/namespaces/y/secrets/mine", 404),
        ("/api/v1/namespaces/y/secrets", 403),
        ("/api/v1/namespaces/y/secrets?fieldSelector=metadata.name%3Dmine", 200),
        ("/api/v1/namespaces/y/secrets?fieldSelector=metadata.name%3Dother", 403),
        ("/api/v1/namespaces/y/configmaps/any", 403),
    ],
)
async def test_rights_come_from_roles_bindings_and_defaults(kate: Wire, path: str, code: int) -> None:
    reply = await kate("GET", path)
    assert reply.code == code, reply


UNRELATED = "no relationship found between node 'n1' and this object"


@pytest.mark.parametrize(
    ("method", "path", "reason"),
    [
        ("GET", "/api/v1/nodes/n1", None),
        ("GET", "/api/v1/nodes/n2", "node 'n1' cannot read 'n2', only its own Node object"),
        ("GET", "/api/v1/nodes", "node 'n1' cannot read all nodes, only its own Node object"),
        ("GET", f"{PODS}/own", None),
        ("GET", f"{PODS}/foreign", UNRELATED),
        ("GET", "/api/v1/pods?fieldSelector=spec.nodeName=n1", None),
        (
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName=n2",
            "can only list/watch pods with spec.nodeName field selector",
        ),
        ("GET", "/api/v1/pods", "can only list/watch pods with spec.nodeName field selector"),
        ("GET", f"{DRA}/namespaces/y/resourceclaims/c", None),
        ("GET", f"{DRA}/namespaces/y/resourceclaims/d", UNRELATED),
        ("GET", f"{DRA}/namespaces/y/resourceclaims", "can only get individual resources of this type"),
        ("GET", f"{DRA}/resourceslices/slice-n1", None),
        ("GET", f"{DRA}/resourceslices/slice-n2", UNRELATED),
        ("GET", f"{DRA}/resourceslices?fieldSelector=spec.nodeName=n1", None),
        (
            "GET",
            f"{DRA}/resourceslices",
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1", None),
        (
            "GET",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2",
            "can only access node lease with the same name as the requesting node",
        ),
        (
            "GET",
            "/apis/coordination.k8s.io/v1/namespaces/y/leases/n1",
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        ("GET", "/api/v1/namespaces/y/configmaps/any", UNRELATED),
        ("GET", "/api/v1/namespaces/y/configmaps", "No Object name found"),
        ("GET", "/api/v1/configmaps", "can only read namespaced object of this type"),
        ("DELETE", "/api/v1/namespaces/y/configmaps/any", "can only read resources of this type"),
        ("POST", "/api/v1/namespaces/y/serviceaccounts/other/token", UNRELATED),
        ("GET", "/api/v1/services", None),
        ("GET", "/api/v1/namespaces", ""),
    ],
)
async def test_a_kubelet_sees_what_its_pods_need(kubelet: Wire, method: str, path: str, reason: str | None) -> None:
    reply = await kubelet(method, path, {} if method == "POST" else None)
    if reason is None:
        assert reply.code in {200, 404}, reply
    else:
        assert (reply.code, reply.reason) == (403, "Forbidden"), reply
        assert reply.message.endswith(f": {reason}" if reason else "at the cluster scope"), reply.message


async def review(wire: Wire) -> dict[str, Any]:
    """Who the server takes the caller for."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = accepted(await wire("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body))
    found: dict[str, Any] = answer["status"]["userInfo"]
    return found


async def test_a_pod_bound_token_is_known_by_pod_and_node_and_dies_with_the_pod(plane: Plane, admin: Wire) -> None:
    made = accepted(await admin("POST", PODS, pod("bound", "n1", serviceAccountName="agent")))
    about = {"apiVersion": "v1", "kind": "Pod", "name": "bound", "uid": made["metadata"]["uid"]}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": about, "expirationSeconds": 3600},
    }
    answer = accepted(await admin("POST", "/api/v1/namespaces/y/serviceaccounts/agent/token", request))
    token = str(answer["status"]["token"])
    node = accepted(await admin("GET", "/api/v1/nodes/n1"))
    account = accepted(await admin("GET", "/api/v1/namespaces/y/serviceaccounts/agent"))
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert set(claims) == {"aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"}
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["sub"] == "system:serviceaccount:y:agent"
    assert claims["kubernetes.io"] == {
        "namespace": "y",
        "node": {"name": "n1", "uid": node["metadata"]["uid"]},
        "pod": {"name": "bound", "uid": made["metadata"]["uid"]},
        "serviceaccount": {"name": "agent", "uid": account["metadata"]["uid"]},
    }
    known = plane.credentials("nobody")
    async with Wire(Config(server=known.server, ca=known.ca, token=token)) as wire:
        assert await review(wire) == {
            "username": "system:serviceaccount:y:agent",
            "uid": account["metadata"]["uid"],
            "groups": ["system:serviceaccounts", "system:serviceaccounts:y", "system:authenticated"],
            "extra": {
                "authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"],
                "authentication.kubernetes.io/node-name": ["n1"],
                "authentication.kubernetes.io/node-uid": [node["metadata"]["uid"]],
                "authentication.kubernetes.io/pod-name": ["bound"],
                "authentication.kubernetes.io/pod-uid": [made["metadata"]["uid"]],
            },
        }
        assert (await admin("DELETE", f"{PODS}/bound", gracePeriodSeconds="0")).code == 200

        async def refused() -> bool:
            reply = await wire("GET", "/api")
            return (reply.code, reply.reason) == (401, "Unauthorized")

        await eventually(refused, within=30, what="the end of the token")


async def test_a_token_that_nobody_issued_is_refused(plane: Plane) -> None:
    known = plane.credentials("nobody")
    async with Wire(Config(server=known.server, ca=known.ca, token="eyJhbGciOiJub25lIn0.e30.")) as wire:
        reply = await wire("GET", "/api")
    assert (reply.code, reply.reason, reply.message) == (401, "Unauthorized", "Unauthorized")

"""A kubelet sees its own node and what its pods need, and nothing of other nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from interlace.sim.apiserver.auth import UserInfo
from interlace.sim.apiserver.rbac import Authorizer, Request

KUBELET = UserInfo("system:node:n1", groups=["system:nodes", "system:authenticated"])
DRA = "resource.k8s.io"


def pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "y"}, "spec": {"nodeName": node} | spec, "status": {}}


def resource_slice(name: str, node: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"nodeName": node}}


OWN = pod(
    "own",
    "n1",
    serviceAccountName="agent",
    resourceClaims=[{"name": "c", "resourceClaimName": "named"}],
    imagePullSecrets=[{"name": "pull"}],
    volumes=[{"secret": {"secretName": "cert"}}, {"configMap": {"name": "config"}}],
    containers=[{"env": [{"valueFrom": {"secretKeyRef": {"name": "password", "key": "p"}}}]}],
)
OWN["status"] = {"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "made"}]}
OBJECTS = {
    "pods": [
        OWN,
        pod("other", "n2", serviceAccountName="root", resourceClaims=[{"name": "c", "resourceClaimName": "theirs"}]),
    ],
    "resourceslices": [resource_slice("s1", "n1"), resource_slice("s2", "n2")],
}


def lookup(plural: str, namespace: str | None) -> Iterable[dict[str, Any]]:
    return [o for o in OBJECTS.get(plural, []) if namespace in {None, o["metadata"].get("namespace")}]


def refusal(verb: str, resource: str, /, *, user: UserInfo = KUBELET, **more: str) -> str | None:
    resource, _, subresource = resource.partition("/")
    request = Request(verb=verb, resource=resource, subresource=subresource, **more)
    return Authorizer(lookup).refusal(user, request)


@pytest.mark.parametrize(
    ("verb", "resource", "more"),
    [
        ("create", "nodes", {}),
        ("get", "nodes", {"name": "n1"}),
        ("watch", "nodes", {"name": "n1"}),
        ("patch", "nodes/status", {"name": "n1"}),
        ("list", "pods", {"fields": "spec.nodeName=n1"}),
        ("watch", "pods", {"fields": "status.phase!=Failed,spec.nodeName==n1"}),
        ("get", "pods", {"namespace": "y", "name": "own"}),
        ("watch", "pods", {"namespace": "y", "name": "own"}),
        ("patch", "pods/status", {"namespace": "y", "name": "own"}),
        ("delete", "pods", {"namespace": "y", "name": "own"}),
        ("create", "pods/eviction", {"namespace": "y", "name": "own"}),
        ("create", "serviceaccounts/token", {"namespace": "y", "name": "agent"}),
        ("get", "secrets", {"namespace": "y", "name": "cert"}),
        ("get", "secrets", {"namespace": "y", "name": "pull"}),
        ("watch", "secrets", {"namespace": "y", "name": "password"}),
        ("get", "configmaps", {"namespace": "y", "name": "config"}),
        ("get", "resourceclaims", {"group": DRA, "namespace": "y", "name": "named"}),
        ("get", "resourceclaims", {"group": DRA, "namespace": "y", "name": "made"}),
        ("create", "resourceslices", {"group": DRA}),
        ("delete", "resourceslices", {"group": DRA, "name": "s1"}),
        ("list", "resourceslices", {"group": DRA, "fields": "spec.nodeName=n1"}),
        ("deletecollection", "resourceslices", {"group": DRA, "fields": "spec.nodeName=n1"}),
        ("create", "leases", {"group": "coordination.k8s.io", "namespace": "kube-node-lease"}),
        ("update", "leases", {"group": "coordination.k8s.io", "namespace": "kube-node-lease", "name": "n1"}),
        ("create", "events", {"namespace": "y"}),
        ("patch", "events", {"group": "events.k8s.io", "namespace": "y", "name": "e"}),
        ("list", "services", {}),
        ("watch", "runtimeclasses", {"group": "node.k8s.io"}),
    ],
)
def test_a_kubelet_may_what_its_pods_need(verb: str, resource: str, more: dict[str, str]) -> None:
    assert refusal(verb, resource, user=KUBELET, **more) is None


UNRELATED = "no relationship found between node 'n1' and this object"


@pytest.mark.parametrize(
    ("verb", "resource", "more", "reason"),
    [
        ("get", "nodes", {"name": "n2"}, "node 'n1' cannot read 'n2', only its own Node object"),
        ("list", "nodes", {}, "node 'n1' cannot read all nodes, only its own Node object"),
        ("delete", "nodes", {"name": "n1"}, ""),
        ("get", "nodes/proxy", {"name": "n1"}, ""),
        ("get", "nodes/status", {"name": "n1"}, ""),
        ("list", "pods", {}, "can only list/watch pods with spec.nodeName field selector"),
        ("list", "pods", {"fields": "spec.nodeName=n2"}, "can only list/watch pods with spec.nodeName field selector"),
        ("get", "pods", {"namespace": "y", "name": "other"}, UNRELATED),
        ("update", "pods", {"namespace": "y", "name": "own"}, ""),
        ("create", "serviceaccounts/token", {"namespace": "y", "name": "root"}, UNRELATED),
        (
            "delete",
            "serviceaccounts",
            {"namespace": "y", "name": "agent"},
            "can only create tokens for individual service accounts",
        ),
        ("get", "secrets", {"namespace": "y", "name": "hidden"}, UNRELATED),
        ("get", "secrets", {"namespace": "y", "name": "config"}, UNRELATED),
        ("list", "secrets", {}, "can only read namespaced object of this type"),
        ("list", "configmaps", {"namespace": "y"}, "No Object name found"),
        ("update", "configmaps", {"namespace": "y", "name": "config"}, "can only read resources of this type"),
        ("get", "resourceclaims", {"group": DRA, "namespace": "y", "name": "theirs"}, UNRELATED),
        ("list", "resourceclaims", {"group": DRA}, "can only get individual resources of this type"),
        ("get", "resourceclaims/status", {"group": DRA, "namespace": "y", "name": "named"}, "cannot get subresource"),
        ("patch", "resourceslices", {"group": DRA, "name": "s2"}, UNRELATED),
        (
            "watch",
            "resourceslices",
            {"group": DRA},
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        (
            "update",
            "leases",
            {"group": "coordination.k8s.io", "namespace": "kube-node-lease", "name": "n2"},
            "can only access node lease with the same name as the requesting node",
        ),
        (
            "get",
            "leases",
            {"group": "coordination.k8s.io", "namespace": "kube-system", "name": "n1"},
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        (
            "list",
            "leases",
            {"group": "coordination.k8s.io", "namespace": "kube-node-lease"},
            "can only get, create, update, patch, or delete a node lease",
        ),
        ("delete", "events", {"namespace": "y", "name": "e"}, ""),
        ("get", "computedomains", {"group": "resource.nvidia.com", "namespace": "y", "name": "d"}, ""),
    ],
)
def test_everything_else_is_refused_with_a_reason(verb: str, resource: str, more: dict[str, str], reason: str) -> None:
    text = refusal(verb, resource, user=KUBELET, **more)
    assert text is not None
    assert text.startswith(f'User "system:node:n1" cannot {verb} resource "{resource}"')
    assert text.endswith(f": {reason}" if reason else ('"' if more.get("namespace") else "scope"))


def test_the_group_is_needed_beside_the_name() -> None:
    assert refusal("get", "nodes", user=UserInfo("system:node:n1", groups=["system:authenticated"]), name="n1")
    assert refusal("get", "nodes", user=UserInfo("kate", groups=["system:nodes"]), name="n1")

"""Roles, bindings and the rights that a cluster starts with decide who may do what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.apiserver.auth import UserInfo
from interlace.sim.apiserver.rbac import Authorizer, Request, forbidden_message

KATE = UserInfo("kate", groups=["team", "system:authenticated"])


class Cluster:
    """Objects by resource, and an authorizer that reads them."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {}
        self.authorizer = Authorizer(self.lookup)

    def lookup(self, plural: str, namespace: str | None) -> Iterable[dict[str, Any]]:
        found = self.objects.get(plural, [])
        return [o for o in found if namespace is None or o["metadata"].get("namespace") == namespace]

    def add(self, plural: str, name: str, namespace: str = "", **content: Any) -> None:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        self.objects.setdefault(plural, []).append({"metadata": metadata} | content)

    def grant(self, rule: dict[str, Any], *, to: dict[str, str], namespace: str = "", role: str = "r") -> None:
        """A role with one rule and a binding of it, in the namespace or for the cluster."""
        kind = "Role" if namespace else "ClusterRole"
        prefix = "" if namespace else "cluster"
        self.add(f"{prefix}roles", role, namespace, rules=[rule])
        reference = {"kind": kind, "name": role}
        self.add(f"{prefix}rolebindings", role, namespace, roleRef=reference, subjects=[to])

    def may(self, user: UserInfo, verb: str, resource: str, **more: str) -> bool:
        resource, _, subresource = resource.partition("/")
        return self.authorizer.allowed(user, verb=verb, resource=resource, subresource=subresource, **more)


USER = {"kind": "User", "name": "kate"}
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_nobody_may_anything_until_it_is_granted(cluster: Cluster) -> None:
    assert not cluster.may(KATE, "get", "pods", namespace="y")


def test_a_role_counts_in_its_namespace_alone(cluster: Cluster) -> None:
    cluster.grant(PODS, to=USER, namespace="y")
    assert cluster.may(KATE, "get", "pods", namespace="y", name="p")
    assert not cluster.may(KATE, "get", "pods", namespace="z", name="p")
    assert not cluster.may(KATE, "list", "pods")
    assert not cluster.may(KATE, "delete", "pods", namespace="y", name="p")


def test_a_cluster_role_counts_everywhere_if_bound_to_the_cluster(cluster: Cluster) -> None:
    cluster.grant(PODS, to=USER)
    assert cluster.may(KATE, "list", "pods")
    assert cluster.may(KATE, "list", "pods", namespace="z")


def test_a_cluster_role_bound_in_a_namespace_counts_there(cluster: Cluster) -> None:
    cluster.add("clusterroles", "reader", rules=[PODS])
    cluster.add("rolebindings", "b", "y", roleRef={"kind": "ClusterRole", "name": "reader"}, subjects=[USER])
    assert cluster.may(KATE, "list", "pods", namespace="y")
    assert not cluster.may(KATE, "list", "pods")


def test_a_role_of_another_namespace_is_not_meant(cluster: Cluster) -> None:
    cluster.add("roles", "reader", "other", rules=[PODS])
    cluster.add("rolebindings", "b", "y", roleRef={"kind": "Role", "name": "reader"}, subjects=[USER])
    assert not cluster.may(KATE, "list", "pods", namespace="y")


@pytest.mark.parametrize(
    "subject",
    [
        USER,
        {"kind": "Group", "name": "team"},
        {"kind": "Group", "name": "system:authenticated"},
    ],
)
def test_a_subject_is_a_user_or_a_group(cluster: Cluster, subject: dict[str, str]) -> None:
    cluster.grant(PODS, to=subject)
    assert cluster.may(KATE, "get", "pods", namespace="y")
    assert not cluster.may(UserInfo("mallory"), "get", "pods", namespace="y")


def test_a_service_account_is_known_by_its_namespace(cluster: Cluster) -> None:
    cluster.grant(PODS, to={"kind": "ServiceAccount", "name": "agent", "namespace": "sys"})
    assert cluster.may(UserInfo("system:serviceaccount:sys:agent"), "get", "pods", namespace="y")
    assert not cluster.may(UserInfo("system:serviceaccount:other:agent"), "get", "pods", namespace="y")


def test_a_subresource_needs_a_right_of_its_own(cluster: Cluster) -> None:
    cluster.grant(PODS | {"resources": ["pods", "*/scale"]}, to=USER)
    assert not cluster.may(KATE, "get", "pods/status", namespace="y")
    assert cluster.may(KATE, "get", "deployments/scale", namespace="y")
    assert not cluster.may(KATE, "get", "deployments", namespace="y")


def test_names_limit_a_rule(cluster: Cluster) -> None:
    cluster.grant(PODS | {"resourceNames": ["mine"]}, to=USER)
    assert cluster.may(KATE, "get", "pods", namespace="y", name="mine")
    assert not cluster.may(KATE, "get", "pods", namespace="y", name="yours")
    assert not cluster.may(KATE, "list", "pods", namespace="y")


def test_the_group_of_a_resource_counts(cluster: Cluster) -> None:
    cluster.grant({"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}, to=USER)
    assert cluster.may(KATE, "delete", "deployments/status", group="apps", namespace="y")
    assert not cluster.may(KATE, "get", "pods", namespace="y")


def test_paths_are_granted_whole_or_by_prefix(cluster: Cluster) -> None:
    cluster.grant({"nonResourceURLs": ["/metrics", "/debug/*"], "verbs": ["get"]}, to=USER)

    def may(path: str) -> bool:
        return cluster.authorizer.allowed(KATE, verb="get", path=path)

    assert may("/metrics")
    assert may("/debug/pprof")
    assert not may("/metrics/slis")
    assert not cluster.authorizer.allowed(KATE, verb="post", path="/metrics")


def test_whoever_is_known_may_look_around_and_ask_about_himself(cluster: Cluster) -> None:
    for path in ("/api", "/apis/apps/v1", "/openapi/v3", "/version", "/readyz"):
        assert cluster.authorizer.allowed(KATE, verb="get", path=path)
    assert cluster.may(KATE, "create", "selfsubjectaccessreviews", group="authorization.k8s.io")
    stranger = UserInfo("system:anonymous", groups=["system:unauthenticated"])
    assert cluster.authorizer.allowed(stranger, verb="get", path="/version")
    assert not cluster.authorizer.allowed(stranger, verb="get", path="/api")


def test_masters_may_everything(cluster: Cluster) -> None:
    root = UserInfo("admin", groups=["system:masters"])
    assert cluster.may(root, "escalate", "clusterroles", group="rbac.authorization.k8s.io")
    assert cluster.authorizer.allowed(root, verb="post", path="/anything")


def test_the_roles_that_every_cluster_has_can_be_bound(cluster: Cluster) -> None:
    cluster.add("rolebindings", "b", "y", roleRef={"kind": "ClusterRole", "name": "view"}, subjects=[USER])
    assert cluster.may(KATE, "list", "pods", namespace="y")
    assert not cluster.may(KATE, "get", "secrets", namespace="y", name="s")
    assert not cluster.may(KATE, "create", "pods", namespace="y")
    cluster.add("rolebindings", "c", "y", roleRef={"kind": "ClusterRole", "name": "edit"}, subjects=[USER])
    assert cluster.may(KATE, "create", "pods", namespace="y")


def test_a_binding_of_a_role_that_is_not_there_grants_nothing(cluster: Cluster) -> None:
    for kind in ("Role", "ClusterRole"):
        cluster.add("rolebindings", kind, "y", roleRef={"kind": kind, "name": "gone"}, subjects=[USER])
    assert not cluster.may(KATE, "get", "pods", namespace="y")


DRA = "resource.k8s.io"


@pytest.mark.parametrize(
    ("user", "verb", "resource", "more", "expected"),
    [
        ("system:kube-scheduler", "update", "resourceclaims/status", {"group": DRA, "namespace": "y"}, True),
        ("system:kube-scheduler", "update", "resourceclaims/binding", {"group": DRA}, True),
        ("system:kube-scheduler", "arbitrary-node:update", "resourceclaims/driver", {"group": DRA}, False),
        ("system:kube-scheduler", "create", "pods/binding", {"namespace": "y"}, True),
        ("system:kube-scheduler", "create", "pods", {"namespace": "y"}, False),
        ("system:kube-scheduler", "update", "leases", {"group": "coordination.k8s.io", "name": "kube-scheduler"}, True),
        ("system:kube-scheduler", "update", "leases", {"group": "coordination.k8s.io", "name": "other"}, False),
        ("system:kube-controller-manager", "watch", "computedomains", {"group": "resource.nvidia.com"}, True),
        ("system:kube-controller-manager", "delete", "pods", {"namespace": "y"}, False),
        (
            "system:serviceaccount:kube-system:resource-claim-controller",
            "patch",
            "resourceclaims/binding",
            {"group": DRA},
            True,
        ),
        ("system:serviceaccount:kube-system:replicaset-controller", "create", "pods", {"namespace": "y"}, True),
        (
            "system:serviceaccount:kube-system:generic-garbage-collector",
            "delete",
            "computedomains",
            {"group": "x"},
            True,
        ),
        (
            "system:serviceaccount:elsewhere:generic-garbage-collector",
            "delete",
            "computedomains",
            {"group": "x"},
            False,
        ),
    ],
)
def test_the_platform_has_the_rights_of_a_real_cluster(
    cluster: Cluster, user: str, verb: str, resource: str, more: dict[str, str], expected: bool
) -> None:
    assert cluster.may(UserInfo(user), verb, resource, **more) is expected


def test_a_refusal_has_the_words_of_the_server(cluster: Cluster) -> None:
    request = Request(verb="get", resource="pods", namespace="y", name="p")
    assert (
        cluster.authorizer.refusal(UserInfo("x"), request)
        == 'User "x" cannot get resource "pods" in API group "" in the namespace "y"'
    )
    assert forbidden_message(UserInfo("x"), request) == (
        'pods "p" is forbidden: User "x" cannot get resource "pods" in API group "" in the namespace "y"'
    )
    status = Request(verb="patch", group=DRA, resource="resourceclaims", subresource="status")
    assert forbidden_message(UserInfo("<x>"), status) == (
        'resourceclaims.resource.k8s.io is forbidden: User "&lt;x&gt;" cannot patch resource '
        '"resourceclaims/status" in API group "resource.k8s.io" at the cluster scope'
    )
    assert cluster.authorizer.refusal(UserInfo("x"), Request(verb="get", path="/metrics")) == (
        'User "x" cannot get path "/metrics"'
    )


WORDS = st.sampled_from(["get", "list", "pods", "nodes", "a", "b", "*"])
RULES = st.fixed_dictionaries(
    {
        "verbs": st.lists(WORDS, max_size=2),
        "apiGroups": st.lists(st.sampled_from(["", "apps", "*"]), max_size=2),
        "resources": st.lists(st.sampled_from(["pods", "nodes", "pods/status", "*/status", "*"]), max_size=2),
        "resourceNames": st.lists(st.sampled_from(["a", "b"]), max_size=1),
    }
)
REQUESTS = st.fixed_dictionaries(
    {
        "verb": st.sampled_from(["get", "list"]),
        "group": st.sampled_from(["", "apps"]),
        "resource": st.sampled_from(["pods", "nodes"]),
        "subresource": st.sampled_from(["", "status"]),
        "namespace": st.sampled_from(["", "y"]),
        "name": st.sampled_from(["", "a", "b"]),
    }
)


@given(st.lists(RULES, max_size=3), RULES, REQUESTS)
def test_one_more_rule_never_takes_a_right_away(
    rules: list[dict[str, Any]], extra: dict[str, Any], request: dict[str, str]
) -> None:
    cluster = Cluster()
    cluster.add("clusterroles", "r", rules=rules)
    cluster.add("clusterrolebindings", "b", roleRef={"kind": "ClusterRole", "name": "r"}, subjects=[USER])
    before = cluster.authorizer.allowed(KATE, **request)
    rules.append(extra)
    assert cluster.authorizer.allowed(KATE, **request) >= before


@given(RULES, REQUESTS)
def test_an_empty_part_of_a_rule_matches_nothing_but_names(rule: dict[str, Any], request: dict[str, str]) -> None:
    cluster = Cluster()
    cluster.grant(rule, to=USER)
    if cluster.authorizer.allowed(KATE, **request):
        assert rule["verbs"]
        assert rule["apiGroups"]
        assert rule["resources"]

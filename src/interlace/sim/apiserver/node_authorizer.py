"""What a kubelet may do: its own node, its pods, and what those pods need.

A subset of the node authorizer of Kubernetes 1.36. Invariant: nothing here depends on roles; an
answer is None (allowed), or the reason that the server adds to its refusal, which may be empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

Lookup = Callable[[str, str | None], Iterable[dict[str, Any]]]
"""Objects of a resource (plural) in a namespace; None means all namespaces."""

NODES_GROUP: Final = "system:nodes"
NODE_PREFIX: Final = "system:node:"

_UNIFORM: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("", "services"): frozenset({"get", "list", "watch"}),
    ("", "events"): frozenset({"create", "update", "patch"}),
    ("events.k8s.io", "events"): frozenset({"create", "update", "patch"}),
    ("", "endpoints"): frozenset({"get"}),
    ("node.k8s.io", "runtimeclasses"): frozenset({"get", "list", "watch"}),
    ("storage.k8s.io", "csidrivers"): frozenset({"get", "list", "watch"}),
    ("certificates.k8s.io", "certificatesigningrequests"): frozenset({"create", "get", "list", "watch"}),
    ("authentication.k8s.io", "tokenreviews"): frozenset({"create"}),
    ("authorization.k8s.io", "subjectaccessreviews"): frozenset({"create"}),
    ("authorization.k8s.io", "localsubjectaccessreviews"): frozenset({"create"}),
}
"""Rights that every node has, whatever runs on it."""


def node_refusal(
    node: str,
    lookup: Lookup,
    *,
    verb: str,
    group: str,
    resource: str,
    subresource: str,
    namespace: str,
    name: str,
    fields: str,
) -> str | None:
    """None if the node may do it; else why not, in the server's words."""
    selected = dict(part.partition("=")[::2] for part in fields.replace("==", "=").split(",") if part)
    match group, resource:
        case "", "nodes":
            return _own_node(node, verb, subresource, name)
        case "", "pods":
            return _own_pods(node, lookup, verb, subresource, namespace, name, selected)
        case "", "serviceaccounts":
            return _own_accounts(node, lookup, verb, subresource, namespace, name)
        case "", "secrets" | "configmaps":
            return _own_files(node, lookup, verb, subresource, namespace, name, resource)
        case "coordination.k8s.io", "leases":
            return _own_lease(node, verb, namespace, name)
        case "resource.k8s.io", "resourceclaims":
            return _own_claims(node, lookup, verb, subresource, namespace, name)
        case "resource.k8s.io", "resourceslices":
            return _own_slices(node, lookup, verb, subresource, name, selected)
    return None if not subresource and verb in _UNIFORM.get((group, resource), ()) else ""


def _unrelated(node: str) -> str:
    return f"no relationship found between node '{node}' and this object"


def _pods_of(node: str, lookup: Lookup, namespace: str) -> Iterator[dict[str, Any]]:
    return (p for p in lookup("pods", namespace) if p.get("spec", {}).get("nodeName") == node)


def _own_node(node: str, verb: str, subresource: str, name: str) -> str | None:
    if subresource == "status":
        return None if verb in {"update", "patch"} else ""
    if subresource:
        return ""
    if verb in {"create", "update", "patch"}:
        return None
    if verb not in {"get", "list", "watch"}:
        return ""
    if name == node:
        return None
    if not name:
        return f"node '{node}' cannot read all nodes, only its own Node object"
    return f"node '{node}' cannot read '{name}', only its own Node object"


def _own_pods(
    node: str, lookup: Lookup, verb: str, subresource: str, namespace: str, name: str, selected: dict[str, str]
) -> str | None:
    match subresource, verb:
        case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
            return None
        case "", "list" | "watch" if selected.get("spec.nodeName") == node:
            return None
        case "", "list" | "watch" if not name:
            return "can only list/watch pods with spec.nodeName field selector"
        case "", "get" | "list" | "watch":
            known = any(p["metadata"]["name"] == name for p in _pods_of(node, lookup, namespace))
            return None if known else _unrelated(node)
    return ""


def _own_accounts(node: str, lookup: Lookup, verb: str, subresource: str, namespace: str, name: str) -> str | None:
    if (verb, subresource) not in {("create", "token"), ("get", "")} or not name:
        return "can only create tokens for individual service accounts"
    used = {p["spec"].get("serviceAccountName") or "default" for p in _pods_of(node, lookup, namespace)}
    return None if name in used else _unrelated(node)


def _own_files(
    node: str, lookup: Lookup, verb: str, subresource: str, namespace: str, name: str, resource: str
) -> str | None:
    if verb not in {"get", "list", "watch"}:
        return "can only read resources of this type"
    if subresource:
        return "cannot read subresource"
    if not namespace:
        return "can only read namespaced object of this type"
    if not name:
        return "No Object name found"
    used = (_names_in(p["spec"], resource) for p in _pods_of(node, lookup, namespace))
    return None if any(name in names for names in used) else _unrelated(node)


def _names_in(spec: Any, resource: str) -> set[str]:
    """Secrets or config maps that a pod spec mentions: volumes, projections, environment, pull secrets."""
    single = resource.removesuffix("s")
    mentions = {single, f"{single}Ref", f"{single}KeyRef", "configMap", "configMapRef", "configMapKeyRef"}
    wanted = {m for m in mentions if m.lower().startswith(single)}
    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                if key in wanted and isinstance(item, dict):
                    found.update(str(item[k]) for k in ("name", "secretName") if k in item)
                elif key == "imagePullSecrets" and single == "secret":
                    found.update(str(i.get("name")) for i in item)
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(spec)
    return found


def _own_lease(node: str, verb: str, namespace: str, name: str) -> str | None:
    if verb not in {"get", "create", "update", "patch", "delete"}:
        return "can only get, create, update, patch, or delete a node lease"
    if namespace != "kube-node-lease":
        return 'can only access leases in the "kube-node-lease" system namespace'
    if verb != "create" and name != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def _own_claims(node: str, lookup: Lookup, verb: str, subresource: str, namespace: str, name: str) -> str | None:
    if verb != "get":
        return "can only get individual resources of this type"
    if subresource:
        return "cannot get subresource"
    for pod in _pods_of(node, lookup, namespace):
        named = {c.get("resourceClaimName") for c in pod["spec"].get("resourceClaims", ())}
        made = {c.get("resourceClaimName") for c in pod.get("status", {}).get("resourceClaimStatuses", ())}
        if name in named | made:
            return None
    return _unrelated(node)


def _own_slices(
    node: str, lookup: Lookup, verb: str, subresource: str, name: str, selected: dict[str, str]
) -> str | None:
    if subresource:
        return "cannot authorize ResourceSlice subresources"
    if verb == "create":
        return None
    if verb in {"list", "watch", "deletecollection"}:
        if selected.get("spec.nodeName") == node:
            return None
        return "can only list/watch/deletecollection resourceslices with nodeName field selector"
    slices = lookup("resourceslices", None)
    known = any(s["metadata"]["name"] == name and s["spec"].get("nodeName") == node for s in slices)
    return None if known else _unrelated(node)

"""Who may do what: roles, bindings, the rights that clusters start with, and the kubelet's.

Rights are read at every question from the given lookup, so a new binding counts at once.
Invariant: refusals have the text of the real server, reason of the node authorizer included.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from interlace.sim.apiserver.auth import UserInfo
from interlace.sim.apiserver.cause import quote
from interlace.sim.apiserver.node_authorizer import NODE_PREFIX, NODES_GROUP, Lookup, node_refusal
from interlace.sim.apiserver.rbac_defaults import CLUSTER_ROLES, CONTROLLERS, GROUP_ROLES, USER_ROLES

_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_CONTROLLER_PREFIX: Final = "system:serviceaccount:kube-system:"
_ROLE_PREFIX: Final = "system:controller:"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: a resource request, or one for ``path`` if ``resource`` is empty."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    fields: str = ""
    """Field selector of a list or watch; a node is judged by it."""

    @property
    def combined(self) -> str:
        """``resource`` or ``resource/subresource``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Authorizer:
    """Answers from the objects that ``lookup(plural, namespace)`` yields."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def allowed(
        self,
        user: UserInfo,
        *,
        verb: str,
        group: str = "",
        resource: str = "",
        subresource: str = "",
        namespace: str = "",
        name: str = "",
        path: str = "",
        fields: str = "",
    ) -> bool:
        """Whether the user may; see ``refusal`` for the reason."""
        request = Request(
            verb=verb,
            group=group,
            resource=resource,
            subresource=subresource,
            namespace=namespace,
            name=name,
            path=path,
            fields=fields,
        )
        return self.refusal(user, request) is None

    def refusal(self, user: UserInfo, request: Request) -> str | None:
        """None if allowed, else why not: ``User "x" cannot get resource "pods" ...``, without what is forbidden."""
        if any(_allows(rule, request) for rule in self._rules(user, request.namespace)):
            return None
        if NODES_GROUP in user.groups and user.username.startswith(NODE_PREFIX) and request.resource:
            reason = node_refusal(
                user.username.removeprefix(NODE_PREFIX),
                self._lookup,
                verb=request.verb,
                group=request.group,
                resource=request.resource,
                subresource=request.subresource,
                namespace=request.namespace,
                name=request.name,
                fields=request.fields,
            )
            return None if reason is None else _why(user, request, reason)
        return _why(user, request)

    def _rules(self, user: UserInfo, namespace: str) -> Iterator[dict[str, Any]]:
        yield from _default_rules(user)
        for binding in self._lookup("clusterrolebindings", None):
            if _binds(binding, user, ""):
                yield from self._role_rules(binding["roleRef"], "")
        if namespace:
            for binding in self._lookup("rolebindings", namespace):
                if _binds(binding, user, namespace):
                    yield from self._role_rules(binding["roleRef"], namespace)

    def _role_rules(self, reference: Mapping[str, Any], namespace: str) -> Iterable[dict[str, Any]]:
        name = reference["name"]
        if reference["kind"] == "Role":
            roles = self._lookup("roles", namespace) if namespace else ()
        else:
            roles = self._lookup("clusterroles", None)
        for role in roles:
            if role["metadata"]["name"] == name:
                return role.get("rules") or ()
        if reference["kind"] != "ClusterRole":
            return ()
        return CLUSTER_ROLES.get(name) or CONTROLLERS.get(name.removeprefix(_ROLE_PREFIX), [])


def _default_rules(user: UserInfo) -> Iterator[dict[str, Any]]:
    names = [*USER_ROLES.get(user.username, ()), *(r for g in user.groups for r in GROUP_ROLES.get(g, ()))]
    yield from itertools.chain.from_iterable(CLUSTER_ROLES[n] for n in names)
    if user.username.startswith(_CONTROLLER_PREFIX):
        yield from CONTROLLERS.get(user.username.removeprefix(_CONTROLLER_PREFIX), ())


def _binds(binding: Mapping[str, Any], user: UserInfo, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        match subject["kind"]:
            case "User" if subject["name"] == user.username:
                return True
            case "Group" if subject["name"] in user.groups:
                return True
            case "ServiceAccount":
                home = subject.get("namespace") or namespace
                if home and user.username == f"system:serviceaccount:{home}:{subject['name']}":
                    return True
    return False


def _among(value: str, listed: Iterable[str]) -> bool:
    return any(item in {"*", value} for item in listed)


def _allows(rule: Mapping[str, Any], request: Request) -> bool:
    if not _among(request.verb, rule.get("verbs", ())):
        return False
    if not request.resource:
        return any(_path_matches(url, request.path) for url in rule.get("nonResourceURLs") or ())
    if not _among(request.group, rule.get("apiGroups") or ()):
        return False
    resources = rule.get("resources") or ()
    anywhere = bool(request.subresource) and f"*/{request.subresource}" in resources
    names = rule.get("resourceNames")
    return (anywhere or _among(request.combined, resources)) and (not names or request.name in names)


def _path_matches(url: str, path: str) -> bool:
    return url in {"*", path} or (url.endswith("*") and path.startswith(url.rstrip("*")))


def _why(user: UserInfo, request: Request, reason: str = "") -> str:
    if not request.resource:
        text = f"User {quote(user.username)} cannot {request.verb} path {quote(request.path)}"
    else:
        scope = f"in the namespace {quote(request.namespace)}" if request.namespace else "at the cluster scope"
        text = (
            f"User {quote(user.username)} cannot {request.verb} resource {quote(request.combined)} "
            f"in API group {quote(request.group)} {scope}"
        )
    text = text.translate(_HTML)
    return f"{text}: {reason}" if reason else text


def forbidden_message(user: UserInfo, request: Request) -> str:
    """The whole message of a 403 on a resource: what is forbidden, and why."""
    qualified = f"{request.resource}.{request.group}" if request.group else request.resource
    head = f"{qualified} {quote(request.name)}" if request.name else qualified
    return f"{head} is forbidden: {_why(user, request)}"

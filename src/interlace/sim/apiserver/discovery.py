"""Discovery documents: what is served, for clients that ask.

Invariant: a document depends on the served kinds and the version alone.
"""

from __future__ import annotations

from typing import Any

from interlace.sim.apiserver.kinds import Kind, Kinds
from interlace.sim.apiserver.objects import Json

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_PRIORITY = ("", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "batch", "policy")
_SUB_VERBS = {
    "status": ("get", "patch", "update"),
    "scale": ("get", "patch", "update"),
    "finalize": ("update",),
    "binding": ("create",),
    "eviction": ("create",),
    "log": ("get",),
    "token": ("create",),
}
_SUB_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}


def version_info(version: str) -> Json:
    """``/version``."""
    major, minor = version.lstrip("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": version,
        "gitCommit": "simulated",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "simulated by interlace",
    }


def _groups(kinds: Kinds) -> list[tuple[str, list[str]]]:
    versions = kinds.versions()
    named = [group for group in versions if group]
    named.sort(key=lambda group: (_PRIORITY.index(group) if group in _PRIORITY else len(_PRIORITY), group))
    return [(group, versions[group]) for group in named]


def _sub_kind(kind: Kind, name: str) -> tuple[str, str, str]:
    return _SUB_KINDS.get(name, (kind.group, kind.version, kind.kind))


def resource_list(kinds: Kinds, group: str, version: str) -> Json | None:
    """``/api/v1`` or ``/apis/<group>/<version>``; None if it is not served."""
    found = sorted((k for k in kinds if k.group == group and k.version == version), key=lambda k: k.plural)
    if not found:
        return None
    resources: list[Json] = []
    for kind in found:
        entry: Json = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(kind.verbs),
        }
        if kind.short_names:
            entry["shortNames"] = list(kind.short_names)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        resources.append(entry)
        for name in kind.subresources:
            sub_group, sub_version, sub_kind = _sub_kind(kind, name)
            sub: Json = {
                "name": f"{kind.plural}/{name}",
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": sub_kind,
                "verbs": list(_SUB_VERBS[name]),
            }
            if name in _SUB_KINDS:
                sub |= {"group": sub_group, "version": sub_version}
            resources.append(sub)
    api = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api, "resources": resources}


def api_versions(address: str) -> Json:
    """``/api``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group(group: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def group_list(kinds: Kinds) -> Json:
    """``/apis``."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(group, versions) for group, versions in _groups(kinds)],
    }


def group(kinds: Kinds, name: str) -> Json | None:
    """``/apis/<group>``; None if it is not served."""
    versions = kinds.versions().get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if name and versions else None


def aggregated(kinds: Kinds, *, core: bool) -> Json:
    """``/api`` (core) or ``/apis`` in the form that lists all resources at once."""
    groups = [("", ["v1"])] if core else _groups(kinds)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
                "versions": [_version_entry(kinds, name, version) for version in versions],
            }
            for name, versions in groups
        ],
    }


def _version_entry(kinds: Kinds, group_name: str, version: str) -> Json:
    found = sorted((k for k in kinds if k.group == group_name and k.version == version), key=lambda k: k.plural)
    return {"version": version, "freshness": "Current", "resources": [_entry(kind) for kind in found]}


def _gvk(group_name: str, version: str, kind: str) -> Json:
    return {"group": group_name, "version": version, "kind": kind}


def _entry(kind: Kind) -> Json:
    out: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": _gvk(kind.group, kind.version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        out["shortNames"] = list(kind.short_names)
    if kind.categories:
        out["categories"] = list(kind.categories)
    if kind.subresources:
        out["subresources"] = [
            {
                "subresource": name,
                "responseKind": _gvk(*_sub_kind(kind, name)),
                "verbs": list(_SUB_VERBS[name]),
            }
            for name in kind.subresources
        ]
    return out

"""The requests that change a resource in place, one for each group of fields that the API changes together. Pure.

Invariant: a request names the fields that differ and what the API insists on beside them, nothing else; fingerprints
and versions come from what was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from interlace.gke.bodies.requests import call, change
from interlace.gke.difference import Difference
from interlace.gke.names import HOLD
from interlace.gke.request import Request
from interlace.gke.resource import Resource

_POOL_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "locations": ("locations",),
    "upgrade settings": ("upgradeSettings",),
    "gvnic": ("config", "gvnic"),
    "image": ("config", "imageType"),
}
"""Update of a node pool to the one field that it sends as it is."""


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` as in `fields`; ``request`` without an id."""

    name: str
    request: Request


def updates(
    resource: Resource, have: Mapping[str, Any], found: Iterable[Difference], *, version: str | None = None
) -> tuple[Update, ...]:
    """Requests that take ``have`` to ``resource``; differences that need a replacement are left out."""
    names = dict.fromkeys(each.how for each in found if not each.replaces)
    top = tuple(dict.fromkeys(each.path.partition(".")[0] for each in found if each.how == "update"))
    made = []
    for name in names:
        if name == "update":
            made += [Update(name=f"update {field}", request=_cluster_field(resource, field, version)) for field in top]
        else:
            made.append(Update(name=name, request=_request(resource, have, name, found=found, version=version)))
    return tuple(made)


def _maintenance(want: Mapping[str, Any], have: Mapping[str, Any]) -> dict[str, Any]:
    """The whole policy, since the API replaces it: windows and exclusions of others stay, our hold is as meant."""
    window = {**(have.get("window") or {}), **(want.get("window") or {})}
    others = (have.get("window") or {}).get("maintenanceExclusions") or {}
    window["maintenanceExclusions"] = {
        **{name: each for name, each in others.items() if name != HOLD},
        **((want.get("window") or {}).get("maintenanceExclusions") or {}),
    }
    return {**have, **want, "window": window, "resourceVersion": have.get("resourceVersion", "")}


def updates_named(resource: Resource, have: Mapping[str, Any], name: str, *, version: str | None = None) -> Request:
    """The request of one update, whatever differs."""
    return _request(resource, have, name, found=(), version=version)


def covers(name: str, difference: Difference) -> bool:
    """Whether the update ``name`` is the one that takes this difference away."""
    return name in {difference.how, f"{difference.how} {difference.path.partition('.')[0]}"}


def _request(
    resource: Resource, have: Mapping[str, Any], name: str, *, found: Iterable[Difference], version: str | None
) -> Request:
    body = resource.body
    config = body.get("config") or {}
    if name == "patch":
        return _patch(resource, have, found, version)
    if name == "private access":
        flag = {"privateIpGoogleAccess": bool(body.get("privateIpGoogleAccess"))}
        return _post(resource, "setPrivateIpGoogleAccess", flag, version)
    if name == "reservation size":
        count = str((body.get("specificReservation") or {}).get("count"))
        return _post(resource, "resize", {"specificSkuCount": count}, version)
    if name == "version":
        return _put_cluster(resource, {"desiredMasterVersion": body["initialClusterVersion"]}, version)
    if name == "cluster labels":
        labels = {**_theirs(have.get("resourceLabels")), **(body.get("resourceLabels") or {})}
        more = {"resourceLabels": labels, "labelFingerprint": have.get("labelFingerprint", "")}
        return _post(resource, "setResourceLabels", more, version)
    if name == "maintenance":
        policy = _maintenance(body.get("maintenancePolicy") or {}, have.get("maintenancePolicy") or {})
        return _post(resource, "setMaintenancePolicy", {"maintenancePolicy": policy}, version)
    if name == "size":
        return _post(resource, "setSize", {"nodeCount": body.get("initialNodeCount", 0)}, version)
    if name == "autoscaling":
        scaling = body.get("autoscaling") or {"enabled": False}
        return _post(resource, "setAutoscaling", {"autoscaling": scaling}, version)
    if name == "management":
        return _post(resource, "setManagement", {"management": body["management"]}, version)
    if name == "pool version":
        return _put(resource, {"nodeVersion": body["version"]}, version)
    if name == "labels":
        return _put(resource, {"labels": {"labels": config.get("labels") or {}}}, version)
    if name == "taints":
        return _put(resource, {"taints": {"taints": config.get("taints") or []}}, version)
    if name == "tags":
        return _put(resource, {"tags": {"tags": config.get("tags") or []}}, version)
    if name == "resource labels":
        return _put(resource, {"resourceLabels": {"labels": config.get("resourceLabels") or {}}}, version)
    if name == "disk":
        disk = {"diskType": config.get("diskType"), "diskSizeGb": config.get("diskSizeGb")}
        # An int64 of this request, so text, where the pool's own body has a number.
        return _put(resource, {field: str(value) for field, value in disk.items() if value}, version)
    value: Any = body
    for part in _POOL_FIELDS[name]:
        value = (value or {}).get(part)
    if name == "image":
        value = value or "COS_CONTAINERD"
    return _put(resource, {_POOL_FIELDS[name][-1]: value}, version)


def _patch(resource: Resource, have: Mapping[str, Any], found: Iterable[Difference], version: str | None) -> Request:
    """PATCH of a Compute resource: the whole of each top field that differs."""
    body: dict[str, Any] = {"name": resource.key.name} if resource.key.kind == "firewall" else {}
    for each in found:
        if each.how == "patch":
            field = each.path.partition(".")[0]
            body[field] = resource.body.get(field, each.want if field == each.path else None)
    if resource.key.kind == "subnetwork":
        body["fingerprint"] = have.get("fingerprint", "")
        if "secondaryIpRanges" in body:
            names = {each.get("rangeName") for each in body["secondaryIpRanges"] or ()}
            theirs = [
                each
                for each in have.get("secondaryIpRanges") or ()
                if str(each.get("rangeName", "")).startswith("gke-")
            ]
            body["secondaryIpRanges"] = [
                *(body["secondaryIpRanges"] or ()),
                *(e for e in theirs if e.get("rangeName") not in names),
            ]
    return _put(resource, body, version)


def _cluster_field(resource: Resource, field: str, version: str | None) -> Request:
    desired = f"desired{field[0].upper()}{field[1:]}"
    return _put_cluster(resource, {desired: resource.body.get(field)}, version)


def _put_cluster(resource: Resource, update: Mapping[str, Any], version: str | None) -> Request:
    return _put(resource, {"update": dict(update)}, version)


def _put(resource: Resource, body: Mapping[str, Any], version: str | None) -> Request:
    return change(resource.key, dict(body), project=resource.project, version=version or resource.version)


def _post(resource: Resource, verb: str, body: Mapping[str, Any], version: str | None) -> Request:
    return call(resource.key, verb, dict(body), project=resource.project, version=version or resource.version)


def _theirs(labels: Mapping[str, str] | None) -> dict[str, str]:
    return {name: value for name, value in (labels or {}).items() if name.startswith("goog-")}

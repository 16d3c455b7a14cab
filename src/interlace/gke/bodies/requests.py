"""The requests that create, read and delete a resource: version, path and wrapper of each kind, in one table.

Invariant: a request is made of the resource alone, so the same resource always gives the same request.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from interlace.gke.request import Request
from interlace.gke.resource import Key, Kind, Resource

QUERY: Final = {"alt": "json"}

_COMPUTE: Final[dict[Kind, tuple[str, str]]] = {
    "network": ("", "networks"),
    "subnetwork": ("regions", "subnetworks"),
    "firewall": ("", "firewalls"),
    "resourcePolicy": ("regions", "resourcePolicies"),
    "reservation": ("zones", "reservations"),
}
"""Kind to scope (none is global) and collection."""


def service_of(kind: Kind) -> Literal["compute", "container"]:
    """The API that a kind belongs to."""
    return "compute" if kind in _COMPUTE else "container"


def parent_of(key: Key, *, project: str) -> str:
    """What a resource of Kubernetes Engine lies in, ``projects/P/locations/L`` and for pools ``/clusters/C``."""
    place, _, cluster = key.place.partition("/")
    parent = f"projects/{project}/locations/{place}"
    return f"{parent}/clusters/{cluster}" if key.kind == "nodePool" else parent


def collection_of(key: Key, *, project: str, version: str = "v1") -> str:
    """Path of the collection that a resource lies in: where it is created and where it is listed."""
    if service_of(key.kind) == "container":
        collection = "nodePools" if key.kind == "nodePool" else "clusters"
        return f"/{version}/{parent_of(key, project=project)}/{collection}"
    scope, collection = _COMPUTE[key.kind]
    place = f"{scope}/{key.place}" if scope else "global"
    return f"/compute/{version}/projects/{project}/{place}/{collection}"


def path_of(key: Key, *, project: str, version: str = "v1") -> str:
    """Path of a resource."""
    return f"{collection_of(key, project=project, version=version)}/{key.name}"


def create(resource: Resource) -> Request:
    """The request that makes the resource."""
    key = resource.key
    body: dict[str, Any] = resource.body
    if service_of(key.kind) == "container":
        wrapper = "nodePool" if key.kind == "nodePool" else "cluster"
        body = {wrapper: resource.body, "parent": parent_of(key, project=resource.project)}
    path = collection_of(key, project=resource.project, version=resource.version)
    return Request(service=service_of(key.kind), method="POST", path=path, query=dict(QUERY), body=body)


def read(key: Key, *, project: str, version: str = "v1") -> Request:
    """The request that reads a resource as it is."""
    path = path_of(key, project=project, version=version)
    return Request(service=service_of(key.kind), method="GET", path=path, query=dict(QUERY))


def listing(key: Key, *, project: str, version: str = "v1") -> Request:
    """The request that lists everything that lies where the resource lies."""
    path = collection_of(key, project=project, version=version)
    return Request(service=service_of(key.kind), method="GET", path=path, query=dict(QUERY))


def change(key: Key, body: dict[str, Any], *, project: str, version: str = "v1") -> Request:
    """The request that changes some fields: PATCH for Compute, PUT with the name for Kubernetes Engine."""
    path = path_of(key, project=project, version=version)
    if service_of(key.kind) == "compute":
        return Request(service="compute", method="PATCH", path=path, query=dict(QUERY), body=body)
    named = body | {"name": name_of(key, project=project)}
    return Request(service="container", method="PUT", path=path, query=dict(QUERY), body=named)


def call(key: Key, verb: str, body: dict[str, Any], *, project: str, version: str = "v1") -> Request:
    """A verb of a resource that is more than a change of fields: ``setSize``, ``setPrivateIpGoogleAccess``."""
    path = path_of(key, project=project, version=version)
    if service_of(key.kind) == "compute":
        return Request(service="compute", method="POST", path=f"{path}/{verb}", query=dict(QUERY), body=body)
    named = body | {"name": name_of(key, project=project)}
    return Request(service="container", method="POST", path=f"{path}:{verb}", query=dict(QUERY), body=named)


def name_of(key: Key, *, project: str) -> str:
    """Full name of a resource of Kubernetes Engine, as its requests repeat it."""
    collection = "nodePools" if key.kind == "nodePool" else "clusters"
    return f"{parent_of(key, project=project)}/{collection}/{key.name}"


def delete(key: Key, *, project: str, version: str = "v1") -> Request:
    """The request that takes a resource away."""
    path = path_of(key, project=project, version=version)
    return Request(service=service_of(key.kind), method="DELETE", path=path, query=dict(QUERY))

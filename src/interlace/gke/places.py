"""Where resources live: scopes of paths, the cluster that a resource belongs to, and which resource a link means.

Invariant: what answers and operations name (full URLs, partial paths, project numbers, ``zones`` or ``locations``)
becomes the same Key as the one that we use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from interlace.gke.resource import Key, Kind

CONTAINER: Final = frozenset[Kind]({"cluster", "nodePool"})

_LINK: Final = re.compile(
    r"(?:https?://[^/]+)?/?(?:compute/)?(?:(?:v1|beta|alpha|v1beta1|v1alpha1)/)?"
    r"projects/(?P<project>[^/]+)/(?:(?P<global>global)|(?:zones|regions|locations)/(?P<place>[^/]+))"
    r"/(?P<collection>[A-Za-z]+)/(?P<name>[^/:?]+)(?:/nodePools/(?P<pool>[^/:?]+))?"
)
_KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "networks": "network",
        "subnetworks": "subnetwork",
        "firewalls": "firewall",
        "resourcePolicies": "resourcePolicy",
        "reservations": "reservation",
        "clusters": "cluster",
    }
)


def scope_of(key: Key) -> str:
    """The part of a path between project and collection: ``global``, ``regions/R``, ``zones/Z``, ``locations/L``."""
    if key.kind in CONTAINER:
        return f"locations/{location_of(key)}"
    if key.place == "global":
        return "global"
    return f"zones/{key.place}" if key.kind == "reservation" else f"regions/{key.place}"


def location_of(key: Key) -> str:
    """Location of a cluster or of the cluster of a node pool."""
    return key.place.partition("/")[0]


def cluster_of(key: Key) -> Key | None:
    """The cluster whose operations exclude each other with those of ``key``; None for compute resources."""
    if key.kind == "cluster":
        return key
    if key.kind == "nodePool":
        location, _, name = key.place.partition("/")
        return Key("cluster", location, name)
    return None


def root(service: str, *, project: str, version: str) -> str:
    """Path of a project in an API: ``/compute/v1/projects/P`` or ``/v1beta1/projects/P``."""
    return f"/compute/{version}/projects/{project}" if service == "compute" else f"/{version}/projects/{project}"


def key_of(link: str) -> Key | None:
    """The resource that a link or partial path means; None for what is no resource of ours."""
    match = _LINK.match(link)
    kind = _KINDS.get(match["collection"]) if match else None
    if match is None or kind is None:
        return None
    place = match["global"] or match["place"]
    if match["pool"]:
        return Key("nodePool", f"{place}/{match['name']}", match["pool"]) if kind == "cluster" else None
    return Key(kind, place, match["name"])


def short(reference: str) -> str:
    """The last part of a link or path: the name of what it means."""
    return reference.rstrip("/").rpartition("/")[2]

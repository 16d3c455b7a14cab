"""States that are not there yet: what requests would make, and what follows from a cluster file. Pure.

Invariant: each value knows where it came from, so that a finding points into the requests or the file that its reader
has before him; what neither of them holds was not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlace.gke.cluster import FabricCluster
from interlace.gke.observed.bundle import convert
from interlace.gke.observed.state import State
from interlace.gke.places import root
from interlace.gke.request import Request
from interlace.gke.resource import Resource
from interlace.rules.pointer import moved, pointer

SECTIONS: Final[Mapping[str, str]] = {
    "network": "networks",
    "subnetwork": "subnetworks",
    "firewall": "firewalls",
    "resourcePolicy": "resourcePolicies",
}
"""Kind of a resource to the list of a state that it belongs to."""

_COLLECTIONS: Final = {"networks": "network", "subnetworks": "subnetwork", "firewalls": "firewall",
                       "resourcePolicies": "resourcePolicy"}  # fmt: skip
_COMPUTE: Final = re.compile(
    r"/compute/[^/]+/projects/(?P<project>[^/]+)/(?:global|(?:regions|zones)/(?P<place>[^/]+))/(?P<collection>\w+)\Z"
)
_CLUSTERS: Final = re.compile(
    r"/v1\w*/projects/(?P<project>[^/]+)/(?:locations|zones|regions)/(?P<place>[^/]+)/clusters"
    r"(?:/(?P<cluster>[^/]+)/nodePools)?\Z"
)
_LIST_AT: Final = re.compile(r"/(networks|subnetworks|firewalls|resourcePolicies)/(\d+)")
_POOL_AT: Final = re.compile(r"/cluster/nodePools/(\d+)(?:/(.*))?")

_POOL_FIELDS: Final = (
    ("config/machineType", "/spec/family"),
    ("config/accelerators/0/gpuDriver", "driver"),
    ("config/accelerators", "/spec/family"),
    ("config/imageType", "imageType"),
    ("config/oauthScopes", "scopes"),
    ("config/serviceAccount", "serviceAccount"),
    ("config/reservationAffinity", "reservation"),
    ("config/hostMaintenancePolicy", "hostMaintenance"),
    ("config/spot", "spot"),
    ("config/resourceLabels", "/metadata/labels"),
    ("networkConfig", "/spec/network"),
    ("placementPolicy", "placement"),
    ("management", "/spec/upgrades"),
    ("upgradeSettings", "surge"),
    ("autoscaling", "autoscaling"),
    ("locations", "zones"),
    ("initialNodeCount", "nodes"),
    ("version", "/spec/version"),
)
"""Field of a node pool, or what it begins with, to the key of a pool of the file, or to a pointer into the file."""
_CLUSTER_FIELDS: Final = (
    ("/cluster/initialClusterVersion", "/spec/version"),
    ("/cluster/releaseChannel", "/spec/upgrades/channel"),
    ("/cluster/ipAllocationPolicy", "/spec/primary"),
    ("/cluster/resourceLabels", "/metadata/labels"),
    ("/cluster/network", "/spec/primary/network"),
    ("/cluster", "/spec"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A document of the form of a state, and where each part of it came from."""

    document: dict[str, Any]
    origins: dict[str, str]

    @property
    def state(self) -> State:
        """Raises BundleError where a body has not the form of its API."""
        return convert(self.document)

    def place(self, where: str) -> str | None:
        """The pointer into the source; None for what the source does not speak of."""
        found = moved(where, origins=self.origins)
        return found if found != where or where in self.origins.values() else None


def requested(requests: Iterable[Request]) -> tuple[Draft, ...]:
    """What requests would make: a draft for each cluster that they make or give pools to, at least one.

    Pointers are those of ``{"requests": [...]}``.
    """
    shared: dict[str, Any] = {section: [] for section in SECTIONS.values()}
    origins: dict[str, str] = {}
    clusters: dict[tuple[str, str], dict[str, Any]] = {}
    homes: dict[tuple[str, str], dict[str, str]] = {}
    project = ""
    for index, request in enumerate(requests):
        body, at = request.body or {}, pointer("requests", index, "body")
        compute, container = _COMPUTE.match(request.path), _CLUSTERS.match(request.path)
        if request.method != "POST" or not (compute or container):
            continue
        if compute and compute["collection"] in _COLLECTIONS:
            project = project or compute["project"]
            section = SECTIONS[_COLLECTIONS[compute["collection"]]]
            origins[f"/{section}/{len(shared[section])}"] = at
            shared[section].append(_placed(body, compute["place"]))
        elif container:
            project = project or container["project"]
            made = body.get("cluster") if not container["cluster"] else None
            name = container["cluster"] or (str(made.get("name", "")) if isinstance(made, dict) else "")
            key = (container["place"], name)
            cluster = clusters.setdefault(key, {"name": name, "location": container["place"], "nodePools": []})
            home = homes.setdefault(key, {})
            if container["cluster"]:
                home[f"/cluster/nodePools/{len(cluster['nodePools'])}"] = f"{at}/nodePool"
                cluster["nodePools"] = [*cluster["nodePools"], body.get("nodePool") or {}]
            elif isinstance(made, dict):
                clusters[key] = {**made, "location": container["place"], "nodePools": [*(made.get("nodePools") or ())]}
                home["/cluster"] = f"{at}/cluster"
    common = {"project": project, **shared}
    if not clusters:
        return (Draft(document=common, origins=origins),)
    return tuple(
        Draft(
            document={**common, "location": key[0], "cluster": cluster},
            origins={**origins, **homes[key], "/firewalls": "/requests"},
        )
        for key, cluster in clusters.items()
    )


def planned(cluster: FabricCluster, resources: Iterable[Resource]) -> Draft:
    """What a cluster file stands for. Pointers are those into the file."""
    document: dict[str, Any] = {section: [] for section in SECTIONS.values()}
    pools = {pool.name: index for index, pool in enumerate(cluster.spec.pools)}
    origins: dict[str, str] = {}
    body: dict[str, Any] = {}
    for each in resources:
        if each.key.kind == "cluster":
            body = {**each.body, "location": each.key.place, "nodePools": [*(each.body.get("nodePools") or ())]}
        elif each.key.kind == "nodePool":
            origins[f"/cluster/nodePools/{len(body['nodePools'])}"] = f"/spec/pools/{pools.get(each.key.name, 0)}"
            body["nodePools"].append(each.body)
        elif each.key.kind in SECTIONS:
            where = each.key.place if each.key.place != "global" else None
            link = f"{root('compute', project=each.project, version='v1')}/{each.key.name}"
            document[SECTIONS[each.key.kind]].append({"selfLink": link, **_placed(each.body, where)})
    return Draft(
        document={
            **document,
            "project": cluster.spec.project,
            "location": cluster.spec.location,
            "cluster": body,
        },
        origins=origins,
    )


def spec_pointer(where: str, *, draft: Draft) -> str:
    """Where in a cluster file the cause of a finding about its draft is."""
    match = _POOL_AT.match(where)
    if match:
        pool = draft.origins.get(f"/cluster/nodePools/{match[1]}", "/spec/system")
        field = match[2] or ""
        for begins, key in _POOL_FIELDS:
            if field.startswith(begins):
                return key if key.startswith("/") else f"{pool}/{key}"
        return pool
    if _LIST_AT.match(where) or where == "/firewalls":
        return "/spec/network/mtu" if where.endswith("/mtu") else "/spec/network"
    return next((to for begins, to in _CLUSTER_FIELDS if where.startswith(begins)), "")


def _placed(body: Mapping[str, Any], region: str | None) -> dict[str, Any]:
    """The body with the region that its path names."""
    return {**body, "region": region} if region else {**body}

"""A picture of what exists around a cluster, as values: taken by `observing`, compared by `plan`.

Invariant: bodies are whole, as the API sent them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from interlace.gke.cluster import FabricCluster
from interlace.gke.operations import Operation
from interlace.gke.places import cluster_of, key_of, short
from interlace.gke.resource import Key, Resource

_NETWORKING: Final = frozenset({"network", "subnetwork", "firewall"})


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look. ``network_project`` holds networks, subnets and firewall rules."""

    project: str
    network_project: str
    region: str
    location: str
    cluster: str
    versions: Mapping[str, str] = {}
    """Kind to API version where it is not v1."""
    wanted: frozenset[str] | None = None
    """Kinds that the file makes; others need not be readable, as in a host project. None: all."""

    def must_read(self, kind: str) -> bool:
        """Whether it is an error that a kind may not be listed."""
        return self.wanted is None or kind in self.wanted

    def project_of(self, key: Key) -> str:
        """The project that a resource lies in."""
        return self.network_project if key.kind in _NETWORKING else self.project

    def version_of(self, key: Key) -> str:
        """The API version that knows all fields of the kind that are in use here."""
        return self.versions.get("cluster" if key.kind == "nodePool" else key.kind, "v1")


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """``bodies`` of everything that was listed, also what is not ours; ``working``: what is under way, by target."""

    scope: Scope
    bodies: Mapping[Key, Mapping[str, Any]] = {}
    working: Mapping[Key, Operation] = {}

    def busy(self, cluster: Key) -> tuple[Operation, ...]:
        """Operations on a cluster or its pools."""
        return tuple(operation for key, operation in self.working.items() if cluster_of(key) == cluster)


def scope_of_cluster(cluster: FabricCluster, resources: Iterable[Resource] = ()) -> Scope:
    """Where the resources of a cluster file lie."""
    versions: dict[str, str] = {}
    kinds = set()
    for resource in resources:
        kinds.add(resource.key.kind)
        if resource.version != "v1":
            kind = "cluster" if resource.key.kind == "nodePool" else resource.key.kind
            versions[kind] = resource.version
    return Scope(
        project=cluster.spec.project,
        network_project=cluster.network_project,
        region=cluster.region,
        location=cluster.spec.location,
        cluster=cluster.name,
        versions=versions,
        wanted=frozenset(kinds) if kinds else None,
    )


def users_of(network: Key, bodies: Mapping[Key, Mapping[str, Any]]) -> list[Key]:
    """Subnets and firewall rules that lie in a network, whoever made them."""
    return [
        key
        for key, body in bodies.items()
        if key.kind in {"subnetwork", "firewall"} and short(str(body.get("network") or "")) == network.name
    ]


def pools_of(cluster: Key, bodies: Mapping[Key, Mapping[str, Any]]) -> list[Key]:
    """Pools of a cluster, whoever made them."""
    return [key for key in bodies if key.kind == "nodePool" and cluster_of(key) == cluster]


def references(key: Key, body: Mapping[str, Any], *, region: str) -> tuple[Key, ...]:
    """Resources that one refers to, read from its body: for deleting what no file describes any more."""
    if key.kind in {"subnetwork", "firewall"}:
        found = key_of(str(body.get("network") or ""))
        return () if found is None else (found,)
    if key.kind not in {"cluster", "nodePool"}:
        return ()
    networking = body.get("networkConfig") or {}
    pairs = [(networking.get("network") or body.get("network"), networking.get("subnetwork") or body.get("subnetwork"))]
    pairs += [
        (each.get("network"), each.get("subnetwork")) for each in networking.get("additionalNodeNetworkConfigs") or ()
    ]
    keys = [Key("network", "global", short(str(network))) for network, _ in pairs if network]
    keys += [Key("subnetwork", region, short(str(subnet))) for _, subnet in pairs if subnet]
    policy = (body.get("placementPolicy") or {}).get("policyName")
    if policy:
        keys.append(Key("resourcePolicy", region, short(str(policy))))
    cluster = cluster_of(key) if key.kind == "nodePool" else None
    return (*keys, cluster) if cluster else tuple(keys)

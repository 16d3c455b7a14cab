"""Whose a resource is: a mark in its description or labels, written when it is made, read before it is changed.

Invariant: what carries no mark of this cluster, and was not adopted, is never changed and never deleted. The mark names
project, location and cluster, so two clusters never take each other's networks for their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlace.gke.cluster import FabricCluster
from interlace.gke.resource import Kind, Resource

LABEL: Final = "interlace-dev-cluster"
"""Label of clusters and node pools; keys of Google's labels have neither dots nor slashes."""
_MARK: Final = re.compile(r"\binterlace\.dev/cluster=([^\s,;]+)")
_DESCRIBED: Final = frozenset[Kind]({"network", "subnetwork", "firewall", "resourcePolicy", "reservation"})


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster that resources belong to."""

    project: str
    location: str
    cluster: str

    def __str__(self) -> str:
        return f"{self.project}/{self.location}/{self.cluster}"

    @property
    def label(self) -> str:
        """As a label value, which has no room for more; what carries it lies in the cluster anyway."""
        return self.cluster

    @property
    def description(self) -> str:
        return f"Made by Interlace; interlace.dev/cluster={self}"


def owner_of(cluster: FabricCluster) -> Owner:
    """Whose the resources of a cluster file are."""
    return Owner(project=cluster.spec.project, location=cluster.spec.location, cluster=cluster.name)


def marked(resource: Resource, owner: Owner) -> Resource:
    """With the mark, beside what the body says already."""
    body = dict(resource.body)
    kind = resource.key.kind
    if kind in _DESCRIBED:
        body["description"] = (
            f"{body['description']} ({owner.description})" if body.get("description") else owner.description
        )
    elif kind == "cluster":
        body["resourceLabels"] = {**body.get("resourceLabels", {}), LABEL: owner.label}
        body["nodePools"] = [_labelled(pool, owner) for pool in body.get("nodePools", ())]
    else:
        body = _labelled(body, owner)
    return msgspec.structs.replace(resource, body=body)


def is_ours(kind: Kind, body: Mapping[str, Any], owner: Owner) -> bool:
    """Whether what exists carries the mark of this cluster."""
    if kind in _DESCRIBED:
        found = _MARK.search(str(body.get("description") or ""))
        return found is not None and found[1].rstrip(").") == str(owner)
    labels = body.get("resourceLabels") if kind == "cluster" else (body.get("config") or {}).get("resourceLabels")
    return (labels or {}).get(LABEL) == owner.label


def other_owner(kind: Kind, body: Mapping[str, Any]) -> str:
    """The cluster whose mark a described resource carries; empty for none."""
    found = _MARK.search(str(body.get("description") or "")) if kind in _DESCRIBED else None
    return found[1].rstrip(").") if found else ""


def can_be_marked(kind: Kind) -> bool:
    """Whether the mark can be written onto what exists; Google keeps descriptions of the others as they were made."""
    return kind in {"firewall", "cluster", "nodePool"}


def _labelled(pool: Mapping[str, Any], owner: Owner) -> dict[str, Any]:
    config = dict(pool.get("config") or {})
    config["resourceLabels"] = {**config.get("resourceLabels", {}), LABEL: owner.label}
    return {**pool, "config": config}

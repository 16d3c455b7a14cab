"""Which fields of a resource matter, what the server puts there by itself, and how each can be changed: one table.

Sources: the update methods of the API documents of 2026-11 (compute and container v1), the defaults recorded in
``tests/data/gke/server`` and what Config Connector marks as immutable.

Invariant: a field that is wanted and stands in no row is compared and needs a replacement; a field that only the server
has counts as its own unless a row names the value that it has by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

from interlace.gke.names import HOLD
from interlace.gke.resource import Kind

Order = Literal["list", "set", "by name"]

REPLACE: Final = "replace"
"""The name of the way to change a field that cannot be changed."""
IGNORE: Final = "ignore"


class Absent(msgspec.Struct, frozen=True):
    """Says that a field has no default worth comparing."""


ANY: Final = Absent()


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """``how``: an update of `updates`, REPLACE or IGNORE. ``default``: what the server has where nothing was asked for.

    ``theirs``: patterns of keys, names or taint keys that the server or GKE adds and that are no difference. ``why``
    tells people what stands against a change.
    """

    how: str = REPLACE
    default: Any = ANY
    order: Order = "list"
    theirs: tuple[str, ...] = ()
    why: str = ""


_GOOG: Final = ("goog-*", "interlace-dev-*")
_NO_SWITCH: Final = "existing nodes would keep their old wiring"

_POOL: Final[Mapping[str, Row]] = MappingProxyType(
    {
        "name": Row(how=IGNORE),
        "version": Row(how="pool version"),
        "initialNodeCount": Row(how="size"),
        "locations": Row(how="locations", order="set"),
        "autoscaling": Row(how="autoscaling", default={}),
        "management": Row(how="management"),
        "upgradeSettings": Row(how="upgrade settings"),
        "config.labels": Row(how="labels", theirs=("cloud.google.com/*", *_GOOG), default={}),
        "config.taints": Row(how="taints", order="set", theirs=("nvidia.com/gpu",), default=[]),
        "config.tags": Row(how="tags", order="set", default=[]),
        "config.resourceLabels": Row(how="resource labels", theirs=_GOOG, default={}),
        "config.gvnic": Row(how="gvnic"),
        "config.imageType": Row(how="image", default="COS_CONTAINERD"),
        "config.diskType": Row(how="disk", default="pd-balanced"),
        "config.diskSizeGb": Row(how="disk", default=100),
        "config.oauthScopes": Row(order="set"),
        "config.spot": Row(default=False),
        "config.preemptible": Row(default=False),
        "config.serviceAccount": Row(default="default"),
        "config.reservationAffinity": Row(default={"consumeReservationType": "ANY_RESERVATION"}),
        "config.hostMaintenancePolicy": Row(default={}),
        "config.metadata": Row(how=IGNORE),
        "placementPolicy": Row(default={}),
        "placementPolicy.type": Row(how=IGNORE),
        "networkConfig.additionalNodeNetworkConfigs": Row(default=[]),
        "networkConfig.acceleratorNetworkProfile": Row(default=""),
        "networkConfig.createPodRange": Row(how=IGNORE),
        "queuedProvisioning.enabled": Row(default=False),
    }
)

FIELDS: Final[Mapping[Kind, Mapping[str, Row]]] = MappingProxyType(
    {
        "network": {
            "name": Row(how=IGNORE),
            "description": Row(how=IGNORE),
            "autoCreateSubnetworks": Row(default=False),
            "mtu": Row(how="patch", default=1460),
            "routingConfig.routingMode": Row(how="patch", default="REGIONAL"),
            "routingConfig": Row(how="patch"),
            "networkProfile": Row(default=""),
        },
        "subnetwork": {
            "name": Row(how=IGNORE),
            "description": Row(how=IGNORE),
            "region": Row(how=IGNORE),
            "ipCidrRange": Row(why="a subnet cannot shrink or move"),
            "privateIpGoogleAccess": Row(how="private access", default=False),
            "secondaryIpRanges": Row(how="patch", order="by name", theirs=("gke-*",), default=[]),
            "stackType": Row(how="patch", default="IPV4_ONLY"),
            "logConfig": Row(how="patch"),
            "enableFlowLogs": Row(how="patch"),
        },
        "firewall": {
            "name": Row(how=IGNORE),
            "description": Row(how=IGNORE),
            "direction": Row(default="INGRESS"),
            "priority": Row(how="patch", default=1000),
            "disabled": Row(how="patch", default=False),
            "allowed": Row(how="patch", order="set", default=[]),
            "denied": Row(how="patch", order="set", default=[]),
            "sourceRanges": Row(how="patch", order="set", default=[]),
            "destinationRanges": Row(how="patch", order="set", default=[]),
            "sourceTags": Row(how="patch", order="set", default=[]),
            "targetTags": Row(how="patch", order="set", default=[]),
            "sourceServiceAccounts": Row(how="patch", order="set", default=[]),
            "targetServiceAccounts": Row(how="patch", order="set", default=[]),
            "logConfig": Row(how="patch"),
        },
        "resourcePolicy": {
            "name": Row(how=IGNORE),
            "description": Row(how=IGNORE),
            "region": Row(how=IGNORE),
            "groupPlacementPolicy.*": Row(why="VMs that use the policy were placed by it"),
        },
        "reservation": {
            "name": Row(how=IGNORE),
            "description": Row(how=IGNORE),
            "zone": Row(how=IGNORE),
            "specificReservation.count": Row(how="reservation size"),
        },
        "cluster": {
            "name": Row(how=IGNORE),
            "description": Row(how=IGNORE),
            "nodePools": Row(how=IGNORE),
            "initialNodeCount": Row(how=IGNORE),
            "initialClusterVersion": Row(how="version"),
            "resourceLabels": Row(how="cluster labels", theirs=_GOOG, default={}),
            "releaseChannel": Row(how="update"),
            "locations": Row(how="update", order="set"),
            "maintenancePolicy": Row(how="maintenance"),
            "maintenancePolicy.resourceVersion": Row(how=IGNORE),
            # Ours alone; exclusions of other names are those of other people.
            f"maintenancePolicy.window.maintenanceExclusions.{HOLD}": Row(how="maintenance", default={}),
            "masterAuthorizedNetworksConfig": Row(how="update"),
            "masterAuthorizedNetworksConfig.cidrBlocks": Row(how="update", order="set", default=[]),
            "controlPlaneEndpointsConfig": Row(how="update"),
            "controlPlaneEndpointsConfig.ipEndpointsConfig.authorizedNetworksConfig.cidrBlocks": Row(
                how="update", order="set"
            ),
            "workloadIdentityConfig": Row(how="update"),
            "addonsConfig": Row(how="update"),
            "loggingConfig": Row(how="update"),
            "loggingConfig.*": Row(how="update", order="set"),
            "monitoringConfig": Row(how="update"),
            "monitoringConfig.*": Row(how="update", order="set"),
            "shieldedNodes": Row(how="update"),
            "ipAllocationPolicy.createSubnetwork": Row(how=IGNORE),
            "networkConfig.enableMultiNetworking": Row(default=False, why=_NO_SWITCH),
            "networkConfig.datapathProvider": Row(why=_NO_SWITCH),
        },
        "nodePool": _POOL,
    }
)


def row_of(kind: Kind, path: str) -> Row | None:
    """The row of a field: of its own path, of a pattern, or of the nearest field that it lies in."""
    table = FIELDS[kind]
    while path:
        if path in table:
            return table[path]
        for pattern, row in table.items():
            if "*" in pattern and fnmatchcase(path, pattern):
                return row
        path = path.rpartition(".")[0]
    return None


def defaults_under(kind: Kind, path: str) -> Mapping[str, Any]:
    """Names right below ``path`` for which the table knows what the server has by default."""
    start = f"{path}." if path else ""
    found: dict[str, Any] = {}
    for name, row in FIELDS[kind].items():
        if name.startswith(start) and "*" not in name:
            head, _, rest = name.removeprefix(start).partition(".")
            if not rest and row.default is not ANY:
                found[head] = row.default
            elif rest:
                found.setdefault(head, ANY)
    return found

"""Fields of the bodies of clusters and pools that a cluster file has keys for: the others are lost in it.

Invariant: the table follows what ``describing`` reads; a field that stands in no body of ours is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Known = Mapping[str, "Known | None"]

ALL: Final = None
"""A field that is carried over with all that is in it."""

_NODES: Final[Known] = {
    "accelerators": {"acceleratorType": ALL, "acceleratorCount": ALL, "gpuDriverInstallationConfig": ALL},
    "ephemeralStorageLocalSsdConfig": {"localSsdCount": ALL},
    **dict.fromkeys(
        ("machineType", "oauthScopes", "serviceAccount", "gvnic", "imageType", "diskType", "diskSizeGb", "labels",
         "resourceLabels", "taints", "tags", "reservationAffinity", "hostMaintenancePolicy", "spot"),
    ),
}  # fmt: skip
POOL: Final[Known] = {
    "config": _NODES,
    "networkConfig": {"additionalNodeNetworkConfigs": ALL},
    "management": {"autoRepair": ALL, "autoUpgrade": ALL},
    "placementPolicy": {"policyName": ALL, "type": ALL},
    "upgradeSettings": {"maxSurge": ALL, "maxUnavailable": ALL},
    "autoscaling": {"enabled": ALL, "minNodeCount": ALL, "maxNodeCount": ALL},
    **dict.fromkeys(("name", "initialNodeCount", "locations", "maxPodsConstraint")),
}
_SYSTEM: Final[Known] = {
    "config": {
        "ephemeralStorageLocalSsdConfig": {"localSsdCount": ALL},
        **dict.fromkeys(
            (
                "machineType",
                "oauthScopes",
                "serviceAccount",
                "diskType",
                "diskSizeGb",
                "labels",
                "resourceLabels",
                "taints",
            )
        ),
    },
    **dict.fromkeys(("name", "initialNodeCount", "management", "upgradeSettings")),
}
CLUSTER: Final[Known] = {
    "networkConfig": {"datapathProvider": ALL, "enableMultiNetworking": ALL, "defaultEnablePrivateNodes": ALL},
    "ipAllocationPolicy": {
        "useIpAliases": ALL,
        "createSubnetwork": ALL,
        "clusterIpv4CidrBlock": ALL,
        "servicesIpv4CidrBlock": ALL,
        "clusterSecondaryRangeName": ALL,
        "servicesSecondaryRangeName": ALL,
    },
    "privateClusterConfig": {"enablePrivateNodes": ALL, "masterIpv4CidrBlock": ALL},
    "controlPlaneEndpointsConfig": {
        "ipEndpointsConfig": {"authorizedNetworksConfig": {"enabled": ALL, "cidrBlocks": ALL}}
    },
    "workloadIdentityConfig": {"workloadPool": ALL},
    "nodePools": _SYSTEM,
    **dict.fromkeys(
        ("name", "initialClusterVersion", "releaseChannel", "network", "subnetwork", "locations", "resourceLabels")
    ),
}


def unknown(body: Mapping[str, Any], known: Known) -> Iterator[str]:
    """Paths of fields that are not known, none below another."""
    for field, value in body.items():
        inner = known.get(field)
        if field not in known:
            yield field
        elif inner is not None:
            for each in value if isinstance(value, list) else [value]:
                for path in unknown(each, inner):
                    yield f"{field}.{path}"

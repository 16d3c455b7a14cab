"""A cluster as Terraform's JSON (``*.tf.json``) for the provider ``hashicorp/google``.

Invariant: every field of every body becomes an argument of its resource, and a reference to something in the same
file becomes a reference of Terraform, which orders the work by them. ``terraform validate`` was not run on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from interlace.gke.export.fields import Exported, Fields, end_of_hold, last
from interlace.gke.resource import Kind, Resource

PROVIDER: Final = "hashicorp/google"
LEAST: Final = "6.50.0"
"""The release whose argument names were compared with these."""

TOOL: Final = f"Terraform ({PROVIDER} {LEAST})"

UNCHECKED: Final = f"terraform validate was not run; names of arguments are those of {PROVIDER} {LEAST}"

_Block = dict[str, Any]


def as_terraform(resources: Iterable[Resource], *, title: str) -> Exported:
    """The document. Raises Refused for what the provider cannot say."""
    resources = tuple(resources)
    writer = _Writer(resources)
    made: dict[str, dict[str, _Block]] = {}
    beta = False
    for resource in resources:
        block = writer.block(resource)
        beta = beta or block.get("provider") == "google-beta"
        made.setdefault(_TYPES[resource.key.kind], {})[resource.key.name] = block
    providers = {"google": {"source": PROVIDER, "version": f">= {LEAST}"}}
    if beta:
        providers["google-beta"] = {"source": f"{PROVIDER}-beta", "version": f">= {LEAST}"}
    notes = (UNCHECKED, *writer.notes)
    document = {
        "//": f"{title}. Written by interlace gke export. {'. '.join(notes)}.",
        "terraform": {"required_version": ">= 1.5", "required_providers": providers},
        "resource": made,
    }
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return Exported(text=f"{text}\n", notes=notes)


class _Writer:
    """Knows what the file makes, so that it can refer to it."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._made = {(each.key.kind, each.key.name) for each in resources}
        self.notes: list[str] = []

    def block(self, resource: Resource) -> _Block:
        fields = Fields(resource.body, of=str(resource.key))
        write: Callable[[_Writer, Resource, Fields], _Block] = _WRITERS[resource.key.kind]
        block = {"name": fields.take("name"), "project": resource.project, **write(self, resource, fields)}
        fields.done(TOOL)
        return {key: value for key, value in block.items() if value is not None}

    def refer(self, kind: Kind, reference: str | None, attribute: str) -> str | None:
        """A reference to what the file makes; else the reference as it is."""
        if reference is None or (kind, last(reference)) not in self._made:
            return reference
        # A path names a network of another project, which a bare name would not.
        attribute = "id" if "/" in reference else attribute
        return f"${{{_TYPES[kind]}.{last(reference)}.{attribute}}}"

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _network(_writer: _Writer, _resource: Resource, fields: Fields) -> _Block:
    return {
        "auto_create_subnetworks": fields.take("autoCreateSubnetworks"),
        "mtu": fields.take("mtu"),
        "routing_mode": fields.take("routingConfig", "routingMode"),
        "network_profile": fields.take("networkProfile"),
        "description": fields.take("description"),
    }


def _subnet(writer: _Writer, resource: Resource, fields: Fields) -> _Block:
    ranges = fields.take("secondaryIpRanges") or ()
    return {
        "region": resource.key.place,
        "network": writer.refer("network", fields.take("network"), "id"),
        "ip_cidr_range": fields.take("ipCidrRange"),
        "private_ip_google_access": fields.take("privateIpGoogleAccess"),
        "secondary_ip_range": [
            {"range_name": each["rangeName"], "ip_cidr_range": each["ipCidrRange"]} for each in ranges
        ]
        or None,
        "description": fields.take("description"),
    }


def _firewall(writer: _Writer, _resource: Resource, fields: Fields) -> _Block:
    allowed = [
        {"protocol": each["IPProtocol"], **({"ports": each["ports"]} if "ports" in each else {})}
        for each in fields.take("allowed") or ()
    ]
    return {
        "network": writer.refer("network", fields.take("network"), "id"),
        "direction": fields.take("direction"),
        "priority": fields.take("priority"),
        "allow": allowed or None,
        "source_ranges": fields.take("sourceRanges"),
        "description": fields.take("description"),
    }


def _policy(writer: _Writer, _resource: Resource, fields: Fields) -> _Block:
    placement = {
        "collocation": fields.take("groupPlacementPolicy", "collocation"),
        "vm_count": fields.take("groupPlacementPolicy", "vmCount"),
        "gpu_topology": fields.take("groupPlacementPolicy", "gpuTopology"),
        "max_distance": fields.take("groupPlacementPolicy", "maxDistance"),
    }
    beta = placement["max_distance"] is not None
    if beta:
        writer.note("max_distance is an argument of google-beta alone")
    return {
        "provider": "google-beta" if beta else None,
        "region": fields.take("region"),
        "group_placement_policy": _said(placement),
        "description": fields.take("description"),
    }


def _cluster(writer: _Writer, resource: Resource, fields: Fields) -> _Block:
    addresses = {
        "cluster_ipv4_cidr_block": fields.take("ipAllocationPolicy", "clusterIpv4CidrBlock"),
        "services_ipv4_cidr_block": fields.take("ipAllocationPolicy", "servicesIpv4CidrBlock"),
        "cluster_secondary_range_name": fields.take("ipAllocationPolicy", "clusterSecondaryRangeName"),
        "services_secondary_range_name": fields.take("ipAllocationPolicy", "servicesSecondaryRangeName"),
    }
    fields.take("ipAllocationPolicy", "createSubnetwork")
    alias = fields.take("ipAllocationPolicy", "useIpAliases")
    fields.take("networkConfig", "defaultEnablePrivateNodes")
    authorized = fields.take("controlPlaneEndpointsConfig", "ipEndpointsConfig", "authorizedNetworksConfig") or {}
    blocks = [{"cidr_block": each["cidrBlock"]} for each in authorized.get("cidrBlocks", ())]
    workload = fields.take("workloadIdentityConfig", "workloadPool")
    block = {
        "location": resource.key.place,
        "node_locations": [each for each in fields.take("locations") or () if each != resource.key.place] or None,
        "min_master_version": fields.take("initialClusterVersion"),
        "release_channel": _said({"channel": fields.take("releaseChannel", "channel")}),
        "network": writer.refer("network", fields.take("network"), "id"),
        "subnetwork": writer.refer("subnetwork", fields.take("subnetwork"), "id"),
        "networking_mode": "VPC_NATIVE" if alias else None,
        "ip_allocation_policy": _said(addresses),
        "datapath_provider": fields.take("networkConfig", "datapathProvider"),
        "enable_multi_networking": fields.take("networkConfig", "enableMultiNetworking"),
        "private_cluster_config": _said(
            {
                "enable_private_nodes": fields.take("privateClusterConfig", "enablePrivateNodes"),
                "master_ipv4_cidr_block": fields.take("privateClusterConfig", "masterIpv4CidrBlock"),
            }
        ),
        "master_authorized_networks_config": {"cidr_blocks": blocks} if blocks else None,
        "resource_labels": fields.take("resourceLabels"),
        "workload_identity_config": {"workload_pool": workload} if workload else None,
        "maintenance_policy": _maintenance(writer, fields),
    }
    for own in fields.take("nodePools") or ():
        block |= _own_pool(writer, Fields(own, of="the cluster's own node pool"))
    return block


def _maintenance(writer: _Writer, fields: Fields) -> _Block | None:
    exclusions: dict[str, Any] = fields.take("maintenancePolicy", "window", "maintenanceExclusions") or {}
    found = []
    for name, window in exclusions.items():
        end, ours = end_of_hold(window)
        if ours:
            writer.note(f"{TOOL} cannot hold nodes as long as the version is supported, so this hold ends at {end}")
        found.append(
            {
                "exclusion_name": name,
                "start_time": window["startTime"],
                "end_time": end,
                "exclusion_options": {"scope": window["maintenanceExclusionOptions"]["scope"]},
            }
        )
    if not found:
        return None
    writer.note("the provider takes exclusions only beside a maintenance window, so there is one, daily at 03:00 UTC")
    return {"daily_maintenance_window": {"start_time": "03:00"}, "maintenance_exclusion": found}


def _own_pool(writer: _Writer, pool: Fields) -> _Block:
    """The pool that a cluster is born with: in the cluster's own arguments, so that other pools can stand beside it."""
    pool.take("name")
    pool.take("management")
    pool.take("upgradeSettings")
    block = {"initial_node_count": pool.take("initialNodeCount"), "node_config": _nodes(pool)}
    pool.done(TOOL)
    writer.note("how the cluster's own node pool is upgraded is left to GKE")
    return block


def _pool(writer: _Writer, resource: Resource, fields: Fields) -> _Block:
    place, _, cluster = resource.key.place.partition("/")
    nodes, scaling = fields.take("initialNodeCount"), fields.take("autoscaling")
    nics = [
        {
            "network": writer.refer("network", each["network"], "name"),
            "subnetwork": writer.refer("subnetwork", each["subnetwork"], "name"),
        }
        for each in fields.take("networkConfig", "additionalNodeNetworkConfigs") or ()
    ]
    policy = fields.take("placementPolicy", "policyName")
    return {
        "cluster": writer.refer("cluster", cluster, "name"),
        "location": place,
        "node_locations": fields.take("locations"),
        "initial_node_count" if scaling else "node_count": nodes,
        "autoscaling": {"min_node_count": scaling["minNodeCount"], "max_node_count": scaling["maxNodeCount"]}
        if scaling
        else None,
        "max_pods_per_node": _number(fields.take("maxPodsConstraint", "maxPodsPerNode")),
        "management": _said(
            {
                "auto_repair": fields.take("management", "autoRepair"),
                "auto_upgrade": fields.take("management", "autoUpgrade"),
            }
        ),
        "upgrade_settings": _said(
            {
                "max_surge": fields.take("upgradeSettings", "maxSurge"),
                "max_unavailable": fields.take("upgradeSettings", "maxUnavailable"),
            }
        ),
        "placement_policy": None
        if policy is None
        else {"type": "COMPACT", "policy_name": writer.refer("resourcePolicy", policy, "name")},
        "network_config": {"additional_node_network_configs": nics} if nics else None,
        "node_config": _nodes(fields),
    }


def _nodes(fields: Fields) -> _Block:
    """What each node of a pool is."""
    accelerators = [_accelerator(each) for each in fields.take("config", "accelerators") or ()]
    affinity = fields.take("config", "reservationAffinity")
    gvnic = fields.take("config", "gvnic", "enabled")
    ssds = fields.take("config", "ephemeralStorageLocalSsdConfig", "localSsdCount")
    interval = fields.take("config", "hostMaintenancePolicy", "maintenanceInterval")
    block = {
        "machine_type": fields.take("config", "machineType"),
        "guest_accelerator": accelerators or None,
        "gvnic": None if gvnic is None else {"enabled": gvnic},
        "oauth_scopes": fields.take("config", "oauthScopes"),
        "service_account": fields.take("config", "serviceAccount"),
        "image_type": fields.take("config", "imageType"),
        "disk_type": fields.take("config", "diskType"),
        "disk_size_gb": fields.take("config", "diskSizeGb"),
        "ephemeral_storage_local_ssd_config": None if ssds is None else {"local_ssd_count": ssds},
        "labels": fields.take("config", "labels"),
        "resource_labels": fields.take("config", "resourceLabels"),
        "taint": fields.take("config", "taints"),
        "tags": fields.take("config", "tags"),
        "reservation_affinity": None
        if affinity is None
        else {
            "consume_reservation_type": affinity["consumeReservationType"],
            "key": affinity["key"],
            "values": affinity["values"],
        },
        "host_maintenance_policy": None if interval is None else {"maintenance_interval": interval},
        "spot": fields.take("config", "spot"),
    }
    return {key: value for key, value in block.items() if value is not None}


def _accelerator(each: Mapping[str, Any]) -> _Block:
    driver = each.get("gpuDriverInstallationConfig", {}).get("gpuDriverVersion")
    block: _Block = {"type": each["acceleratorType"], "count": _number(each["acceleratorCount"])}
    if driver is not None:
        block["gpu_driver_installation_config"] = {"gpu_driver_version": driver}
    return block


def _said(block: _Block) -> _Block | None:
    """A block without what was not said; None if nothing was."""
    return {key: value for key, value in block.items() if value is not None} or None


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


_TYPES: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        "network": "google_compute_network",
        "subnetwork": "google_compute_subnetwork",
        "firewall": "google_compute_firewall",
        "resourcePolicy": "google_compute_resource_policy",
        "cluster": "google_container_cluster",
        "nodePool": "google_container_node_pool",
    }
)
_WRITERS: Final[Mapping[Kind, Callable[[_Writer, Resource, Fields], _Block]]] = MappingProxyType(
    {
        "network": _network,
        "subnetwork": _subnet,
        "firewall": _firewall,
        "resourcePolicy": _policy,
        "cluster": _cluster,
        "nodePool": _pool,
    }
)

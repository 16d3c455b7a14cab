"""Clusters: what the server makes of a body, its addresses and firewall rules, and what changes in place.

Invariant: what GKE makes beside the cluster (secondary ranges, firewall rules) is listed by functions here and taken
away with it, unless a fault says otherwise.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any, Final

from interlace.sim.gke.catalog import region_of
from interlace.sim.gke.errors import Refusal, bad_request, not_found
from interlace.sim.gke.operations import container_link
from interlace.sim.gke.routes import Call
from interlace.sim.gke.store import etag, fingerprint, relative, short_hash
from interlace.sim.gke.world import World

Json = dict[str, Any]
_SERVICES: Final = "34.118.224.0/20"
_PODS: Final = ipaddress.ip_network("10.4.0.0/14")


def cluster(world: World, call: Call, path: str, body: Json) -> Json:
    """A new cluster without its pools. Refusal."""
    location, name = call.place, path.rpartition("/")[2]
    if body.get("autopilot", {}).get("enabled"):
        raise bad_request("The simulation knows Standard clusters only, no Autopilot.")
    channel = body.get("releaseChannel", {}).get("channel", "")
    channel = "" if channel == "UNSPECIFIED" else channel
    explicit = "releaseChannel" in body
    version = world.catalog.resolve(body.get("initialClusterVersion", ""), channel)
    if version is None:
        raise bad_request(f'No valid versions with the prefix "{body["initialClusterVersion"]}" found.')
    network, subnetwork = _networks(world, call, body)
    policy = _addresses(world, network, subnetwork, name, path, body.get("ipAllocationPolicy", {}))
    zones = body.get("locations") or _zones(world, location)
    for zone in zones:
        if zone not in world.catalog.zones or region_of(zone) != region_of(location):
            raise bad_request(f'Zone "{zone}" is not in the region of location "{location}".')
    network_config = body.get("networkConfig", {})
    if network_config.get("enableMultiNetworking") and (
        network_config.get("datapathProvider") != "ADVANCED_DATAPATH" or not policy.get("useIpAliases")
    ):
        raise bad_request("Multi-networking requires Dataplane V2 and IP aliases.")
    auto = () if explicit else ("REGULAR",)
    document: Json = {
        "loggingService": "logging.googleapis.com/kubernetes",
        "monitoringService": "monitoring.googleapis.com/kubernetes",
        "legacyAbac": {},
        "masterAuthorizedNetworksConfig": {"gcpPublicCidrsAccessEnabled": True},
        "autoscaling": {"autoscalingProfile": "BALANCED"},
        "defaultMaxPodsConstraint": {"maxPodsPerNode": "110"},
        "databaseEncryption": {"state": "DECRYPTED", "currentState": "CURRENT_STATE_DECRYPTED"},
        "shieldedNodes": {"enabled": True},
        "notificationConfig": {"pubsub": {}},
        "loggingConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}},
        "monitoringConfig": {
            "componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS"]},
            "managedPrometheusConfig": {"enabled": True},
        },
        "nodePoolAutoConfig": {},
    }
    document |= {
        key: value for key, value in body.items() if key not in {"nodePools", "nodeConfig", "initialNodeCount"}
    }
    document |= {
        "name": name,
        "network": network.rpartition("/")[2],
        "subnetwork": subnetwork.rpartition("/")[2],
        "clusterIpv4Cidr": policy["clusterIpv4CidrBlock"],
        "servicesIpv4Cidr": policy["servicesIpv4CidrBlock"],
        "addonsConfig": {
            "kubernetesDashboard": {"disabled": True},
            "networkPolicyConfig": {"disabled": True},
            "dnsCacheConfig": {"enabled": True},
            "gcePersistentDiskCsiDriverConfig": {"enabled": True},
            "gcsFuseCsiDriverConfig": {},
        }
        | body.get("addonsConfig", {}),
        "locations": list(zones),
        "labelFingerprint": labels_fingerprint(body.get("resourceLabels", {})),
        "ipAllocationPolicy": policy,
        "maintenancePolicy": _maintenance(body.get("maintenancePolicy", {})),
        "networkConfig": {"defaultSnatStatus": {}, "serviceExternalIpsConfig": {}}
        | network_config
        | {"network": network, "subnetwork": subnetwork},
        "releaseChannel": {"channel": channel} if channel else {"channel": auto[0]} if auto else {},
        "id": short_hash(path) * 4,
        "selfLink": container_link(path, numbered=False),
        "zone": location,
        "location": location,
        "initialClusterVersion": version,
        "currentMasterVersion": version,
        "currentNodeVersion": version,
        "createTime": f"{world.operations.container_time(world.clock())[:19]}+00:00",
        "status": "PROVISIONING",
    }
    document["etag"] = etag(document)
    return document


def _zones(world: World, location: str) -> tuple[str, ...]:
    if location in world.catalog.regions:
        return world.catalog.regions[location][:3]
    return (location,)


def _networks(world: World, call: Call, body: Json) -> tuple[str, str]:
    named = body.get("networkConfig", {}).get("network") or body.get("network") or "default"
    network = relative(named, project=call.project, collection="networks")
    if world.store.usable(network) is None:
        short = network.rpartition("/")[2]
        host = network.split("/")[1]
        raise bad_request(f'Network "{short}" does not exist: project "{host}" has no network named "{short}".')
    host, region = network.split("/")[1], region_of(call.place)
    chosen = body.get("networkConfig", {}).get("subnetwork") or body.get("subnetwork") or network.rpartition("/")[2]
    subnet = relative(chosen, project=host, collection="subnetworks", place=f"regions/{region}")
    found = world.store.usable(subnet)
    if found is None or not found["network"].endswith(f"/{network}"):
        raise bad_request(f'Subnetwork "{chosen}" does not exist in network "{named}" in region "{region}".')
    return network, subnet


def _addresses(world: World, network: str, subnet: str, name: str, path: str, body: Json) -> Json:
    """``ipAllocationPolicy``: named secondary ranges must exist, others are made beside them."""
    ranges = {
        each["rangeName"]: each["ipCidrRange"] for each in (world.store.get(subnet) or {}).get("secondaryIpRanges", [])
    }
    policy = {key: value for key, value in body.items() if key != "createSubnetwork"}
    for key, block in (
        ("clusterSecondaryRangeName", "clusterIpv4CidrBlock"),
        ("servicesSecondaryRangeName", "servicesIpv4CidrBlock"),
    ):
        wanted = body.get(key)
        if wanted:
            if wanted not in ranges:
                raise bad_request(
                    f'Secondary range "{wanted}" does not exist in network "{network.rpartition("/")[2]}".'
                )
            policy[block] = ranges[wanted]
    if not policy.get("clusterSecondaryRangeName"):
        policy["clusterSecondaryRangeName"] = f"gke-{name}-pods-{short_hash(path)}"
        policy["clusterIpv4CidrBlock"] = _free(world, network, body.get("clusterIpv4CidrBlock", ""))
    policy.setdefault("servicesIpv4CidrBlock", _SERVICES)
    policy["clusterIpv4Cidr"] = policy["clusterIpv4CidrBlock"]
    policy["servicesIpv4Cidr"] = policy["servicesIpv4CidrBlock"]
    return {"useIpAliases": True, "stackType": "IPV4", "podCidrOverprovisionConfig": {}} | policy


def _free(world: World, network: str, wanted: str) -> str:
    taken = []
    for _, each in world.store.of(network.split("/")[1], "subnetworks"):
        if each["network"].endswith(f"/{network}"):
            spans = [each["ipCidrRange"], *(more["ipCidrRange"] for more in each.get("secondaryIpRanges", []))]
            taken += [ipaddress.ip_network(span) for span in spans]
    if wanted and not wanted.startswith("/"):
        try:
            span = ipaddress.ip_network(wanted)
        except ValueError:
            raise bad_request(f'Invalid CIDR block "{wanted}".') from None
        if any(span.overlaps(each) for each in taken):
            raise bad_request(f'CIDR block "{wanted}" overlaps with an existing range of the network.')
        return str(span)
    size = int(wanted[1:]) if wanted[1:].isdigit() else _PODS.prefixlen
    start = int(_PODS.network_address)
    for index in range(64):
        candidate = ipaddress.ip_network((start + index * 2 ** (32 - size), size))
        if not any(candidate.overlaps(each) for each in taken):
            return str(candidate)
    raise Refusal(400, "There is no free range for Pods in the network.", status="FAILED_PRECONDITION")


def claim(world: World, document: Json) -> None:
    """Put the range for Pods that GKE made into the subnetwork."""
    path, policy = document["networkConfig"]["subnetwork"], document["ipAllocationPolicy"]
    subnet = world.store.get(path)
    name = policy["clusterSecondaryRangeName"]
    if subnet is None or any(each["rangeName"] == name for each in subnet.get("secondaryIpRanges", [])):
        return
    ranges = [*subnet.get("secondaryIpRanges", []), {"rangeName": name, "ipCidrRange": policy["clusterIpv4CidrBlock"]}]
    world.store.put(path, subnet | {"secondaryIpRanges": ranges})


def unclaim(world: World, path: str, document: Json) -> None:
    """Take that range out again."""
    subnet_path, name = document["networkConfig"]["subnetwork"], document["name"]
    subnet = world.store.get(subnet_path)
    if subnet is None:
        return
    own = f"gke-{name}-pods-{short_hash(path)}"
    ranges = [each for each in subnet.get("secondaryIpRanges", []) if each["rangeName"] != own]
    kept = {key: value for key, value in subnet.items() if key != "secondaryIpRanges"}
    world.store.put(subnet_path, kept | ({"secondaryIpRanges": ranges} if ranges else {}))


def firewalls(world: World, path: str, document: Json) -> dict[str, Json]:
    """The firewall rules that GKE makes for a cluster, by relative name."""
    network, name = document["networkConfig"]["network"], document["name"]
    stem, pods = f"gke-{name}-{short_hash(path)}", document["clusterIpv4Cidr"]
    tag = f"{stem}-node"
    rows: tuple[tuple[str, Json, list[Json]], ...] = (
        (
            "all",
            {"sourceRanges": [pods]},
            [{"IPProtocol": each} for each in ("tcp", "udp", "icmp", "esp", "ah", "sctp")],
        ),
        (
            "vms",
            {"sourceRanges": ["10.128.0.0/9"]},
            [{"IPProtocol": "tcp", "ports": ["1-65535"]}, {"IPProtocol": "icmp"}],
        ),
        ("inkubelet", {"sourceRanges": [pods]}, [{"IPProtocol": "tcp", "ports": ["10255"]}]),
        ("exkubelet", {"sourceRanges": ["0.0.0.0/0"]}, [{"IPProtocol": "tcp", "ports": ["10255"]}]),
    )
    found = {}
    for suffix, more, rules in rows:
        rule = f"projects/{network.split('/')[1]}/global/firewalls/{stem}-{suffix}"
        verdict = "denied" if suffix == "exkubelet" else "allowed"
        found[rule] = {
            "kind": "compute#firewall",
            "id": world.store.next_id(),
            "creationTimestamp": world.operations.compute_time(world.clock()),
            "name": f"{stem}-{suffix}",
            "description": "",
            "network": world.link(network),
            "priority": 1000 if verdict == "allowed" else 65534,
            verdict: rules,
            "direction": "INGRESS",
            "logConfig": {"enable": False},
            "disabled": False,
            "targetTags": [tag],
            "selfLink": world.link(rule),
            **more,
        }
    return found


def labels_fingerprint(labels: Json) -> str:
    """Of the labels of a cluster: eight hexadecimal digits."""
    return short_hash(fingerprint(labels))


def _maintenance(body: Json) -> Json:
    kept = {key: value for key, value in body.items() if key != "resourceVersion"}
    return kept | {"resourceVersion": short_hash(fingerprint(kept))}


def with_maintenance(current: Json, body: Json) -> Json:
    """A cluster after ``setMaintenancePolicy``. Refusal when the version is not the one that was read."""
    version = body.get("resourceVersion", "")
    if version and version != current["maintenancePolicy"]["resourceVersion"]:
        raise Refusal(409, "The maintenance policy was changed meanwhile.", status="ABORTED")
    return refreshed(current | {"maintenancePolicy": _maintenance(body)})


def with_labels(current: Json, body: Json) -> Json:
    """A cluster after ``setResourceLabels``. Refusal when the fingerprint is not the one that was read."""
    if body.get("labelFingerprint") != current["labelFingerprint"]:
        raise Refusal(400, "Labels could not be set due to fingerprint mismatch.", status="FAILED_PRECONDITION")
    labels = body.get("resourceLabels", {})
    return refreshed(current | {"resourceLabels": labels, "labelFingerprint": labels_fingerprint(labels)})


def refreshed(document: Json) -> Json:
    """With the etag of its content."""
    return document | {"etag": etag({key: value for key, value in document.items() if key != "etag"})}


def _network(field: str) -> Callable[[Json, Any], Json]:
    return lambda current, value: current | {"networkConfig": current["networkConfig"] | {field: value}}


def _whole(field: str) -> Callable[[Json, Any], Json]:
    return lambda current, value: current | {field: value}


def _merged(field: str) -> Callable[[Json, Any], Json]:
    return lambda current, value: current | {field: current.get(field, {}) | value}


CHANGES: Final[dict[str, Callable[[Json, Any], Json]]] = {
    "desiredAddonsConfig": _merged("addonsConfig"),
    "desiredClusterAutoscaling": _merged("autoscaling"),
    "desiredControlPlaneEndpointsConfig": _merged("controlPlaneEndpointsConfig"),
    "desiredDefaultEnablePrivateNodes": _network("defaultEnablePrivateNodes"),
    "desiredDnsConfig": _network("dnsConfig"),
    "desiredEnableMultiNetworking": _network("enableMultiNetworking"),
    "desiredGatewayApiConfig": _network("gatewayApiConfig"),
    "desiredIntraNodeVisibilityConfig": _network("enableIntraNodeVisibility"),
    "desiredLocations": _whole("locations"),
    "desiredLoggingConfig": _whole("loggingConfig"),
    "desiredLoggingService": _whole("loggingService"),
    "desiredMasterAuthorizedNetworksConfig": _whole("masterAuthorizedNetworksConfig"),
    "desiredMonitoringConfig": _merged("monitoringConfig"),
    "desiredMonitoringService": _whole("monitoringService"),
    "desiredNotificationConfig": _whole("notificationConfig"),
    "desiredReleaseChannel": _whole("releaseChannel"),
    "desiredShieldedNodes": _whole("shieldedNodes"),
    "desiredVerticalPodAutoscaling": _whole("verticalPodAutoscaling"),
    "desiredWorkloadIdentityConfig": _whole("workloadIdentityConfig"),
}


def updated(current: Json, field: str, value: Any) -> Json:
    """A cluster after one ``desired…`` of ``clusters.update``. Refusal for one that the simulation does not know."""
    change = CHANGES.get(field)
    if change is None:
        raise bad_request(f"The simulation does not know how to change {field} of a cluster.")
    return refreshed(change(current, value))


def found(world: World, path: str) -> Json:
    """The cluster, or 404."""
    document = world.store.get(path)
    if document is None:
        raise not_found("container", path)
    return document


def shown(world: World, path: str, document: Json) -> Json:
    """The cluster with its pools; ``nodeConfig`` is that of the default pool while there is one."""
    pools = world.store.under(path, "nodePools")
    view = dict(document)
    if pools:
        view["nodePools"] = [pool for _, pool in pools]
    for pool_path, pool in pools:
        if pool_path.endswith("/default-pool"):
            view["nodeConfig"] = pool["config"]
    if document["status"] != "PROVISIONING":
        counts = [
            pool["initialNodeCount"] * len(pool["locations"])
            for pool_path, pool in pools
            if pool_path not in world.shortages and pool["status"] != "PROVISIONING"
        ]
        view |= {"endpoint": _endpoint(path), "masterAuth": {"clusterCaCertificate": "Q0VSVA=="}}
        view["currentNodeCount"] = sum(counts)
    return view


def _endpoint(path: str) -> str:
    return f"203.0.113.{int(short_hash(path), 16) % 254 + 1}"

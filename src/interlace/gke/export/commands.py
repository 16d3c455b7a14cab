"""Resources as gcloud commands: what makes each, and what asks whether it is there.

Invariant: a command says all that the body says and nothing else; what gcloud sends by itself where a flag is missing
is not said twice. Source of flags and defaults: gcloud 528.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from interlace.gke.export.fields import Fields, end_of_hold, last
from interlace.gke.resource import Key, Kind, Resource

TOOL: Final = "gcloud 528"

_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """``ask``: exits 0 if what ``run`` makes is there; where ``expect`` is not empty, only if it is printed.

    ``note``: what gcloud says otherwise than the body.
    """

    ask: tuple[str, ...]
    run: tuple[str, ...]
    expect: str = ""
    note: str = ""


def commands(resource: Resource) -> tuple[Command, ...]:
    """The commands for a resource, in order. Raises Refused for what gcloud cannot say."""
    fields = Fields(resource.body, of=str(resource.key))
    fields.take("name")
    words, place, write = _KINDS[resource.key.kind]
    track = ("beta",) if resource.version != "v1" else ()
    where = (f"--project={resource.project}", *place(resource.key))
    name = resource.key.name
    ask = ("gcloud", *words, "describe", name, *where, "--format=value(name)")
    make = (*track, *words, "create")
    if resource.key.kind == "resourcePolicy":
        make = (*make, "group-placement")
    later = tuple(_hold(fields, resource, where)) if resource.key.kind == "cluster" else ()
    run = ("gcloud", *make, name, *where, *write(fields))
    fields.done(TOOL)
    return (Command(ask=ask, run=run), *later)


def _hold(fields: Fields, resource: Resource, where: tuple[str, ...]) -> Iterator[Command]:
    """Maintenance exclusions come after the cluster: ``clusters create`` has no flag for them."""
    words = ("gcloud", "container", "clusters")
    exclusions: dict[str, Any] = fields.take("maintenancePolicy", "window", "maintenanceExclusions") or {}
    for name, window in exclusions.items():
        end, ours = end_of_hold(window)
        scope = window["maintenanceExclusionOptions"]["scope"]
        run = (
            *(*words, "update", resource.key.name, *where),
            f"--add-maintenance-exclusion-name={name}",
            f"--add-maintenance-exclusion-start={window['startTime']}",
            f"--add-maintenance-exclusion-end={end}",
            f"--add-maintenance-exclusion-scope={scope.lower()}",
        )
        note = f"{TOOL} cannot hold nodes as long as the version is supported: this hold ends at {end}" if ours else ""
        form = "--format=value(maintenancePolicy.window.maintenanceExclusions)"
        yield Command(ask=(*words, "describe", resource.key.name, *where, form), run=run, expect=name, note=note)


def _network(fields: Fields) -> Iterator[str]:
    yield "--subnet-mode=auto" if fields.take("autoCreateSubnetworks") else "--subnet-mode=custom"
    yield from _value("--mtu", fields.take("mtu"))
    mode = fields.take("routingConfig", "routingMode")
    if mode != "REGIONAL":
        yield from _value("--bgp-routing-mode", mode and mode.lower())
    profile = fields.take("networkProfile")
    yield from _value("--network-profile", profile and last(profile))
    yield from _value("--description", fields.take("description"))


def _subnet(fields: Fields) -> Iterator[str]:
    yield from _value("--network", _relative(fields.take("network")))
    yield from _value("--range", fields.take("ipCidrRange"))
    ranges = fields.take("secondaryIpRanges") or ()
    pairs = ",".join(f"{each['rangeName']}={each['ipCidrRange']}" for each in ranges)
    yield from _value("--secondary-range", pairs)
    yield from _switch("--enable-private-ip-google-access", fields.take("privateIpGoogleAccess"))
    yield from _value("--description", fields.take("description"))


def _firewall(fields: Fields) -> Iterator[str]:
    yield from _value("--network", _relative(fields.take("network")))
    yield from _value("--direction", fields.take("direction"))
    yield from _value("--priority", fields.take("priority"))
    rules = []
    for each in fields.take("allowed") or ():
        rules += [f"{each['IPProtocol']}:{port}" for port in each.get("ports", ())] or [each["IPProtocol"]]
    yield "--action=ALLOW"
    yield from _value("--rules", ",".join(rules))
    yield from _value("--source-ranges", ",".join(fields.take("sourceRanges") or ()))
    yield from _value("--description", fields.take("description"))


def _policy(fields: Fields) -> Iterator[str]:
    fields.take("region")
    collocation = fields.take("groupPlacementPolicy", "collocation")
    yield from _value("--collocation", collocation and collocation.lower())
    yield from _value("--vm-count", fields.take("groupPlacementPolicy", "vmCount"))
    yield from _value("--max-distance", fields.take("groupPlacementPolicy", "maxDistance"))
    yield from _value("--gpu-topology", fields.take("groupPlacementPolicy", "gpuTopology"))
    yield from _value("--description", fields.take("description"))


def _cluster(fields: Fields) -> Iterator[str]:
    yield from _value("--cluster-version", fields.take("initialClusterVersion"))
    channel = fields.take("releaseChannel", "channel")
    yield from _value("--release-channel", "None" if channel == "UNSPECIFIED" else channel and channel.lower())
    yield from _value("--network", fields.take("network"))
    yield from _value("--subnetwork", fields.take("subnetwork"))
    fields.take("ipAllocationPolicy", "createSubnetwork")
    yield from _switch("--enable-ip-alias", fields.take("ipAllocationPolicy", "useIpAliases"))
    for flag, key in (
        ("--cluster-ipv4-cidr", "clusterIpv4CidrBlock"),
        ("--services-ipv4-cidr", "servicesIpv4CidrBlock"),
        ("--cluster-secondary-range-name", "clusterSecondaryRangeName"),
        ("--services-secondary-range-name", "servicesSecondaryRangeName"),
    ):
        yield from _value(flag, fields.take("ipAllocationPolicy", key))
    yield from _switch("--enable-dataplane-v2", fields.take("networkConfig", "datapathProvider"))
    yield from _switch("--enable-multi-networking", fields.take("networkConfig", "enableMultiNetworking"))
    fields.take("networkConfig", "defaultEnablePrivateNodes")
    yield from _switch("--enable-private-nodes", fields.take("privateClusterConfig", "enablePrivateNodes"))
    yield from _value("--master-ipv4-cidr", fields.take("privateClusterConfig", "masterIpv4CidrBlock"))
    authorized = fields.take("controlPlaneEndpointsConfig", "ipEndpointsConfig", "authorizedNetworksConfig") or {}
    blocks = ",".join(each["cidrBlock"] for each in authorized.get("cidrBlocks", ()))
    yield from _switch("--enable-master-authorized-networks", blocks)
    yield from _value("--master-authorized-networks", blocks)
    yield from _value("--node-locations", ",".join(fields.take("locations") or ()))
    yield from _value("--workload-pool", fields.take("workloadIdentityConfig", "workloadPool"))
    yield from _value("--labels", _pairs(fields.take("resourceLabels")))
    for pool in fields.take("nodePools") or ():
        own = Fields(pool, of="the cluster's own node pool")
        own.take("name")
        own.take("config", "resourceLabels")
        yield from _nodes(own)
        own.done(TOOL)


def _pool(fields: Fields) -> Iterator[str]:
    yield from _value("--labels", _pairs(fields.take("config", "resourceLabels")))
    yield from _value("--node-locations", ",".join(fields.take("locations") or ()))
    for each in fields.take("networkConfig", "additionalNodeNetworkConfigs") or ():
        yield f"--additional-node-network=network={each['network']},subnetwork={each['subnetwork']}"
    yield from _value("--placement-policy", fields.take("placementPolicy", "policyName"))
    yield from _nodes(fields)


def _nodes(fields: Fields) -> Iterator[str]:
    """What any node pool has."""
    yield from _value("--num-nodes", fields.take("initialNodeCount"))
    yield from _value("--machine-type", fields.take("config", "machineType"))
    for each in fields.take("config", "accelerators") or ():
        yield f"--accelerator={_accelerator(each)}"
    yield from _switch("--enable-gvnic", fields.take("config", "gvnic", "enabled"))
    yield from _value("--scopes", ",".join(fields.take("config", "oauthScopes") or ()))
    yield from _value("--service-account", fields.take("config", "serviceAccount"))
    yield from _value("--image-type", fields.take("config", "imageType"))
    yield from _value("--disk-type", fields.take("config", "diskType"))
    yield from _value("--disk-size", fields.take("config", "diskSizeGb"))
    ssds = fields.take("config", "ephemeralStorageLocalSsdConfig", "localSsdCount")
    yield from _value("--ephemeral-storage-local-ssd", None if ssds is None else f"count={ssds}")
    yield from _value("--node-labels", _pairs(fields.take("config", "labels")))
    taints = fields.take("config", "taints") or ()
    yield from _value(
        "--node-taints", ",".join(f"{each['key']}={each['value']}:{_EFFECTS[each['effect']]}" for each in taints)
    )
    yield from _value("--tags", ",".join(fields.take("config", "tags") or ()))
    yield from _reservation(fields.take("config", "reservationAffinity") or {})
    yield from _value(
        "--host-maintenance-interval", fields.take("config", "hostMaintenancePolicy", "maintenanceInterval")
    )
    yield from _switch("--spot", fields.take("config", "spot"))
    yield from _value("--max-pods-per-node", fields.take("maxPodsConstraint", "maxPodsPerNode"))
    if fields.take("autoscaling", "enabled"):
        yield "--enable-autoscaling"
        yield from _value("--min-nodes", fields.take("autoscaling", "minNodeCount"))
        yield from _value("--max-nodes", fields.take("autoscaling", "maxNodeCount"))
    if fields.take("management", "autoRepair") is False:
        yield "--no-enable-autorepair"
    yield "--enable-autoupgrade" if fields.take("management", "autoUpgrade") else "--no-enable-autoupgrade"
    surge, away = fields.take("upgradeSettings", "maxSurge"), fields.take("upgradeSettings", "maxUnavailable")
    if (surge, away) != (1, None):
        yield from _value("--max-surge-upgrade", surge)
        yield from _value("--max-unavailable-upgrade", away)


def _accelerator(each: Mapping[str, Any]) -> str:
    driver = each.get("gpuDriverInstallationConfig", {}).get("gpuDriverVersion")
    parts = [f"type={each['acceleratorType']}", f"count={each['acceleratorCount']}"]
    if driver is not None:
        parts.append(f"gpu-driver-version={'disabled' if driver == 'INSTALLATION_DISABLED' else driver.lower()}")
    return ",".join(parts)


def _reservation(affinity: Mapping[str, Any]) -> Iterator[str]:
    if affinity:
        yield "--reservation-affinity=specific"
        yield f"--reservation={affinity['values'][0]}"


def _value(flag: str, value: Any) -> Iterator[str]:
    if value is not None and value != "":
        yield f"{flag}={value}"


def _switch(flag: str, value: Any) -> Iterator[str]:
    if value:
        yield flag


def _pairs(values: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in (values or {}).items())


def _relative(reference: str) -> str:
    """A network of the same project by name; gcloud takes the project from ``--project``."""
    return last(reference)


def _global(_key: Key) -> tuple[str, ...]:
    return ()


def _region(key: Key) -> tuple[str, ...]:
    return (f"--region={key.place}",)


def _location(key: Key) -> tuple[str, ...]:
    return (f"--location={key.place}",)


def _in_cluster(key: Key) -> tuple[str, ...]:
    place, _, cluster = key.place.partition("/")
    return (f"--cluster={cluster}", f"--location={place}")


_KINDS: Final[
    Mapping[Kind, tuple[tuple[str, ...], Callable[[Key], tuple[str, ...]], Callable[[Fields], Iterator[str]]]]
] = MappingProxyType(
    {
        "network": (("compute", "networks"), _global, _network),
        "subnetwork": (("compute", "networks", "subnets"), _region, _subnet),
        "firewall": (("compute", "firewall-rules"), _global, _firewall),
        "resourcePolicy": (("compute", "resource-policies"), _region, _policy),
        "cluster": (("container", "clusters"), _location, _cluster),
        "nodePool": (("container", "node-pools"), _in_cluster, _pool),
    }
)
"""Kind to the words of its commands, the flags of its place, and the flags of its body."""

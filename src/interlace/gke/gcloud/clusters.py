"""What ``gcloud container clusters create`` asks for: a control plane and the pool that it is born with.

Invariant: gcloud's own defaults are written out here and nowhere else: a pool ``default-pool`` of three nodes, and
with ``--enable-ip-alias`` no subnet of its own.
"""

from __future__ import annotations

import re
from typing import Any, Final

from interlace.gke.bodies.cluster import cluster as cluster_body
from interlace.gke.bodies.fields import Body, given, nested
from interlace.gke.bodies.node_pool import node_pool
from interlace.gke.gcloud import pools, values
from interlace.gke.gcloud import settings as of
from interlace.gke.gcloud.call import Call
from interlace.gke.gcloud.faults import CLUSTER_NAME, Faults
from interlace.gke.gcloud.meanings import fields, merged
from interlace.gke.gcloud.settings import CONTAINER, Settings
from interlace.gke.resource import Key, Resource

MOST_NODES: Final = 1000
"""gcloud makes several pools of more nodes than this."""

_NEEDS_ALIAS: Final = (
    "--services-ipv4-cidr", "--create-subnetwork", "--cluster-secondary-range-name", "--services-secondary-range-name",
    "--max-pods-per-node", "--default-max-pods-per-node", "--enable-private-nodes", "--disable-default-snat",
    "--private-cluster", "--stack-type", "--ipv6-access-type", "--disable-pod-cidr-overprovision",
)  # fmt: skip
"""Flags that mean something only with ``--enable-ip-alias``; gcloud refuses most of them without it."""

_NEEDS: Final = {
    "--enable-private-endpoint": ("--enable-private-nodes", "--private-cluster"),
    "--disable-default-snat": ("--enable-private-nodes", "--private-cluster"),
    "--master-ipv4-cidr": ("--enable-private-nodes", "--private-cluster"),
    "--master-authorized-networks": ("--enable-master-authorized-networks",),
    "--enable-mesh-certificates": ("--workload-pool",),
    "--cluster-dns-scope": ("--cluster-dns",),
    "--cluster-dns-domain": ("--cluster-dns",),
    "--identity-provider": ("--workload-pool",),
}
"""Flag to those of which one must be switched on with it."""

_ADDONS: Final[dict[str, tuple[str, dict[str, bool]]]] = {
    "BackupRestore": ("gkeBackupAgentConfig", {"enabled": True}),
    "GcePersistentDiskCsiDriver": ("gcePersistentDiskCsiDriverConfig", {"enabled": True}),
    "GcpFilestoreCsiDriver": ("gcpFilestoreCsiDriverConfig", {"enabled": True}),
    "GcsFuseCsiDriver": ("gcsFuseCsiDriverConfig", {"enabled": True}),
    "HighScaleCheckpointing": ("highScaleCheckpointingConfig", {"enabled": True}),
    "LustreCsiDriver": ("lustreCsiDriverConfig", {"enabled": True}),
    "NodeLocalDNS": ("dnsCacheConfig", {"enabled": True}),
    "ParallelstoreCsiDriver": ("parallelstoreCsiDriverConfig", {"enabled": True}),
    "RayOperator": ("rayOperatorConfig", {"enabled": True}),
    "StatefulHA": ("statefulHaConfig", {"enabled": True}),
}
"""Add-ons that are there only when they are asked for."""

_SWITCHED: Final = {
    "HorizontalPodAutoscaling": "horizontalPodAutoscaling",
    "HttpLoadBalancing": "httpLoadBalancing",
    "KubernetesDashboard": "kubernetesDashboard",
    "NetworkPolicy": "networkPolicyConfig",
}
"""Add-ons that are switched off unless they are asked for, once any is."""

_LOGGING: Final = {
    "SYSTEM": "SYSTEM_COMPONENTS", "WORKLOAD": "WORKLOADS", "API_SERVER": "APISERVER", "SCHEDULER": "SCHEDULER",
    "CONTROLLER_MANAGER": "CONTROLLER_MANAGER",
}  # fmt: skip
_MONITORING: Final = {
    "SYSTEM": "SYSTEM_COMPONENTS", "API_SERVER": "APISERVER", "SCHEDULER": "SCHEDULER",
    "CONTROLLER_MANAGER": "CONTROLLER_MANAGER", "STORAGE": "STORAGE", "HPA": "HPA", "POD": "POD",
    "DAEMONSET": "DAEMONSET", "DEPLOYMENT": "DEPLOYMENT", "STATEFULSET": "STATEFULSET", "CADVISOR": "CADVISOR",
    "KUBELET": "KUBELET", "DCGM": "DCGM", "JOBSET": "JOBSET",
}  # fmt: skip
"""In the order in which they are sent."""

_DNS: Final = {"clouddns": "CLOUD_DNS", "kubedns": "KUBE_DNS", "default": "PLATFORM_DEFAULT"}
_DNS_SCOPES: Final = {"cluster": "CLUSTER_SCOPE", "vpc": "VPC_SCOPE"}


def cluster(call: Call, settings: Settings, faults: Faults) -> Resource:
    """``container clusters create``."""
    name, project = of.only_name(call, what="cluster"), of.project(call, settings)
    location = of.location(call, settings)
    _check(call)
    faults.name(name, what="cluster", pattern=CLUSTER_NAME)
    networking: Body = given(
        datapathProvider=_dataplane(call),
        enableMultiNetworking=call.switch("--enable-multi-networking") or None,
        dnsConfig=_dns(call),
        defaultSnatStatus={"disabled": True} if call.switch("--disable-default-snat") else None,
    )
    private = _private(call)
    hidden = call.switch("--enable-private-nodes")
    networking |= given(defaultEnablePrivateNodes=True if call.has("--private-cluster") else hidden)
    said = merged(fields(call, "cluster"), {"networkConfig": networking} if networking else {})
    alias = call.switch("--enable-ip-alias")
    body = cluster_body(
        name=name,
        pools=[_default_pool(call)],
        addresses=_addresses(call, alias=alias),
        private=private,
        locations=sorted(values.listed(call, "--node-locations") or ()),
        maintenance=_maintenance(call),
        **{**said, **_more(call, project)},
    )
    pods = call.text("--cluster-ipv4-cidr")
    if pods is not None and not alias:
        body["clusterIpv4Cidr"] = pods
    return Resource(key=Key("cluster", location, name), project=project, body=body, version=CONTAINER[call.track])


def _check(call: Call) -> None:
    """Flags that need others, as gcloud checks them."""
    alias = call.switch("--enable-ip-alias")
    for flag in _NEEDS_ALIAS:
        if call.has(flag) and call.flags[flag][-1] is not False and not alias:
            call.refuse(f"{flag} needs --enable-ip-alias")
    for flag, needed in _NEEDS.items():
        if call.has(flag) and call.flags[flag][-1] is not False and not any(_on(call, each) for each in needed):
            call.refuse(f"{flag} needs {needed[0]}")
    for flag in ("--enable-network-egress-metering", "--enable-resource-consumption-metering"):
        if call.has(flag) and not call.has("--resource-usage-bigquery-dataset"):
            call.refuse(f"{flag} needs --resource-usage-bigquery-dataset")
    if call.has("--cluster-secondary-range-name") and call.has("--create-subnetwork"):
        call.refuse("--cluster-secondary-range-name and --create-subnetwork exclude each other")
    if call.has("--services-secondary-range-name") and call.has("--create-subnetwork"):
        call.refuse("--services-secondary-range-name and --create-subnetwork exclude each other")
    if call.has("--additional-zones"):
        call.refuse("--additional-zones is not taken", remedy="Write --node-locations.")
    most = values.number(call, "--max-nodes-per-pool")
    number = values.number(call, "--num-nodes")
    if number is not None and number > min(MOST_NODES, most or MOST_NODES):
        call.refuse(
            f"--num-nodes={number} is not taken", cause="Several pools are made of so many nodes.",
            remedy="Make the pools with node-pools create.",
        )  # fmt: skip
    if number is not None and number < 1:
        call.refuse(f"--num-nodes={number} is refused by gcloud", remedy="Ask for one node or more.")


def _on(call: Call, flag: str) -> bool:
    return call.has(flag) and call.flags[flag][-1] is not False


def _dataplane(call: Call) -> str | None:
    provider = {"advanced": "ADVANCED_DATAPATH", "legacy": "LEGACY_DATAPATH"}
    said, switched = values.mapped(call, "--datapath-provider", provider), call.switch("--enable-dataplane-v2")
    return said or (provider["advanced"] if switched else None)


def _dns(call: Call) -> Body | None:
    return nested(
        clusterDns=values.mapped(call, "--cluster-dns", _DNS),
        clusterDnsScope=values.mapped(call, "--cluster-dns-scope", _DNS_SCOPES),
        clusterDnsDomain=call.text("--cluster-dns-domain"),
        additiveVpcScopeDnsDomain=call.text("--additive-vpc-scope-dns-domain"),
    )


def _private(call: Call) -> Body | None:
    """The old form of a private cluster, which goes out where the range of the control plane is said."""
    space = call.text("--master-ipv4-cidr")
    hidden = call.switch("--enable-private-nodes") or call.switch("--private-cluster")
    if space is None or not hidden:
        return None
    endpoint = call.switch("--enable-private-endpoint")
    return given(enablePrivateNodes=True, masterIpv4CidrBlock=space, enablePrivateEndpoint=endpoint)


def _addresses(call: Call, *, alias: bool | None) -> Body | None:
    if alias is False:
        return {"useRoutes": True}
    if not alias:
        return None
    body: Body = {"useIpAliases": True, "createSubnetwork": False}
    created = values.pairs(call, "--create-subnetwork")
    if created is not None:
        if set(created) - {"name", "range"}:
            call.refuse("--create-subnetwork: keys are name and range")
        if call.has("--subnetwork"):
            call.refuse("--create-subnetwork and --subnetwork exclude each other")
        body["createSubnetwork"] = True
        body |= given(subnetworkName=created.get("name"), nodeIpv4CidrBlock=created.get("range"))
    body |= given(clusterIpv4CidrBlock=call.text("--cluster-ipv4-cidr"))
    return merged(body, fields(call, "addresses"))


def _default_pool(call: Call) -> Body:
    surge, missing = values.number(call, "--max-surge-upgrade"), values.number(call, "--max-unavailable-upgrade")
    if call.track != "ga" and (surge is None) != (missing is None):
        call.refuse("--max-surge-upgrade and --max-unavailable-upgrade belong together")
    upgrade = given(maxSurge=1 if surge is None and missing is None else surge, maxUnavailable=missing)
    if surge is None and missing is not None:
        upgrade["maxSurge"] = 1
    alpha, upgraded = call.switch("--enable-kubernetes-alpha"), call.switch("--enable-autoupgrade")
    call.understands("--enable-autorepair")
    return node_pool(
        name=call.text("--node-pool-name") or "default-pool",
        config=pools.nodes(call),
        nodes=pools.count(call),
        auto_repair=None if alpha and not call.has("--enable-autorepair") else pools.repair(call),
        auto_upgrade=None if alpha and upgraded is None else upgraded is not False,
        placement=pools.placement(call),
        upgrade=upgrade,
        scaling=pools.scaling(call),
        **fields(call, "pool"),
    )


def _maintenance(call: Call) -> Body | None:
    daily = call.text("--maintenance-window")
    start, end = values.moment(call, "--maintenance-window-start"), values.moment(call, "--maintenance-window-end")
    again = call.text("--maintenance-window-recurrence")
    said = [each is not None for each in (start, end, again)]
    if any(said) and not all(said):
        call.refuse("--maintenance-window-start, -end and -recurrence belong together")
    if daily is not None and any(said):
        call.refuse("--maintenance-window and --maintenance-window-start exclude each other")
    if daily is not None:
        if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", daily):
            call.refuse(f"--maintenance-window={daily} is no time of the day", remedy="Write it like 03:00.")
        return {"window": {"dailyMaintenanceWindow": {"startTime": daily}}}
    if again is None:
        return None
    window = {"startTime": start, "endTime": end}
    return {"window": {"recurringWindow": {"recurrence": again, "window": window}}}


def _more(call: Call, project: str) -> Body:
    """Parts of the control plane that are made of several flags."""
    body = given(
        addonsConfig=_addons(call),
        loggingConfig=_components(call, "--logging", _LOGGING),
        monitoringConfig=_monitoring(call),
        controlPlaneEndpointsConfig=_endpoints(call),
        networkPolicy={"enabled": True, "provider": "CALICO"} if call.switch("--enable-network-policy") else None,
        autoscaling=nested(autoscalingProfile=_profile(call)),
    )
    if call.switch("--enable-fleet"):
        if call.has("--fleet-project"):
            call.refuse("--enable-fleet and --fleet-project exclude each other")
        body["fleet"] = {"project": project}
    group = call.text("--security-group")
    if group is not None:
        body["authenticatorGroupsConfig"] = {"enabled": True, "securityGroup": group}
    key = call.text("--database-encryption-key")
    if key is not None:
        if not re.fullmatch(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+", key):
            call.refuse(f"--database-encryption-key={key} is no key", remedy="Write its whole path, projects/P/....")
        body["databaseEncryption"] = {"keyName": key, "state": "ENCRYPTED"}
    return body | _services(call)


def _profile(call: Call) -> str | None:
    profiles = {"optimize-utilization": "OPTIMIZE_UTILIZATION", "balanced": "BALANCED"}
    return values.mapped(call, "--autoscaling-profile", profiles)


def _services(call: Call) -> Body:
    """The older switches for logging and monitoring."""
    both = call.switch("--enable-stackdriver-kubernetes")
    logs, meters = call.switch("--enable-cloud-logging"), call.switch("--enable-cloud-monitoring")
    if both is not None and (logs is not None or meters is not None):
        call.refuse("--enable-stackdriver-kubernetes and --enable-cloud-logging exclude each other")
    if both is not None and call.track != "ga":
        return {"clusterTelemetry": {"type": "ENABLED" if both else "DISABLED"}}
    if both is not None:
        suffix = ".googleapis.com/kubernetes"
        return {
            "loggingService": f"logging{suffix}" if both else "none",
            "monitoringService": f"monitoring{suffix}" if both else "none",
        }
    return given(
        loggingService=None if logs is None else "logging.googleapis.com" if logs else "none",
        monitoringService=None if meters is None else "monitoring.googleapis.com" if meters else "none",
    )


def _addons(call: Call) -> Body | None:
    said = values.listed(call, "--addons")
    if not said:
        return None
    for each in said:
        if each not in _ADDONS and each not in _SWITCHED:
            call.refuse(f"--addons={each} is not taken", remedy=f"Take it out of --addons; {each} can be added later.")
    body: dict[str, Any] = {field: {"disabled": name not in said} for name, field in _SWITCHED.items()}
    for each in said:
        if each in _ADDONS:
            field, value = _ADDONS[each]
            body[field] = dict(value)
    return body


def _components(call: Call, flag: str, names: dict[str, str]) -> Body | None:
    said = values.listed(call, flag)
    if not said:
        return None
    if "NONE" in said:
        if len(said) > 1:
            call.refuse(f"{flag}: NONE stands alone")
        return {"componentConfig": {}}
    unknown = [each for each in said if each not in names]
    if unknown:
        call.refuse(f"{flag}={unknown[0]} is not taken", remedy=f"Write one of {', '.join(names)}.")
    if "SYSTEM" not in said:
        call.refuse(f"{flag} without SYSTEM is refused by gcloud", remedy="Add SYSTEM.")
    return {"componentConfig": {"enableComponents": [sent for name, sent in names.items() if name in said]}}


def _monitoring(call: Call) -> Body | None:
    metrics, relay = _either(call, "metrics"), _either(call, "flow-observability")
    body = _components(call, "--monitoring", _MONITORING) or {}
    prometheus = call.switch("--enable-managed-prometheus")
    body |= given(managedPrometheusConfig=nested(enabled=prometheus))
    body |= given(advancedDatapathObservabilityConfig=nested(enableMetrics=metrics, enableRelay=relay))
    return body or None


def _either(call: Call, what: str) -> bool | None:
    on, off = call.switch(f"--enable-dataplane-v2-{what}"), call.switch(f"--disable-dataplane-v2-{what}")
    if on and off:
        call.refuse(f"--enable-dataplane-v2-{what} and --disable-dataplane-v2-{what} exclude each other")
    return True if on else False if off else None


def _endpoints(call: Call) -> Body | None:
    """How the control plane is reached."""
    body = fields(call, "endpoints")
    ways = body.setdefault("ipEndpointsConfig", {})
    hidden = call.switch("--enable-private-endpoint")
    if hidden is not None:
        ways["enablePublicEndpoint"] = not hidden
    networks = values.listed(call, "--master-authorized-networks")
    google, inside = (
        call.switch("--enable-google-cloud-access"),
        call.switch("--enable-authorized-networks-on-private-endpoint"),
    )
    enabled = call.switch("--enable-master-authorized-networks")
    allowed = given(
        enabled=enabled,
        cidrBlocks=[{"cidrBlock": each} for each in networks] if networks else None,
        gcpPublicCidrsAccessEnabled=google,
        privateEndpointEnforcementEnabled=inside,
    )
    if allowed:
        ways["authorizedNetworksConfig"] = {"enabled": False} | allowed
    if not ways:
        del body["ipEndpointsConfig"]
    return body or None

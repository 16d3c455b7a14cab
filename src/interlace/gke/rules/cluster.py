"""Rules about the cluster as a whole: version, data plane, networking mode, upgrades, state."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from interlace.fabric.minimum import judge
from interlace.fabric.version import GkeVersion, VersionError, gke_version, minor_version
from interlace.gke.observed.container import Cluster, Exclusion
from interlace.gke.rules.subject import Subject
from interlace.rules.rule import Breach, Rules

RULES: Final[Rules[Subject]] = Rules()

UPGRADE_HOLDS: Final = frozenset({"NO_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"})
"""Scopes of maintenance exclusions under which GKE leaves nodes alone."""


_NEWEST: Final = 10**6
_SOON: Final = timedelta(days=7)
"""An exclusion that begins within this time counts as if it had begun."""


def channel_of(cluster: Cluster) -> str:
    """Its release channel; empty: none."""
    channel = cluster.release_channel.channel.upper()
    return "" if channel in ("", "UNSPECIFIED") else channel


@RULES.rule(
    "cluster.version",
    cause="GPUDirect needs parts of the node image and of GKE that older versions do not have",
    remedy="upgrade the control plane, or make the cluster with a version that `interlace gke versions` lists",
    needs=("cluster",),
)
def _version(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster is None or subject.family is None:
        return
    current = cluster.current_master_version
    member, text = ("currentMasterVersion", current) if current else ("initialClusterVersion", "")
    text = text or cluster.initial_cluster_version
    yield from version_breaches(subject, text, pointer=f"/cluster/{member}", what=f"cluster {cluster.name}")


def version_breaches(subject: Subject, text: str, *, pointer: str, what: str) -> Iterator[Breach]:
    """What is to be said about the version of ``what``: too old, below the recommended, or newer than the table."""
    family = subject.family
    if family is None or (not text and not subject.whole):
        return
    try:
        version, exact = _version_of(text)
    except VersionError:
        if text and text not in ("-", "latest"):
            yield Breach(
                pointer=pointer,
                text=f"{what} has version {text!r}, which is no GKE version",
                cause="so it is not known whether it is new enough",
                remedy="name a whole version like 1.34.5-gke.1153000",
            )
            return
        yield Breach(
            pointer=pointer,
            text=f"{what} names no version",
            cause="it is not known whether it is new enough",
            remedy="name a whole version like 1.34.5-gke.1153000",
            severity="info",
        )
        return
    verdict = judge(family, version)
    if not verdict.ok:
        yield Breach(pointer=pointer, text=f"{what} is too old: {verdict.why}")
    elif not exact:
        yield Breach(
            pointer=pointer,
            text=f"{what} names version {text}, of which GKE chooses the patch",
            cause="whether it is new enough depends on the patch",
            remedy="name a whole version like 1.34.5-gke.1153000",
            severity="info",
        )
    elif not verdict.known:
        yield Breach(
            pointer=pointer,
            text=f"{what} runs a version that was not checked: {verdict.why}",
            cause="new versions have broken GPUDirect before",
            remedy="measure with `interlace verify` before jobs rely on it",
            severity="info",
        )
    elif "recommended" in verdict.why:
        yield Breach(
            pointer=pointer,
            text=f"{what} runs a version below the recommended one: {verdict.why}",
            cause="the recommended one is that of which the release notes speak",
            remedy="upgrade when you can",
            severity="warning",
        )


def _version_of(text: str) -> tuple[GkeVersion, bool]:
    """The version, and whether it is whole: ``1.34`` and ``1.34.5`` mean the newest of them. Raises VersionError."""
    try:
        return gke_version(text), True
    except VersionError:
        minor, _, patch = text.rpartition(".") if text.count(".") > 1 else (text, "", "")
        if patch and not patch.isdecimal():
            raise
        return GkeVersion(*minor_version(minor), int(patch or _NEWEST), _NEWEST), False


@RULES.rule(
    "cluster.dataplane",
    cause="multi-networking works with Dataplane V2 alone, and a cluster gets its data plane when it is made",
    remedy="make a new cluster with --enable-dataplane-v2 (datapathProvider ADVANCED_DATAPATH); it cannot be changed",
    needs=("cluster",),
)
def _dataplane(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster and cluster.network_config.datapath_provider != "ADVANCED_DATAPATH":
        has = cluster.network_config.datapath_provider or "not set"
        yield Breach(
            pointer="/cluster/networkConfig/datapathProvider",
            text=f"cluster {cluster.name} has no Dataplane V2: datapathProvider is {has}",
        )


@RULES.rule(
    "cluster.multi-networking",
    cause="without multi-networking Pods cannot have the NICs of the GPUs, and there is no Network kind",
    remedy="make a new cluster with --enable-multi-networking (enableMultiNetworking true)",
    needs=("cluster",),
)
def _multi_networking(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    managed = bool(subject.pools) and all(pool.managed for pool in subject.pools)
    if cluster and not cluster.network_config.enable_multi_networking and not managed:
        yield Breach(
            pointer="/cluster/networkConfig/enableMultiNetworking",
            text=f"cluster {cluster.name} has multi-networking off: enableMultiNetworking is not true",
        )


@RULES.rule(
    "cluster.ip-alias",
    cause="Dataplane V2 and multi-networking need a VPC-native cluster",
    remedy="make the cluster with --enable-ip-alias (ipAllocationPolicy.useIpAliases true)",
    needs=("cluster",),
)
def _ip_alias(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster and not cluster.ip_allocation_policy.use_ip_aliases and not cluster.autopilot.enabled:
        yield Breach(
            pointer="/cluster/ipAllocationPolicy/useIpAliases",
            text=f"cluster {cluster.name} is not VPC-native: useIpAliases is not true",
        )


@RULES.rule(
    "cluster.autopilot",
    cause="Autopilot takes other manifests for GPUDirect than a Standard cluster, and lets nobody make node pools",
    remedy="make a Standard cluster, or follow Google's page for GPUDirect on Autopilot",
    needs=("cluster",),
)
def _autopilot(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster and cluster.autopilot.enabled:
        yield Breach(
            pointer="/cluster/autopilot/enabled",
            text=f"cluster {cluster.name} is an Autopilot cluster, for which these manifests are not made",
        )


@RULES.rule(
    "cluster.status",
    cause="a cluster that is not RUNNING takes no changes, or does not work",
    remedy="see statusMessage and `gcloud container operations list`; wait for a running operation",
    needs=("cluster",),
)
def _status(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster is None or not subject.whole or cluster.status in ("", "RUNNING"):
        return
    busy = cluster.status in ("PROVISIONING", "RECONCILING")
    message = f": {cluster.status_message}" if cluster.status_message else ""
    yield Breach(
        pointer="/cluster/status",
        text=f"cluster {cluster.name} is {cluster.status}{message}",
        severity="warning" if busy else "error",
    )


@RULES.rule(
    "cluster.auto-upgrade",
    cause="in a release channel GKE upgrades nodes and refuses pools with autoUpgrade false (HTTP 400)",
    remedy="leave autoUpgrade on and add a maintenance exclusion of scope NO_MINOR_OR_NODE_UPGRADES, or leave the "
    "channel",
    needs=("cluster",),
)
def _auto_upgrade(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster is None or not channel_of(cluster):
        return
    for index, pool in enumerate(cluster.node_pools):
        if not pool.management.auto_upgrade:
            yield Breach(
                pointer=f"/cluster/nodePools/{index}/management/autoUpgrade",
                text=f"node pool {pool.name} has autoUpgrade false, and the cluster is in release channel "
                f"{channel_of(cluster)}",
            )


@RULES.rule(
    "cluster.upgrade-hold",
    severity="warning",
    cause="an upgrade of the nodes ends the jobs on them, and may bring a driver that the installed GPUDirect "
    "software does not know",
    remedy="add a maintenance exclusion of scope NO_MINOR_OR_NODE_UPGRADES while jobs run, or turn autoUpgrade off in "
    "a cluster without a channel",
    needs=("cluster",),
)
def _upgrade_hold(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster is None or held(cluster, now=subject.now):
        return
    for pool in subject.pools:
        if pool.pool.management.auto_upgrade:
            yield Breach(
                pointer=pool.at("management", "autoUpgrade"),
                text=f"{pool.says} is upgraded by GKE at any time: autoUpgrade is true and no maintenance exclusion "
                "holds its nodes",
            )


@RULES.rule(
    "cluster.channel-unset",
    severity="warning",
    cause="GKE puts a new cluster for which no channel is named in one, and a channel refuses autoUpgrade false",
    remedy="name the channel: UNSPECIFIED for none, or one with a maintenance exclusion",
    needs=("cluster",),
)
def _channel_unset(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster is None or subject.source != "requested" or cluster.release_channel.channel:
        return
    if any(not pool.management.auto_upgrade for pool in cluster.node_pools):
        yield Breach(
            pointer="/cluster/releaseChannel",
            text=f"cluster {cluster.name} has node pools with autoUpgrade false and names no release channel",
        )


@RULES.rule(
    "cluster.default-network",
    severity="warning",
    cause="many organisations make projects without the network `default`; the cluster is then refused (HTTP 400)",
    remedy="name network and subnet of the cluster, in private space of its own",
    needs=("cluster",),
)
def _default_network(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster and subject.source == "requested" and not (cluster.network or cluster.network_config.network):
        yield Breach(
            pointer="/cluster/network", text=f"cluster {cluster.name} names no network, so GKE takes `default`"
        )


def held(cluster: Cluster, *, now: datetime | None) -> bool:
    """Whether a maintenance exclusion keeps its nodes as they are; without ``now`` any such exclusion counts."""
    exclusions = cluster.maintenance_policy.window.maintenance_exclusions.values()
    return any(_holds(each, now) for each in exclusions)


def _holds(exclusion: Exclusion, now: datetime | None) -> bool:
    if exclusion.maintenance_exclusion_options.scope not in UPGRADE_HOLDS:
        return False
    start, end = when(exclusion.start_time), when(exclusion.end_time)
    return now is None or ((start is None or start <= now + _SOON) and (end is None or now < end))


def when(text: str) -> datetime | None:
    """A time of an API (RFC 3339); None for an empty or odd one."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None

"""Rules about node pools: machine, image, scopes, version, state, size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from interlace.fabric.family import FamilyError, find
from interlace.gke.bodies.scopes import CLOUD_PLATFORM, PREFIX
from interlace.gke.places import short
from interlace.gke.rules.cluster import version_breaches
from interlace.gke.rules.subject import Subject
from interlace.rules.rule import Breach, Rules
from interlace.rules.words import counted

RULES: Final[Rules[Subject]] = Rules()

_PULL: Final = frozenset({CLOUD_PLATFORM, PREFIX + "devstorage.read_only", PREFIX + "devstorage.read_write"})
_LABEL: Final = re.compile(r"[a-z][-_a-z0-9]{0,62}\Z")
_LABEL_VALUE: Final = re.compile(r"[-_a-z0-9]{0,63}\Z")


@RULES.rule(
    "pool.missing",
    severity="warning",
    cause="jobs find no nodes with GPUs",
    remedy="make the node pool, or name the one that is there",
    needs=("cluster",),
)
def _missing(subject: Subject) -> Iterator[Breach]:
    cluster, name = subject.state.cluster, subject.state.want.node_pool_name
    if cluster is None or not subject.whole or subject.pool is not None:
        return
    what = f"node pool {name}" if name else "node pool with GPUs of a known family"
    yield Breach(pointer="/cluster/nodePools", text=f"cluster {cluster.name} has no {what}")


@RULES.rule(
    "pool.machine-type",
    cause="GPUDirect works on the machine types of the family alone, with all of their GPUs and NICs",
    remedy="make a new node pool with the machine type of the family",
    needs=("cluster",),
)
def _machine_type(subject: Subject) -> Iterator[Breach]:
    family = subject.family
    for pool in subject.pools:
        machine = short(pool.pool.config.machine_type).lower()
        meant = family if pool.wanted else pool.family
        if meant is not None and machine in meant.machines:
            continue
        expected = f"; {meant.id} is {' or '.join(meant.machines)}" if meant else ""
        yield Breach(
            pointer=pool.at("config", "machineType"),
            text=f"{pool.says} has machine type {machine or 'e2-medium (GKE takes it where none is named)'}"
            f"{_why_refused(machine) or expected}",
        )


def _why_refused(machine: str) -> str:
    try:
        find(machine)
    except FamilyError as error:
        text = str(error)
        return f", which is not of the family{text.partition(':')[1]}{text.partition(':')[2]}" if ":" in text else ""
    return ""


@RULES.rule(
    "pool.gvnic",
    cause="GPUDirect needs the gVNIC driver on every NIC of the node",
    remedy="make the pool with --enable-gvnic (gvnic.enabled true)",
    needs=("cluster",),
)
def _gvnic(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        arm = pool.family is not None and pool.family.node.arch == "arm64"
        if not pool.pool.config.gvnic.enabled and not arm:
            yield Breach(
                pointer=pool.at("config", "gvnic", "enabled"),
                text=f"{pool.says} has gVNIC off: gvnic.enabled is not true",
            )


@RULES.rule(
    "pool.image-type",
    cause="kernel and driver that GPUDirect needs are those of Container-Optimized OS",
    remedy="make the pool with image type COS_CONTAINERD",
    needs=("cluster",),
)
def _image_type(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        image = pool.pool.config.image_type
        if image and not image.upper().startswith("COS"):
            tcp = pool.family is None or pool.family.node.transport != "rdma"
            yield Breach(
                pointer=pool.at("config", "imageType"),
                text=f"{pool.says} has image type {image}, not Container-Optimized OS",
                severity="error" if tcp else "warning",
            )


@RULES.rule(
    "pool.scopes",
    severity="warning",
    cause="nodes may do no more than their access scopes, whatever their service account may; GKE's default scopes "
    "are read-only storage, logging and monitoring",
    remedy="make the pool with scope cloud-platform and a service account of its own with few roles",
    needs=("cluster",),
)
def _scopes(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        scopes = pool.pool.config.oauth_scopes
        if scopes is None and not subject.whole:
            continue
        have = {each if "/" in each else PREFIX + each for each in scopes or ()}
        if not have & _PULL:
            yield Breach(
                pointer=pool.at("config", "oauthScopes"),
                text=f"{pool.says} has no scope with which nodes pull images from Artifact Registry",
                severity="error",
            )
        elif CLOUD_PLATFORM not in have and pool.family and pool.family.node.transport == "tcpxo":
            yield Breach(
                pointer=pool.at("config", "oauthScopes"),
                text=f"{pool.says} lacks scope cloud-platform, with which Google's page makes pools for "
                "GPUDirect-TCPXO",
                # Narrow scopes are what a cluster file begins with.
                severity="warning" if subject.whole else "info",
            )


@RULES.rule(
    "pool.service-account",
    severity="info",
    cause="with scope cloud-platform every Pod that reaches the node's credentials may do what the default service "
    "account may, often everything in the project",
    remedy="give the nodes a service account with role container.defaultNodeServiceAccount and "
    "artifactregistry.reader, or turn Workload Identity on",
    needs=("cluster",),
)
def _service_account(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    if cluster and cluster.workload_identity_config.workload_pool:
        return
    for pool in subject.pools:
        config = pool.pool.config
        account = config.service_account
        broad = CLOUD_PLATFORM in (config.oauth_scopes or ())
        if broad and (account in ("", "default") or account.endswith("-compute@developer.gserviceaccount.com")):
            yield Breach(
                pointer=pool.at("config", "serviceAccount"),
                text=f"{pool.says} has scope cloud-platform and the project's default service account",
            )


@RULES.rule(
    "pool.version",
    cause="GPUDirect needs parts of the node image that older versions do not have",
    remedy="upgrade the node pool, or make it with a version that `interlace gke versions` lists",
    needs=("cluster",),
)
def _version(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if pool.pool.version or subject.whole:
            where = pool.at("version")
            yield from version_breaches(subject, pool.pool.version, pointer=where, what=pool.says)


@RULES.rule(
    "pool.status",
    cause="nodes of the pool are missing or do not work",
    remedy="see the message; delete and make the pool again if it does not recover",
    needs=("cluster",),
)
def _status(subject: Subject) -> Iterator[Breach]:
    if not subject.whole:
        return
    for pool in subject.pools:
        status = pool.pool.status
        if status in ("", "RUNNING", "STATUS_UNSPECIFIED"):
            continue
        busy = status in ("PROVISIONING", "RECONCILING")
        message = f": {pool.pool.status_message}" if pool.pool.status_message else ""
        yield Breach(
            pointer=pool.at("status"),
            text=f"{pool.says} is {status}{message}",
            remedy="wait until it is RUNNING" if busy else "",
            severity="warning" if busy else "error",
        )


@RULES.rule(
    "pool.condition",
    cause="Google could not make all nodes of the pool",
    remedy="see the message of the condition",
    needs=("cluster",),
)
def _condition(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for index, each in enumerate(pool.pool.conditions):
            code = each.code or each.canonical_code
            if code in ("", "OK"):
                continue
            yield Breach(
                pointer=pool.at("conditions", index),
                text=f"{pool.says} has condition {code}{f': {each.message}' if each.message else ''}",
                remedy=_CONDITIONS.get(code, ""),
                severity="warning" if code == "CA_EXPIRING" else "error",
            )


_CONDITIONS: Final = {
    "GCE_STOCKOUT": "the pool keeps trying: wait, take a reservation, set its size to 0, or make it in another zone",
    "GCE_QUOTA_EXCEEDED": "ask for more quota; `interlace gke check` tells which",
    "GKE_SERVICE_ACCOUNT_DELETED": "give the service agent of Kubernetes Engine its role back",
    "NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS": "give the node account role container.defaultNodeServiceAccount",
    "CA_EXPIRING": "rotate the credentials of the cluster",
}


@RULES.rule(
    "pool.size",
    cause="GKE takes the number of nodes in each zone of the pool, so a regional pool has several times as many",
    remedy="name one zone with --node-locations, and --num-nodes for it",
    needs=("cluster",),
)
def _size(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        count, zones = pool.pool.initial_node_count, len(pool.zones)
        where = pool.at("initialNodeCount")
        if count < 0:
            yield Breach(
                pointer=where,
                text=f"{pool.says} is to have {count} nodes",
                cause="the API refuses it, and gcloud does not notice",
                remedy="name a number of nodes that is not negative",
            )
            continue
        have = count * max(1, zones)
        wanted = subject.state.want.nodes if pool.wanted else 0
        if wanted and have != wanted and not pool.pool.autoscaling.enabled:
            each = f" ({count} in each of {zones} zones)" if zones > 1 else ""
            yield Breach(
                pointer=where,
                text=f"{pool.says} was made for {counted(have, 'node')}{each}, and should have {wanted}",
                cause="" if zones > 1 else "a pool keeps the size that it was given until somebody resizes it",
                remedy=f"resize it: `gcloud container clusters resize CLUSTER --node-pool {pool.name} --num-nodes N`, "
                "where N counts in each zone",
                severity="warning",
            )


@RULES.rule(
    "pool.zones",
    severity="warning",
    cause="between zones there is no fabric for GPUs, and not every zone has the machines",
    remedy="make the pool in one zone with --node-locations",
    needs=("cluster",),
)
def _zones(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        nodes = pool.pool.initial_node_count
        if len(pool.zones) > 1:
            yield Breach(
                pointer=pool.at("locations"),
                text=f"{pool.says} is in {len(pool.zones)} zones ({', '.join(pool.zones)}) with {nodes} nodes in each",
            )
        elif not pool.zones and not subject.whole:
            gpus = nodes * 3 * (pool.family.node.gpus if pool.family else 8)
            yield Breach(
                pointer=pool.at("locations"),
                text=f"{pool.says} names no zone in region {subject.region}, so GKE takes up to three, with {nodes} "
                f"nodes in each: {gpus} GPUs",
            )


@RULES.rule(
    "pool.autoscaling",
    cause="the API takes such bounds, and the pool then grows without limit or not at all",
    remedy="set a minimum, and a maximum that is not smaller",
    needs=("cluster",),
)
def _autoscaling(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    for index, pool in enumerate(cluster.node_pools if cluster else ()):
        scaling = pool.autoscaling
        where = f"/cluster/nodePools/{index}/autoscaling"
        bounds = (
            ("minNodeCount", scaling.min_node_count, "maxNodeCount", scaling.max_node_count),
            ("totalMinNodeCount", scaling.total_min_node_count, "totalMaxNodeCount", scaling.total_max_node_count),
        )
        if not scaling.enabled:
            continue
        if not scaling.max_node_count and not scaling.total_max_node_count:
            yield Breach(
                pointer=f"{where}/maxNodeCount", text=f"node pool {pool.name} scales by itself and has no maximum"
            )
        for low, least, high, most in bounds:
            if most and least > most:
                yield Breach(
                    pointer=f"{where}/{low}",
                    text=f"node pool {pool.name} has {low} {least} above {high} {most}",
                )


@RULES.rule(
    "pool.labels",
    cause="labels of Google Cloud are lower-case letters, digits, hyphens and underscores, and begin with a letter; "
    "the API refuses others after the work has begun",
    remedy="write the label in lower case",
    needs=("cluster",),
)
def _labels(subject: Subject) -> Iterator[Breach]:
    cluster = subject.state.cluster
    for index, pool in enumerate(cluster.node_pools if cluster else ()):
        for key, value in pool.config.resource_labels.items():
            if not _LABEL.match(key) or not _LABEL_VALUE.match(value):
                yield Breach(
                    pointer=f"/cluster/nodePools/{index}/config/resourceLabels",
                    text=f"node pool {pool.name} has label {key}={value}, which Google Cloud does not take",
                )

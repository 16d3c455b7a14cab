"""Rules about the Kubernetes nodes of a pool: how many there are, and whether each offers what the family has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interlace.fabric.minimum import judge
from interlace.fabric.version import VersionError, gke_version
from interlace.gke.rules.declared import natural
from interlace.gke.rules.subject import Subject
from interlace.rules.pointer import pointer
from interlace.rules.rule import Breach, Rules
from interlace.rules.words import counted

RULES: Final[Rules[Subject]] = Rules()

_NODES: Final = "kubernetes/nodes"
_SHARING: Final = {
    "cloud.google.com/gke-gpu-partition-size": "divides its GPUs (MIG)",
    "cloud.google.com/gke-gpu-sharing-strategy": "shares its GPUs among containers (time-sharing or MPS)",
}
"""Labels that GKE gives to nodes whose GPUs are not whole."""
_DRANET: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""Label of nodes whose GPUs are given by claim instead of by count."""


@RULES.rule(
    "node.count",
    cause="jobs find fewer nodes than were asked for",
    remedy="see the status of the node pool, its conditions and the capacity",
    needs=("cluster", _NODES),
)
def _count(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        want = subject.state.want.nodes if pool.wanted else 0
        have = len(subject.nodes(pool))
        if have < want or not (have or want or not pool.pool.initial_node_count):
            yield Breach(
                pointer="/kubernetes/nodes",
                text=f"{pool.says} has {counted(have, 'node')} in Kubernetes"
                f"{f', and should have {want}' if want else ''}",
                severity="warning"
                if pool.pool.status == "PROVISIONING" or (pool.pool.autoscaling.enabled and not want)
                else None,
            )


@RULES.rule(
    "node.not-ready",
    cause="Kubernetes starts no Pods on a node that is not Ready",
    remedy="see `kubectl describe node`, and the node's events",
    needs=("cluster", _NODES),
)
def _not_ready(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for node in subject.nodes(pool):
            ready = next((each for each in node.value.status.conditions if each.type == "Ready"), None)
            if ready is None or ready.status != "True":
                reason = ready.reason or ready.message if ready else "it has no condition Ready"
                yield Breach(
                    pointer=f"{node.pointer}/status/conditions",
                    text=f"node {node.value.metadata.name} is not Ready{f': {reason}' if reason else ''}",
                )


@RULES.rule(
    "node.cordoned",
    severity="warning",
    cause="Kubernetes starts no new Pods on a node that is cordoned",
    remedy="find out who keeps it back, an upgrade or a repair say; then `kubectl uncordon` it",
    needs=("cluster", _NODES),
)
def _cordoned(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for node in subject.nodes(pool):
            if node.value.spec.unschedulable:
                yield Breach(
                    pointer=f"{node.pointer}/spec/unschedulable", text=f"node {node.value.metadata.name} is cordoned"
                )


@RULES.rule(
    "node.shared-gpus",
    cause="GPUDirect takes whole GPUs, and GKE has labelled the node as one that divides or shares them",
    remedy="make the node pool anew without gpuPartitionSize and gpuSharingConfig",
    needs=("cluster", _NODES),
)
def _shared_gpus(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if any(
            each.gpu_partition_size or each.gpu_sharing_config.gpu_sharing_strategy
            for each in pool.pool.config.accelerators
        ):
            continue  # the rules about pools tell it once
        for node in subject.nodes(pool):
            for label, what in _SHARING.items():
                value = node.value.metadata.labels.get(label, "")
                if value:
                    yield Breach(
                        pointer=node.pointer + pointer("metadata", "labels", label),
                        text=f"node {node.value.metadata.name} {what}: label {label} is {value}",
                    )


@RULES.rule(
    "node.gpus",
    cause="GPUDirect takes all GPUs of the node; a driver that is not there yet, MIG, time-sharing or a broken GPU "
    "change their number",
    remedy="wait for the driver installer, see the Pods of the device plugin on the node, then take the node out",
    needs=("cluster", _NODES),
)
def _gpus(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        if pool.family is None:
            continue
        for node in subject.nodes(pool):
            if node.value.metadata.labels.get(_DRANET) == "true":
                continue
            have = str(node.value.status.allocatable.get("nvidia.com/gpu", 0))
            if have != str(pool.family.node.gpus):
                yield Breach(
                    pointer=f"{node.pointer}/status/allocatable/nvidia.com~1gpu",
                    text=f"node {node.value.metadata.name} offers {have} GPUs, and {pool.family.id} has "
                    f"{pool.family.node.gpus}",
                )


@RULES.rule(
    "node.machine-type",
    cause="the node is another machine than the pool says",
    remedy="take the node out, so that GKE makes it anew",
    needs=("cluster", _NODES),
)
def _machine_type(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for node in subject.nodes(pool):
            machine = node.value.metadata.labels.get("node.kubernetes.io/instance-type", "")
            if machine and pool.family and machine not in pool.family.machines:
                yield Breach(
                    pointer=f"{node.pointer}/metadata/labels/node.kubernetes.io~1instance-type",
                    text=f"node {node.value.metadata.name} is {machine}, and {pool.family.id} is "
                    f"{' or '.join(pool.family.machines)}",
                )


@RULES.rule(
    "node.version",
    cause="GPUDirect needs parts of the node image that older versions do not have",
    remedy="upgrade the node pool",
    needs=("cluster", _NODES),
)
def _version(subject: Subject) -> Iterator[Breach]:
    for pool in subject.pools:
        for node in subject.nodes(pool):
            text = node.value.status.node_info.kubelet_version
            try:
                verdict = judge(pool.family, gke_version(text)) if pool.family else None
            except VersionError:
                continue
            if verdict and not verdict.ok:
                yield Breach(
                    pointer=f"{node.pointer}/status/nodeInfo/kubeletVersion",
                    text=f"node {node.value.metadata.name} is too old: {verdict.why}",
                )


@RULES.rule(
    "node.networks",
    cause="a Pod that asks for a NIC which the node does not offer stays Pending",
    remedy="see the Network objects; a node that is older than they are is to be made anew",
    needs=("cluster", _NODES, "kubernetes/networks"),
)
def _networks(subject: Subject) -> Iterator[Breach]:
    devices = [each.value.metadata.name for each in subject.kubernetes_networks if each.value.spec.type == "Device"]
    for pool in subject.pools:
        nodes = subject.nodes(pool)
        offers = [set(map(str, node.value.status.allocatable)) for node in nodes]
        told = any(name.startswith("networking.gke.io.networks/") for each in offers for name in each)
        for node, offer in zip(nodes, offers, strict=True) if told else ():
            lacking = [
                name
                for name in sorted(devices, key=natural)
                if not {f"networking.gke.io.networks/{name}", f"networking.gke.io.networks/{name}.IP"} & offer
            ]
            if lacking:
                yield Breach(
                    pointer=f"{node.pointer}/status/allocatable",
                    text=f"node {node.value.metadata.name} does not offer {', '.join(lacking)}",
                )

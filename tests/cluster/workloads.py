"""Manifests and questions that the cluster tests share."""

from __future__ import annotations

from typing import Any

from interlace.api.computedomain import ComputeDomain
from interlace.api.core import Event, Pod
from interlace.api.meta import Condition
from interlace.sim.cluster import Cluster
from interlace.sim.kubelet.container import ContainerRecord

WITHIN = 30.0
"""Seconds that a state may take on a busy machine; tests never wait this long when all is well."""


def domain(name: str, *, namespace: str, template: str | None = None, **spec: Any) -> dict[str, Any]:
    """A ComputeDomain."""
    channel = {"resourceClaimTemplate": {"name": template or f"{name}-channel"}}
    if mode := spec.pop("allocationMode", None):
        channel["allocationMode"] = mode
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"numNodes": 0, "channel": channel} | spec,
    }


def pod_spec(*, template: str | None = None, claim: str | None = None, gpus: int = 4) -> dict[str, Any]:
    """A pod with one channel claim."""
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    return {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "c",
                "image": "localhost/pause:1",
                "resources": {"claims": [{"name": "channel"}], "limits": {"nvidia.com/gpu": str(gpus)}},
            }
        ],
        "resourceClaims": [{"name": "channel"} | source],
    }


def deployment(
    name: str, *, namespace: str, replicas: int, template: str, kind: str = "Deployment", gpus: int = 4, **spec: Any
) -> dict[str, Any]:
    """A Deployment or StatefulSet of such pods."""
    labels = {"job": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(template=template, gpus=gpus)},
        }
        | ({"serviceName": name} if kind == "StatefulSet" else {})
        | spec,
    }


def pods(cluster: Cluster, job: str, *, namespace: str) -> list[Pod]:
    """Living pods of a job."""
    return [
        pod
        for pod in cluster.pods.items()
        if pod.metadata.namespace == namespace
        and pod.metadata.labels.get("job") == job
        and not pod.metadata.deletion_timestamp
    ]


def read_domain(cluster: Cluster, name: str, *, namespace: str) -> ComputeDomain | None:
    """The domain as the API shows it now."""
    return cluster.domains.get(name, namespace)


def nodes_ready(cluster: Cluster, name: str, *, namespace: str) -> list[str]:
    """Names of the nodes that the domain shows as Ready."""
    found = read_domain(cluster, name, namespace=namespace)
    return [node.name for node in found.status.nodes if node.status == "Ready"] if found and found.status else []


def condition(cluster: Cluster, name: str, kind: str, *, namespace: str) -> Condition | None:
    """One condition of the domain."""
    found = read_domain(cluster, name, namespace=namespace)
    conditions = found.status.conditions if found and found.status else []
    return next((item for item in conditions if item.type == kind), None)


def container(cluster: Cluster, pod: Pod) -> ContainerRecord:
    """What the pod's only container got."""
    worker = cluster.fleet.nodes[pod.spec.node_name].workers[pod.metadata.uid]
    (record,) = worker.records
    return record


def offers(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Node to whom the devices of its slice name, and how many they are."""
    return {
        slice_.spec.node_name or "": (
            slice_.spec.devices[0].attributes["domain"].string or "",
            len(slice_.spec.devices),
        )
        for slice_ in cluster.slices.items()
    }


async def events(cluster: Cluster, namespace: str, *, about: str) -> list[Event]:
    """Events about the object named ``about``."""
    listing = await cluster.client.list(Event, namespace=namespace, fields=f"involvedObject.name={about}")
    return listing.items

"""Manifests of the jobs that the fault table breaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from interlace.api.meta import Resource
from interlace.kube.untyped import untyped

DEPLOYMENTS: Final = untyped(Resource("apps", "v1", "deployments", "Deployment", True))


def domain(name: str, *, namespace: str, **spec: Any) -> dict[str, Any]:
    """A ComputeDomain whose template is called as it is, with ``-channel`` behind."""
    channel = {"resourceClaimTemplate": {"name": f"{name}-channel"}}
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"numNodes": 0, "channel": channel} | spec,
    }


def deployment(
    name: str,
    *,
    namespace: str,
    count: int,
    nodes: Sequence[str] = (),
    gpus: int = 4,
    pod: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A Deployment of Pods with one channel each and, if nothing else is said, all GPUs of a node."""
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "c",
                "image": "localhost/pause:1",
                "resources": {"claims": [{"name": "channel"}], "limits": {"nvidia.com/gpu": str(gpus)}},
            }
        ],
        "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": f"{name}-channel"}],
    } | dict(pod or {})
    if nodes:
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}]
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
    labels = {"job": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }

"""The example's manifests as the tests of this tier use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.node.world import WORKLOAD_IMAGE

EXAMPLE = Path(__file__).parents[2] / "examples/gb200-nvl72"
JOB = "job=ex1"
DEPLOYMENT_NAME = "example-mnnvl-workload"
DOMAIN_NAME = "compute-domain-0"


def domain(namespace: str) -> dict[str, Any]:
    """The example's ComputeDomain."""
    return _example("computedomain", namespace)


def workload(namespace: str, *, replicas: int) -> dict[str, Any]:
    """The example's Deployment; only the image is replaced, and the number of Pods."""
    manifest = _example("deployment", namespace)
    manifest["spec"]["replicas"] = replicas
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    container["image"] = WORKLOAD_IMAGE
    return manifest


def plain_pod(namespace: str, node: str) -> dict[str, Any]:
    """The same container without claim and GPUs, on ``node``."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"plain-{node}", "namespace": namespace, "labels": {"job": "plain"}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "ctr", "image": WORKLOAD_IMAGE, "command": ["mnnvl-workload"]}],
        },
    }


def _example(name: str, namespace: str) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLE / f"{name}.yaml").read_text())
    manifest["metadata"]["namespace"] = namespace
    return manifest

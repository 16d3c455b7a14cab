"""Pods to inject, short."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
MACHINE = "node.kubernetes.io/instance-type"


def container(name: str = "main", *, gpus: int = 8, **fields: Any) -> Json:
    """A container with GPUs."""
    resources: Json = {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    return {"name": name, "image": "docker.io/library/ubuntu:22.04", "command": ["train"], **resources, **fields}


def pod(*containers: Json, labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    """A Pod that runs to completion."""
    metadata: Json = {"name": "one"}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"restartPolicy": "Never", "containers": list(containers) or [container()], **spec},
    }


def env(each: Json) -> dict[str, str]:
    """Name to value of a container."""
    return {entry["name"]: entry["value"] for entry in each.get("env", []) if "value" in entry}


def mounts(each: Json) -> dict[str, str]:
    """Path to volume of a container."""
    return {entry["mountPath"]: entry["name"] for entry in each.get("volumeMounts", [])}

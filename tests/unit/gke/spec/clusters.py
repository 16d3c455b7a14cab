"""Cluster files for tests: the smallest one that is valid, and changes of it."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, settings

from interlace.gke.cluster import FabricCluster
from interlace.gke.reading import parse

CALM = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties: nothing in a test may depend on how fast the machine is."""

FAMILIES = ("a3-high", "a3-mega", "a3-ultra", "a4", "a4x")


def document(family: str = "a3-mega", **spec: Any) -> dict[str, Any]:
    """A valid file as plain values; ``spec`` replaces parts of the spec."""
    return {
        "apiVersion": "interlace.dev/v1alpha1",
        "kind": "FabricCluster",
        "metadata": {"name": "train"},
        "spec": {
            "project": "my-project",
            "location": "us-central1-a",
            "family": family,
            "pools": [{"name": "gpu", "nodes": 2}],
            **spec,
        },
    }


def pool(**more: Any) -> dict[str, Any]:
    """The pool of ``document`` with more keys."""
    return {"name": "gpu", "nodes": 2, **more}


def text(found: Any) -> str:
    """The values as a file; JSON is YAML."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def cluster(family: str = "a3-mega", **spec: Any) -> FabricCluster:
    """The cluster of such a file."""
    return parse(text(document(family, **spec))).cluster

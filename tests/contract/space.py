"""A namespace of one's own for each test, on either plane, and the objects that most tests begin with.

Invariant: tests of one module share a plane and never an object.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from interlace.api.crd import crds
from interlace.sim.plane import Plane
from tests.contract.wire import ADMIN, Json, Wire, admin
from tests.waiting import eventually

_counter = itertools.count()

DOMAINS = "/apis/resource.nvidia.com/v1beta1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class Space:
    """A namespace with its default ServiceAccount, and an administrator's client."""

    wire: Wire
    plane: Plane
    name: str

    def path(self, plural: str, *, api: str = "/api/v1") -> str:
        """Path of a collection in this namespace."""
        return f"{api}/namespaces/{self.name}/{plural}"

    async def config_map(self, name: str = "one", **fields: Any) -> Json:
        """A new ConfigMap; ``metadata`` adds to its metadata."""
        meta = {"name": name, **fields.pop("metadata", {})}
        reply = await self.wire("POST", self.path("configmaps"), {"metadata": meta, **fields})
        assert reply.code == 201, reply
        body: Json = reply.body
        return body


@asynccontextmanager
async def a_space(plane: Plane) -> AsyncIterator[Space]:
    """A fresh namespace."""
    async with admin(plane) as wire:
        name = f"space-{next(_counter)}"
        assert (await wire("POST", "/api/v1/namespaces", {"metadata": {"name": name}})).code == 201
        space = Space(wire, plane, name)
        accounts = space.path("serviceaccounts")
        made = await wire("POST", accounts, {"metadata": {"name": "default"}})
        assert made.code in (201, 409), made
        if plane.kind == "real":  # its controllers put this into every namespace, and a watch would see it come

            async def furnished() -> bool:
                return (await wire("GET", space.path("configmaps") + "/kube-root-ca.crt")).code == 200

            await eventually(furnished, within=20, what="kube-root-ca.crt")
        yield space


async def our_kinds(wire: Wire) -> None:
    """Have the server serve ComputeDomains and cliques."""
    for definition in crds():
        reply = await wire("POST", CRDS, definition)
        assert reply.code in (201, 409), reply
    for plural in ("computedomains", "computedomaincliques"):

        async def served(path: str = f"{DOMAINS}/{plural}") -> bool:
            return (await wire("GET", path)).code == 200

        await eventually(served, within=10, what=f"{plural} to be served")


def domain(name: str, **spec: Any) -> Json:
    """A ComputeDomain."""
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name},
        "spec": {"channel": {"resourceClaimTemplate": {"name": f"{name}-channel"}}, **spec},
    }


def pod(name: str, **spec: Any) -> Json:
    """A Pod that no scheduler looks at."""
    container = {"name": "main", "image": "docker.io/library/busybox:1.37"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [container], **spec},
    }


def deployment(name: str, **spec: Any) -> Json:
    """A paused Deployment without replicas."""
    labels = {"app": name}
    container = {"name": "main", "image": "docker.io/library/busybox:1.37"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 0,
            "paused": True,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            **spec,
        },
    }


__all__ = ["ADMIN", "CRDS", "DOMAINS", "Space", "a_space", "deployment", "domain", "our_kinds", "pod"]

"""Whole clusters as fixtures: each on the embedded and on the real control plane.

A cluster lives as long as a test module; each test works in a namespace of its own and the
namespace is empty of pods and domains before the next test begins.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Literal

import pytest
import pytest_asyncio

from interlace.api.computedomain import ComputeDomain
from interlace.api.core import Pod
from interlace.api.meta import Resource
from interlace.api.resource import ResourceClaim
from interlace.kube.errors import NotFound
from interlace.kube.untyped import untyped
from interlace.sim.cluster import Cluster, ClusterSettings, run_cluster
from interlace.sim.kubelet.settings import KubeletSettings
from tests.cluster.workloads import WITHIN
from tests.holding import hold

SERVERS: tuple[Literal["embedded", "real"], ...] = ("embedded", "real")
QUICK = KubeletSettings(lease=1.0, volume_wait=0.05, sandbox=0.05)
_numbers = itertools.count()


def run(server: str, **settings: object) -> AbstractAsyncContextManager[Cluster]:
    """A cluster with quick kubelets, entered and left in one task."""
    chosen = {"server": server, "nodes": 4, "replicas": 1, "kubelet": QUICK, "imex_start": 0.01} | settings
    return hold(run_cluster(ClusterSettings(**chosen)))  # type: ignore[arg-type]


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(cluster: Cluster) -> AsyncIterator[str]:
    """An empty namespace; what the test made in it is deleted and awaited afterwards."""
    name = f"team-{next(_numbers)}"
    await cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await clear(cluster, name)


async def clear(cluster: Cluster, namespace: str) -> None:
    """Delete the test's workloads and domains and wait until pods, claims and domains are gone."""
    for plural, kind in (("deployments", "Deployment"), ("statefulsets", "StatefulSet")):
        workload = untyped(Resource("apps", "v1", plural, kind, True))
        for item in (await cluster.client.list(workload, namespace=namespace)).items:
            await cluster.client.delete(
                workload, item["metadata"]["name"], namespace=namespace, propagation="Background"
            )
    for pod in (await cluster.client.list(Pod, namespace=namespace)).items:
        with contextlib.suppress(NotFound):  # its owner's end was faster
            await cluster.client.delete(Pod, pod.metadata.name, namespace=namespace)
    for found in (await cluster.client.list(ComputeDomain, namespace=namespace)).items:
        await cluster.client.delete(ComputeDomain, found.metadata.name, namespace=namespace)

    for claim in (await cluster.client.list(ResourceClaim, namespace=namespace)).items:
        if not claim.metadata.owner_references:  # written by hand
            await cluster.client.delete(ResourceClaim, claim.metadata.name, namespace=namespace)

    def left() -> list[str]:
        return [
            f"{type(item).__name__} {item.metadata.name}"
            for informer in (cluster.pods, cluster.domains, cluster.claims)
            for item in informer.items()
            if item.metadata.namespace == namespace
        ]

    await cluster.signal.until(
        "the end of the test's objects", lambda: not left(), within=WITHIN, instead=lambda: ", ".join(left())
    )


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    """Which control plane."""
    return str(request.param)

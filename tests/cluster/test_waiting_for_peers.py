"""Domains that ask for their peers before Pods start, on both control planes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.sim.cluster import Cluster
from tests.cluster.conftest import run
from tests.cluster.workloads import WITHIN, condition, deployment, domain, events, pods, read_domain

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(server: str) -> AsyncIterator[Cluster]:
    async with run(server, nodes=3, node_grace=30.0) as running:
        yield running


async def _start(
    cluster: Cluster, name: str, *, namespace: str, replicas: int, barrier: dict[str, int], **more: Any
) -> None:
    await cluster.apply(domain(name, namespace=namespace, waitForPeers=barrier))
    await _scale(cluster, name, namespace=namespace, replicas=replicas, **more)


async def _scale(cluster: Cluster, name: str, *, namespace: str, replicas: int, **more: Any) -> None:
    await cluster.apply(
        deployment(name, namespace=namespace, replicas=replicas, template=f"{name}-channel", kind="StatefulSet", **more)
    )


def _ready(cluster: Cluster, name: str, *, namespace: str) -> int:
    return sum(pod.ready for pod in pods(cluster, name, namespace=namespace))


async def _until_ready(cluster: Cluster, name: str, *, namespace: str, count: int) -> None:
    await cluster.signal.until(
        f"{count} Ready pods of {name}",
        lambda: _ready(cluster, name, namespace=namespace) == count,
        within=WITHIN,
        instead=lambda: str(condition(cluster, name, "PeersAwaited", namespace=namespace)),
    )


async def _until_said(cluster: Cluster, name: str, *, namespace: str, reason: str, within: float = WITHIN) -> str:
    def said() -> str:
        found = condition(cluster, name, "PeersAwaited", namespace=namespace)
        return found.message if found is not None and found.reason == reason else ""

    await cluster.signal.until(
        f"reason {reason}",
        lambda: bool(said()),
        within=within,
        instead=lambda: str(condition(cluster, name, "PeersAwaited", namespace=namespace)),
    )
    return said()


async def test_no_pod_starts_before_all_nodes_are_there(cluster: Cluster, namespace: str) -> None:
    barrier = {"nodes": 3, "timeoutSeconds": 600}
    await _start(cluster, "all", namespace=namespace, replicas=2, barrier=barrier, podManagementPolicy="Parallel")

    def both_wait() -> bool:
        ready = condition(cluster, "all", "Ready", namespace=namespace)
        return (
            ready is not None and "1 of 3 nodes have not joined" in ready.message and "(1 more claim" in ready.message
        )

    await cluster.signal.until("two Pods that say what they wait for", both_wait, within=WITHIN)
    assert "2 Pods wait for 3 nodes" in await _until_said(cluster, "all", namespace=namespace, reason="TooFewPods")
    assert _ready(cluster, "all", namespace=namespace) == 0
    await _scale(cluster, "all", namespace=namespace, replicas=3, podManagementPolicy="Parallel")
    await _until_ready(cluster, "all", namespace=namespace, count=3)
    await _until_said(cluster, "all", namespace=namespace, reason="Connected")
    found = read_domain(cluster, "all", namespace=namespace)
    assert found is not None
    assert found.status is not None
    assert found.status.status == "Ready"


async def test_pods_that_start_in_order_wait_for_those_before_them(cluster: Cluster, namespace: str) -> None:
    await _start(cluster, "ordered", namespace=namespace, replicas=3, barrier={})
    await _until_ready(cluster, "ordered", namespace=namespace, count=3)
    await _until_said(cluster, "ordered", namespace=namespace, reason="Connected")


async def test_pods_in_order_cannot_wait_for_those_behind_them_and_the_domain_says_so(
    cluster: Cluster, namespace: str
) -> None:
    await _start(cluster, "stuck", namespace=namespace, replicas=2, barrier={"nodes": 2, "timeoutSeconds": 8})
    message = await _until_said(cluster, "stuck", namespace=namespace, reason="OrderedStart")
    assert f"StatefulSet {namespace}/stuck" in message
    assert "podManagementPolicy" in message
    await _until_ready(cluster, "stuck", namespace=namespace, count=2)
    told = [event.reason for event in await events(cluster, namespace, about="stuck-0")]
    assert "StartedWithoutPeers" in told
    late = await _until_said(cluster, "stuck", namespace=namespace, reason="StartedWithoutPeers")
    assert "8 s" in late


async def test_a_peer_without_a_connection_is_named(cluster: Cluster, namespace: str) -> None:
    faults = [cluster.fleet.nodes[node].tray.root / "etc/imex-faults.json" for node in cluster.gpu_nodes]
    for path in faults:
        path.write_text('{"blocked": [[0, 1], [0, 2], [1, 2]]}')
    barrier = {"nodes": 2, "timeoutSeconds": 600}
    await _start(cluster, "apart", namespace=namespace, replicas=2, barrier=barrier, podManagementPolicy="Parallel")
    message = await _until_said(cluster, "apart", namespace=namespace, reason="PeersMissing")
    assert "no connection to tray-0" in message
    assert _ready(cluster, "apart", namespace=namespace) == 0
    for path in faults:
        path.write_text("{}")
    await _until_ready(cluster, "apart", namespace=namespace, count=2)

"""Domains beyond one NVLink partition, and nodes without a fabric, on both control planes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlace.api.computedomain import ComputeDomainClique
from interlace.sim.cluster import NAMESPACE, Cluster
from tests.cluster.conftest import clear, run
from tests.cluster.workloads import condition, container, deployment, domain, nodes_ready, pods, read_domain

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def two_racks(server: str) -> AsyncIterator[Cluster]:
    async with run(server, nodes=36) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def plain_nodes(server: str) -> AsyncIterator[Cluster]:
    async with run(server, nodes=2, fabric=False) as running:
        yield running


async def test_a_job_without_affinity_becomes_one_domain_over_two_partitions(two_racks: Cluster) -> None:
    cluster = two_racks
    await cluster.apply(domain("wide", namespace="default"))
    await cluster.apply(deployment("wide", namespace="default", replicas=36, template="wide-channel"))
    await cluster.signal.until(
        "36 Ready nodes", lambda: len(nodes_ready(cluster, "wide", namespace="default")) == 36, within=90
    )
    found = read_domain(cluster, "wide", namespace="default")
    assert found is not None
    assert found.status is not None
    by_clique: dict[str, list[int]] = {}
    for node in found.status.nodes:
        by_clique.setdefault(node.clique_id, []).append(node.index)
    assert [sorted(indexes) for indexes in by_clique.values()] == [list(range(18))] * 2
    cliques = await cluster.client.list(ComputeDomainClique, namespace=NAMESPACE)
    assert sorted(item.metadata.name for item in cliques.items) == sorted(
        f"{found.metadata.uid}.{clique}" for clique in by_clique
    )
    within = condition(cluster, "wide", "WithinOneClique", namespace="default")
    assert within is not None
    assert (within.status, within.reason) == ("False", "SeveralCliques")
    assert all(clique in within.message for clique in by_clique)
    await clear(cluster, "default")


async def test_nodes_without_a_fabric_are_ready_at_once_and_get_nothing(plain_nodes: Cluster) -> None:
    cluster = plain_nodes
    await cluster.apply(domain("plain", namespace="default"))
    await cluster.apply(deployment("plain", namespace="default", replicas=2, template="plain-channel"))
    await cluster.signal.until(
        "2 Ready nodes", lambda: len(nodes_ready(cluster, "plain", namespace="default")) == 2, within=30
    )
    found = read_domain(cluster, "plain", namespace="default")
    assert found is not None
    assert found.status is not None
    assert [(node.index, node.clique_id) for node in found.status.nodes] == [(-1, ""), (-1, "")]
    await cluster.signal.until(
        "2 Ready pods", lambda: sum(pod.ready for pod in pods(cluster, "plain", namespace="default")) == 2, within=30
    )
    for pod in pods(cluster, "plain", namespace="default"):
        assert container(cluster, pod).devices == ()
    assert (await cluster.client.list(ComputeDomainClique, namespace=NAMESPACE)).items == []
    within = condition(cluster, "plain", "WithinOneClique", namespace="default")
    assert within is not None
    assert within.reason == "NoFabric"
    await clear(cluster, "default")

"""Several Pods of one domain on a node, on the control planes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlace.sim.audit import OURS, count, total
from interlace.sim.cluster import NAMESPACE, Cluster
from tests.cluster.conftest import run
from tests.cluster.workloads import WITHIN, container, deployment, domain, nodes_ready, pods

pytestmark = pytest.mark.asyncio(loop_scope="module")

TRAYS = 18


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(server: str) -> AsyncIterator[Cluster]:
    async with run(server, nodes=TRAYS) as running:
        yield running


def _offers(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Node to whom its devices name and how many they are."""
    return {
        slice_.spec.node_name or "": (
            slice_.spec.devices[0].attributes["domain"].string or "",
            len(slice_.spec.devices),
        )
        for slice_ in cluster.slices.items()
    }


async def test_two_pods_a_node_need_few_requests_and_one_slice_write_a_node(cluster: Cluster, namespace: str) -> None:
    since = time.time()
    await cluster.apply(domain("dense", namespace=namespace))
    await cluster.apply(deployment("dense", namespace=namespace, replicas=36, template="dense-channel", gpus=2))

    def ready() -> bool:
        found = pods(cluster, "dense", namespace=namespace)
        return len(found) == 36 and all(pod.ready for pod in found)

    await cluster.signal.until("36 Ready pods on 18 nodes", ready, within=WITHIN)
    await cluster.signal.until(
        "18 Ready nodes", lambda: len(nodes_ready(cluster, "dense", namespace=namespace)) == TRAYS, within=WITHIN
    )
    found = pods(cluster, "dense", namespace=namespace)
    prepared = [cluster.fleet.nodes[pod.spec.node_name].workers[pod.metadata.uid].prepared_at or 0.0 for pod in found]
    # on a machine that is slow Pods are told what they wait for
    records = [record for record in cluster.plane.audit() if record.resource != "events"]
    table = count(records, namespace=NAMESPACE, since=since, until=time.time())
    ours = total(table, OURS)
    requests = ours["get"] + ours["list"] + ours["write"]
    print(f"\n36 pods on 18 nodes: {requests} requests, last prepared after {max(prepared) - since:.2f} s")  # noqa: T201
    assert {container(cluster, pod).devices for pod in found} == {("/dev/nvidia-caps-imex-channels/channel0",)}
    assert sorted(cluster.gpu_nodes * 2) == sorted(pod.spec.node_name for pod in found)
    assert set(_offers(cluster).values()) == {(_uid(cluster, "dense", namespace=namespace), 8)}
    assert ours["conflict"] == 0
    assert requests <= 110


def _uid(cluster: Cluster, name: str, *, namespace: str) -> str:
    found = cluster.domains.get(name, namespace)
    assert found is not None
    return found.metadata.uid

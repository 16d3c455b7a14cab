"""Domains that want the same nodes at the same time, on the real scheduler: never two on one node, none stuck."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlace.api.core import Pod
from interlace.kube.errors import NotFound
from interlace.node.offer import SLOTS
from interlace.sim.cluster import Cluster, NotReachedError
from tests.cluster.conftest import run
from tests.cluster.overlaps import Overlaps
from tests.cluster.workloads import deployment, domain, nodes_ready, offers, pods

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

CHURN = 15.0
"""Seconds."""
WITHIN = 60.0


@pytest_asyncio.fixture(loop_scope="module", params=[36, 20])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    async with run("real", nodes=request.param, node_grace=30.0) as running:
        yield running


async def _start(cluster: Cluster, name: str, *, replicas: int, namespace: str = "default") -> None:
    await cluster.apply(domain(name, namespace=namespace))
    await cluster.apply(deployment(name, namespace=namespace, replicas=replicas, template=f"{name}-channel", gpus=0))


async def _until_whole(cluster: Cluster, wanted: dict[str, int], *, namespace: str = "default") -> None:
    def missing() -> str:
        late = []
        used = {pod.spec.node_name for name in wanted for pod in pods(cluster, name, namespace=namespace)}
        free = any(offer == ("", 1) for node, offer in offers(cluster).items() if node not in used)
        for name, count in wanted.items():
            found = pods(cluster, name, namespace=namespace)
            nodes = {pod.spec.node_name for pod in found} - {""}
            ready = sum(pod.ready for pod in found)
            full = not free and ready == SLOTS * len(nodes)  # 18 Pods do not fit where the other has 18 of 20 nodes
            if len(found) != count or not (ready == count or full):
                late.append(f"{name}: {ready} of {count} pods ready on {len(nodes)} nodes")
            elif nodes != {*nodes_ready(cluster, name, namespace=namespace)}:
                late.append(f"{name}: another status than {sorted(nodes)}")
        return "; ".join(late) and "; ".join([*late, f"offers {Counter(offers(cluster).values())}"])

    await cluster.signal.until("all pods Ready", lambda: not missing(), within=WITHIN, instead=missing)


async def _until_something_happens(cluster: Cluster, watch: Overlaps) -> None:
    """An allocation, or half a second without one."""
    before = watch.allocations
    with contextlib.suppress(NotReachedError):
        await cluster.signal.until("an allocation", lambda: watch.allocations > before, within=0.5)


async def test_two_domains_started_together_and_shaken_never_meet(cluster: Cluster) -> None:
    watch = Overlaps(cluster)
    since = time.monotonic()
    names = ["left", "right"]
    for name in names:
        await _start(cluster, name, replicas=18)
    await _until_whole(cluster, dict.fromkeys(names, 18))
    together = time.monotonic() - since
    assert watch.seen == []

    chance = random.Random(36)
    end = time.monotonic() + CHURN
    while time.monotonic() < end:
        name = chance.choice(names)
        match chance.choice(["scale", "scale", "delete", "force", "force"]):
            case "scale":
                replicas = chance.randint(2, 18)
                await cluster.apply(
                    deployment(name, namespace="default", replicas=replicas, template=f"{name}-channel", gpus=0)
                )
            case kind:
                found = pods(cluster, name, namespace="default")
                for pod in chance.sample(found, min(len(found), chance.randint(1, 4))):
                    with contextlib.suppress(NotFound):
                        grace = 0 if kind == "force" else None
                        await cluster.client.delete(Pod, pod.metadata.name, namespace="default", grace_period=grace)
        await _until_something_happens(cluster, watch)
    since = time.monotonic()
    for name in names:
        await _start(cluster, name, replicas=18)
    await _until_whole(cluster, dict.fromkeys(names, 18))
    print(  # noqa: T201
        f"\n{cluster.settings.nodes} nodes: together {together:.1f} s, {watch.allocations} allocations, whole again "
        f"after {time.monotonic() - since:.1f} s, longest from allocation to ready {watch.longest:.1f} s"
    )
    assert watch.seen == []

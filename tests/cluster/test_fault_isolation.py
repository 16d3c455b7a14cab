"""Whatever happens to one domain, its neighbours show nothing: no restart, no write, no event."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from interlace.api.computedomain import ComputeDomain
from interlace.sim.cluster import Cluster
from interlace.sim.trouble import break_imex, make_noise, mend_imex, poison
from interlace.sim.witness import Sight, changes, look
from tests.cluster.conftest import clear, run
from tests.cluster.workloads import (
    WITHIN,
    condition,
    container,
    deployment,
    domain,
    nodes_ready,
    pods,
)
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEALTHY = "healthy"
NOISE = 1000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with run("real", nodes=6) as running:
        await running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HEALTHY}})
        await start(running, HEALTHY, namespace=HEALTHY, count=2)
        await formed(running, HEALTHY, namespace=HEALTHY, count=2)
        yield running
        await clear(running, HEALTHY)


@pytest_asyncio.fixture(loop_scope="module")
async def before(cluster: Cluster) -> Sight:
    """The healthy domain at rest: formed, its peers connected, and our event about it recorded."""

    last: list[Sight] = []

    async def at_rest() -> Sight | None:
        connected = condition(cluster, HEALTHY, "PeersConnected", namespace=HEALTHY)
        last.append(await look(cluster, HEALTHY, namespace=HEALTHY))
        still = last[-2:] == [last[-1]] * 2
        return last[-1] if still and connected and connected.status == "True" and last[-1].events else None

    found = await eventually(at_rest, within=WITHIN, every=0.2, what="a healthy domain at rest")
    assert found is not None
    return found


async def start(cluster: Cluster, name: str, *, namespace: str, count: int) -> None:
    await cluster.apply(domain(name, namespace=namespace))
    await cluster.apply(deployment(name, namespace=namespace, replicas=count, template=f"{name}-channel"))


async def formed(cluster: Cluster, name: str, *, namespace: str, count: int) -> None:
    await cluster.signal.until(
        f"{name} with {count} Ready nodes and pods",
        lambda: (
            len(nodes_ready(cluster, name, namespace=namespace)) == count
            and sum(pod.ready for pod in pods(cluster, name, namespace=namespace)) == count
        ),
        within=WITHIN,
    )


async def unchanged(cluster: Cluster, before: Sight) -> None:
    """Nothing of the healthy domain is different, and no other node has lost its way to it."""
    assert changes(before, await look(cluster, HEALTHY, namespace=HEALTHY)) == []


def free(cluster: Cluster) -> list[str]:
    taken = {pod.spec.node_name for pod in pods(cluster, HEALTHY, namespace=HEALTHY)}
    return [node for node in cluster.gpu_nodes if node not in taken]


def said(cluster: Cluster, name: str, *reasons: str, namespace: str) -> Callable[[], bool]:
    """Whether the domain's condition Ready has one of the reasons."""

    def now() -> bool:
        found = condition(cluster, name, "Ready", namespace=namespace)
        return found is not None and found.reason in reasons

    return now


async def test_a_crashing_imex_beside_it_changes_nothing_and_a_third_domain_forms(
    cluster: Cluster, namespace: str, before: Sight
) -> None:
    broken = free(cluster)[:2]
    break_imex(cluster, broken)
    crash = deployment("crashing", namespace=namespace, replicas=2, template="crashing-channel")
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": broken}]}]
    crash["spec"]["template"]["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    await cluster.apply(domain("crashing", namespace=namespace))
    await cluster.apply(crash)

    def crash_loop() -> bool:
        found = condition(cluster, "crashing", "Ready", namespace=namespace)
        return found is not None and found.status == "False" and "ended" in found.message

    await cluster.signal.until(
        "a crash loop that the domain shows",
        crash_loop,
        within=WITHIN,
        instead=lambda: str(condition(cluster, "crashing", "Ready", namespace=namespace)),
    )
    await start(cluster, "third", namespace=namespace, count=2)
    await formed(cluster, "third", namespace=namespace, count=2)
    assert {pod.spec.node_name for pod in pods(cluster, "third", namespace=namespace)}.isdisjoint(broken)
    await unchanged(cluster, before)
    mend_imex(cluster, broken)
    await formed(cluster, "crashing", namespace=namespace, count=2)
    await unchanged(cluster, before)


async def test_poisoned_manifests_of_a_neighbour_change_nothing(
    cluster: Cluster, namespace: str, before: Sight
) -> None:
    victim = (await cluster.client.get(ComputeDomain, HEALTHY, namespace=HEALTHY)).metadata.uid
    taken = await poison(cluster.client, namespace=namespace, victim=victim)
    assert taken >= 8
    await cluster.signal.until(
        "the controller's answer to a name that is none",
        said(cluster, "upper", "TemplateInvalid", namespace=namespace),
        within=WITHIN,
    )
    await start(cluster, "after", namespace=namespace, count=1)
    await formed(cluster, "after", namespace=namespace, count=1)
    await unchanged(cluster, before)


async def test_a_flood_of_changes_of_a_neighbour_changes_nothing_and_keeps_nobody_waiting(
    cluster: Cluster, namespace: str, before: Sight
) -> None:
    await start(cluster, "noisy", namespace=namespace, count=1)
    await formed(cluster, "noisy", namespace=namespace, count=1)
    uid = (await cluster.client.get(ComputeDomain, "noisy", namespace=namespace)).metadata.uid
    await make_noise(cluster.client, uid=uid, namespace=namespace, changes=NOISE)
    await start(cluster, "beside", namespace=namespace, count=1)
    await formed(cluster, "beside", namespace=namespace, count=1)
    await unchanged(cluster, before)


async def test_a_neighbour_that_is_deleted_in_use_changes_nothing(
    cluster: Cluster, namespace: str, before: Sight
) -> None:
    await start(cluster, "doomed", namespace=namespace, count=2)
    await formed(cluster, "doomed", namespace=namespace, count=2)
    (first, _) = pods(cluster, "doomed", namespace=namespace)
    await cluster.client.delete(ComputeDomain, "doomed", namespace=namespace)
    await cluster.signal.until(
        "the end of the domain", lambda: cluster.domains.get("doomed", namespace) is None, within=WITHIN
    )
    assert container(cluster, first).devices == ("/dev/nvidia-caps-imex-channels/channel0",)
    await unchanged(cluster, before)

"""Jobs on two real nodes: what their containers see, how fast they come, and that nothing stays behind."""

from __future__ import annotations

import sys
from collections import Counter
from statistics import median, quantiles

import pytest

from interlace.api.computedomain import ComputeDomain
from interlace.sim.snapshot import list_objects
from tests.node import gpus, jobs
from tests.node.machine import (
    allowed_devices,
    container_pid,
    find_process,
    identities,
    memory,
    snapshot,
)
from tests.node.waves import run_waves
from tests.node.world import DEPLOYMENT, NODES, POD, WITHIN, World
from tests.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


RUNS, WAVES, PODS = 5, 5, 8
"""As many Pods at once as there are GPUs, four times as many as nodes: they share the domain's channel of each."""


GROWTH = 6.0
"""MB that a component may take more after the waves than before; what it may take at all is measured by the bench."""


def memory_used(world: World) -> dict[str, float]:
    """Resident MB of our components, the larger of both nodes."""
    modules = {"agent": "interlace.node", "imex-host": "interlace.imex"}
    return {
        component: round(max(memory(find_process(node, f"-m {module}")) for node in world.nodes.values()), 1)
        for component, module in modules.items()
    }


async def plain_devices(world: World, namespace: str) -> set[str]:
    """What a plain container may use; there is one on each node for a moment."""
    first = identities((await everything(world))[0])
    for node in world.nodes:
        await world.apply(jobs.plain_pod(namespace, node))
    pods = await world.until_ready(namespace, labels="job=plain", count=len(world.nodes))
    allowed = allowed_devices(container_pid(pods[0]))
    for pod in pods:
        await world.client.delete(POD, pod["metadata"]["name"], namespace=namespace)

    async def forgotten() -> bool:
        return identities((await everything(world))[0]) == first

    await eventually(forgotten, within=WITHIN, every=0.3, what="the end of plain containers")
    return allowed


async def everything(world: World) -> tuple[Counter[str], set[str]]:
    """What is on the nodes and in the API."""
    machines = sum((snapshot(node) for node in world.nodes.values()), Counter[str]())
    return machines, await list_objects(world.client)


async def test_both_pods_of_the_example_get_their_channel_and_nothing_of_it_stays(
    two_nodes: World, namespace: str
) -> None:
    # A plain container first: what kubelet makes for good when it starts the first of a kind is not ours.
    without = await plain_devices(two_nodes, namespace)
    before = await everything(two_nodes)
    await two_nodes.apply(jobs.domain(namespace))
    await two_nodes.apply(jobs.workload(namespace, replicas=2))
    pods = await two_nodes.until_ready(namespace, labels=jobs.JOB, count=2)
    assert {pod["spec"]["nodeName"] for pod in pods} == set(two_nodes.nodes)

    for pod in pods:
        assert await two_nodes.execute(pod, "helper", "list", gpus.CHANNELS) == f"c channel0 {two_nodes.major}:0 666\n"
        # The cgroup lets it through, and no driver is behind it.
        assert await two_nodes.execute(pod, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"
        await two_nodes.execute(pod, "helper", "mknod", "/tmp/channel1", str(two_nodes.major), "1")
        assert await two_nodes.execute(pod, "helper", "open", "/tmp/channel1") == "EPERM\n"

    with_claim = allowed_devices(container_pid(pods[0]))
    assert with_claim - without == {f"c {two_nodes.major}:0 rw"}
    assert without - with_claim == set()

    async def formed() -> bool:
        domain = await two_nodes.client.get(ComputeDomain, jobs.DOMAIN_NAME, namespace=namespace)
        assert domain.status is not None
        return domain.status.status == "Ready" and len(domain.status.nodes) == 2

    await eventually(formed, within=WITHIN, what="the domain's status")

    await two_nodes.client.delete(DEPLOYMENT, jobs.DEPLOYMENT_NAME, namespace=namespace, propagation="Background")
    await end_domain(two_nodes, namespace)
    await until_as_before(two_nodes, before)


async def end_domain(world: World, namespace: str) -> None:
    """Delete it; what that ends is seen by who waits."""
    await world.client.delete(ComputeDomain, jobs.DOMAIN_NAME, namespace=namespace)


async def until_as_before(world: World, before: tuple[Counter[str], set[str]]) -> None:
    """Wait until nodes and API hold what they held before; the difference is told otherwise."""

    async def look() -> bool:
        machines, objects = await everything(world)
        more, less = machines - before[0], before[0] - machines
        changed = [*(f"+ {name}" for name in [*more, *(objects - before[1])])]
        changed += [*(f"- {name}" for name in [*less, *(before[1] - objects)])]
        assert not changed, "\n".join(sorted(changed))
        return True

    await eventually(look, within=WITHIN, every=0.3, what="nodes and API as before")


@pytest.mark.timeout(1200)
async def test_waves_of_pods_come_and_go_hardly_slower_than_pods_without_claims(
    two_nodes: World, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await plain_devices(two_nodes, namespace)
    before = await everything(two_nodes)
    plain = await run_waves(two_nodes, namespace, waves=WAVES, pods=PODS, claims=False)
    began = memory_used(two_nodes)
    claimed: list[float] = []
    for _ in range(RUNS):
        await two_nodes.apply(jobs.domain(namespace))
        claimed += await run_waves(two_nodes, namespace, waves=WAVES, pods=PODS, claims=True)
        await end_domain(two_nodes, namespace)
        await until_as_before(two_nodes, before)
    ended = memory_used(two_nodes)
    told = "; ".join(
        f"{name}: median {median(times):.2f}, p95 {quantiles(times, n=20)[-1]:.2f}, longest {max(times):.2f}"
        for name, times in (("without claims", plain), ("with claims", claimed))
    )
    with capsys.disabled():
        sys.stdout.write(f"\nseconds to Ready, {RUNS} runs of {WAVES * PODS} Pods in {WAVES} waves: {told}\n")
        sys.stdout.write(f"MB resident before and afterwards: {began}, {ended}\n")
    # 1.5 s on a machine that runs nothing else; on a busy one everything takes longer in proportion.
    assert median(claimed) - median(plain) <= max(1.5, 0.6 * median(plain)), told
    assert all(ended[name] - began[name] <= GROWTH for name in began), (began, ended)


async def test_a_drained_node_hands_its_pod_and_the_domain_to_the_other_one(two_nodes: World, namespace: str) -> None:
    await two_nodes.apply(jobs.domain(namespace))
    await two_nodes.apply(jobs.workload(namespace, replicas=1))
    (pod,) = await two_nodes.until_ready(namespace, labels=jobs.JOB, count=1)
    drained = pod["spec"]["nodeName"]
    (other,) = set(two_nodes.nodes) - {drained}
    await two_nodes.client.merge_patch(NODES, drained, {"spec": {"unschedulable": True}})
    try:
        await two_nodes.client.evict(pod["metadata"]["name"], namespace=namespace)

        async def moved() -> bool:
            domain = await two_nodes.client.get(ComputeDomain, jobs.DOMAIN_NAME, namespace=namespace)
            return domain.status is not None and [node.name for node in domain.status.nodes] == [other]

        await eventually(moved, within=WITHIN, every=0.1, what=f"a domain on {other} alone")
        (successor,) = await two_nodes.until_ready(namespace, labels=jobs.JOB, count=1)
        assert successor["spec"]["nodeName"] == other
        assert await two_nodes.execute(successor, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"
    finally:
        await two_nodes.client.merge_patch(NODES, drained, {"spec": {"unschedulable": None}})
    await two_nodes.client.delete(DEPLOYMENT, jobs.DEPLOYMENT_NAME, namespace=namespace, propagation="Background")
    await end_domain(two_nodes, namespace)

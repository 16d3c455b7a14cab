"""What fails in a cluster and what must come of it, on the real control plane with real processes and SIGKILL."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from interlace.api.computedomain import ComputeDomain
from interlace.api.core import Lease, Node, Pod
from interlace.api.resource import ResourceClaim
from interlace.sim.cluster import NAMESPACE, Cluster
from tests.cluster.conftest import run
from tests.cluster.workloads import (
    WITHIN,
    condition,
    container,
    deployment,
    domain,
    events,
    nodes_ready,
    pods,
    read_domain,
)
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    separate = frozenset({"controller", "agent", "imex-host"})
    async with run("real", nodes=4, replicas=2, separate=separate, imex_start=0.3) as running:
        yield running


def _kill(cluster: Cluster, pod: str) -> None:
    os.kill(cluster.fleet.programs.processes[pod], signal.SIGKILL)


def _our_pod(cluster: Cluster, component: str, *, node: str) -> Pod:
    return next(pod for pod in cluster.our_pods(component) if pod.spec.node_name == node)


async def _formed(cluster: Cluster, name: str, *, namespace: str, count: int, within: float = WITHIN) -> list[Pod]:
    def whole() -> bool:
        found = pods(cluster, name, namespace=namespace)
        ready = nodes_ready(cluster, name, namespace=namespace)
        return len(ready) == count == len(found) and all(pod.ready and pod.spec.node_name in ready for pod in found)

    def instead() -> str:
        found = [(pod.metadata.name, pod.spec.node_name, pod.ready) for pod in pods(cluster, name, namespace=namespace)]
        return f"nodes {nodes_ready(cluster, name, namespace=namespace)}, pods {found}"

    await cluster.signal.until(f"{name} with {count} Ready nodes and pods", whole, within=within, instead=instead)
    return pods(cluster, name, namespace=namespace)


def _uids(cluster: Cluster, name: str, *, namespace: str) -> set[str]:
    return {pod.metadata.uid for pod in pods(cluster, name, namespace=namespace)}


async def _start(cluster: Cluster, name: str, *, namespace: str, count: int) -> None:
    await cluster.apply(domain(name, namespace=namespace))
    await cluster.apply(deployment(name, namespace=namespace, replicas=count, template=f"{name}-channel"))


async def test_a_killed_leader_is_followed_by_the_other_controller(cluster: Cluster, namespace: str) -> None:
    lease = await cluster.client.get(Lease, "interlace-controller", namespace=NAMESPACE)
    holder = lease.spec.holder_identity or ""
    leader = next(pod.metadata.name for pod in cluster.our_pods("controller") if holder.startswith(pod.metadata.name))
    _kill(cluster, leader)
    await _start(cluster, "followed", namespace=namespace, count=2)
    await _formed(cluster, "followed", namespace=namespace, count=2, within=45)
    lease = await cluster.client.get(Lease, "interlace-controller", namespace=NAMESPACE)
    assert lease.spec.holder_identity
    assert lease.spec.holder_identity != holder


async def test_an_agent_killed_in_the_middle_of_a_prepare_finishes_it_without_waiting_for_kubelet(
    cluster: Cluster, namespace: str
) -> None:
    slow = {node: cluster.fleet.nodes[node].tray.root / "etc/imex-faults.json" for node in cluster.gpu_nodes}
    for path in slow.values():
        path.write_text('{"start_delay": 2}')
    await _start(cluster, "cut", namespace=namespace, count=1)

    def preparing() -> bool:
        return any(
            worker.prepare_calls and worker.prepared_at is None
            for node in cluster.fleet.nodes.values()
            for worker in node.workers.values()
            if worker.pod.metadata.namespace == namespace
        )

    await eventually(preparing, within=WITHIN, what="a Prepare call on its way")
    (pod,) = pods(cluster, "cut", namespace=namespace)
    _kill(cluster, _our_pod(cluster, "agent", node=pod.spec.node_name).metadata.name)
    for path in slow.values():
        path.write_text("{}")
    # kubelet alone would call again after 64 to 90 s
    (pod,) = await _formed(cluster, "cut", namespace=namespace, count=1, within=50)
    assert container(cluster, pod).devices == ("/dev/nvidia-caps-imex-channels/channel0",)


async def test_a_killed_imex_host_starts_its_domain_again_and_the_job_keeps_running(
    cluster: Cluster, namespace: str
) -> None:
    await _start(cluster, "revived", namespace=namespace, count=3)
    found = await _formed(cluster, "revived", namespace=namespace, count=3)
    uids = {pod.metadata.uid for pod in found}
    victim = found[0].spec.node_name
    _kill(cluster, _our_pod(cluster, "imex-host", node=victim).metadata.name)

    told = await eventually(
        lambda: _about(cluster, namespace, found[0].metadata.name, saying="interrupted"), within=WITHIN, every=0.2
    )
    assert victim in told

    def connected() -> bool:
        state = condition(cluster, "revived", "PeersConnected", namespace=namespace)
        return state is not None and state.status == "True"

    await cluster.signal.until("peers that see each other again", connected, within=WITHIN)
    found = await _formed(cluster, "revived", namespace=namespace, count=3)
    assert {pod.metadata.uid for pod in found} == uids


async def test_a_deleted_node_leaves_the_domain_and_another_takes_its_place(cluster: Cluster, namespace: str) -> None:
    await _start(cluster, "moved", namespace=namespace, count=3)
    found = await _formed(cluster, "moved", namespace=namespace, count=3)
    victim = found[0]
    gone = victim.spec.node_name
    await cluster.fleet.power_off(gone)
    await cluster.client.delete(Node, gone)
    await cluster.client.delete(Pod, victim.metadata.name, namespace=namespace, grace_period=0)
    await cluster.signal.until(
        "the end of its pod",
        lambda: victim.metadata.uid not in _uids(cluster, "moved", namespace=namespace),
        within=WITHIN,
    )
    found = await _formed(cluster, "moved", namespace=namespace, count=3)
    assert gone not in {pod.spec.node_name for pod in found}
    status = read_domain(cluster, "moved", namespace=namespace)
    assert status is not None
    assert status.status is not None
    assert gone not in {node.name for node in status.status.nodes}

    async def told() -> bool:
        return any(gone in event.message for event in await events(cluster, namespace, about="moved"))

    # events are written behind the status
    await eventually(told, within=WITHIN, every=0.1, what=f"an event that names {gone}")
    cluster.fleet.power_on(gone)
    await cluster.until_installed()


async def test_a_domain_deleted_under_running_pods_is_gone_and_its_pods_keep_their_channel(
    cluster: Cluster, namespace: str
) -> None:
    await _start(cluster, "orphaned", namespace=namespace, count=2)
    found = await _formed(cluster, "orphaned", namespace=namespace, count=2)
    await cluster.client.delete(ComputeDomain, "orphaned", namespace=namespace)
    await cluster.signal.until(
        "the end of the domain", lambda: read_domain(cluster, "orphaned", namespace=namespace) is None, within=WITHIN
    )
    assert {pod.metadata.uid for pod in pods(cluster, "orphaned", namespace=namespace)} == {
        pod.metadata.uid for pod in found
    }
    claims = await cluster.client.list(ResourceClaim, namespace=namespace)
    assert len([claim for claim in claims.items if claim.status.allocation]) == 2
    for pod in found:
        assert container(cluster, pod).devices == ("/dev/nvidia-caps-imex-channels/channel0",)
        message = await eventually(
            partial(_about, cluster, namespace, pod.metadata.name, saying="deleted"), within=WITHIN, every=0.2
        )
        assert f"{namespace}/orphaned" in message


async def _about(cluster: Cluster, namespace: str, pod: str, *, saying: str) -> str:
    """The message of an event about ``pod`` by our components that contains ``saying``, empty if there is none yet."""
    for event in await events(cluster, namespace, about=pod):
        if event.source.component.startswith("interlace") and saying in event.message:
            return event.message
    return ""

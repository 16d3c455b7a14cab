"""What dies and comes back around a running job: kubelet, the agent, a Pod deleted by force."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.api.computedomain import ComputeDomain
from tests.node import gpus, jobs
from tests.node.machine import CHECKPOINT, container_id, container_pid, find_process, read_checkpoint, specs
from tests.node.world import (
    DAEMON_SET,
    DEPLOYMENT,
    EVENT,
    NAMESPACE,
    POD,
    SLICE,
    WITHIN,
    World,
    agents,
    until_clean,
    until_installed,
)
from tests.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

AGENT = "app.kubernetes.io/component=agent"
AGAIN = 150.0
"""Seconds: kubelet itself asks again only 60 to 90 s after a Prepare that failed."""


@pytest_asyncio.fixture(loop_scope="session")
async def job(node: World, namespace: str) -> AsyncIterator[dict[str, Any]]:
    """The only Pod of the example job, which runs; the job is deleted afterwards."""
    await node.apply(jobs.domain(namespace))
    await node.apply(jobs.workload(namespace, replicas=1))
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    yield pod
    await end_job(node, namespace)


async def end_job(world: World, namespace: str) -> None:
    """Delete it and wait until its domain is gone."""
    await world.client.delete(DEPLOYMENT, jobs.DEPLOYMENT_NAME, namespace=namespace, propagation="Background")
    await world.client.delete(ComputeDomain, jobs.DOMAIN_NAME, namespace=namespace)

    async def gone() -> bool:
        return not (await world.client.list(ComputeDomain, namespace=namespace)).items

    await eventually(gone, within=WITHIN, every=0.1, what="the end of the domain")
    await world.until_ready(namespace, labels=jobs.JOB, count=0)


async def replaced(world: World, namespace: str, pod: dict[str, Any]) -> bool:
    """Whether there is another Pod of the job and not this one."""
    uids = {each["metadata"]["uid"] for each in await world.pods(namespace, labels=jobs.JOB)}
    return bool(uids) and pod["metadata"]["uid"] not in uids


async def slice_uid(world: World) -> str:
    """Uid of the node's slice; empty where there is none."""
    return "".join(each["metadata"]["uid"] for each in (await world.client.list(SLICE)).items)


async def test_a_restarted_kubelet_gets_the_slice_again_and_the_job_does_not_notice(
    node: World, namespace: str, job: dict[str, Any]
) -> None:
    before = await slice_uid(node)
    (machine,) = node.nodes.values()
    await machine.stop_kubelet()
    await machine.start_kubelet()
    # It deletes the slices of its node when it starts.
    await eventually(lambda: _other(node, before), within=WITHIN, every=0.1, what="a slice that was published again")
    await node.offer_gpus(machine)
    await until_installed(node)
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    assert container_id(pod) == container_id(job)
    assert await node.execute(pod, "helper", "list", gpus.CHANNELS) == f"c channel0 {node.major}:0 666\n"


async def _other(world: World, before: str) -> bool:
    return await slice_uid(world) not in {"", before}


async def test_an_agent_that_is_replaced_leaves_the_job_alone_and_goes_on_with_it(
    node: World, namespace: str, job: dict[str, Any]
) -> None:
    (agent,) = await node.pods(NAMESPACE, labels=AGENT)
    await node.client.delete(POD, agent["metadata"]["name"], namespace=NAMESPACE)
    (successor,) = await node.until_ready(NAMESPACE, labels=AGENT, count=1)
    assert successor["metadata"]["uid"] != agent["metadata"]["uid"]
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    assert container_id(pod) == container_id(job)


async def test_a_restarted_containerd_leaves_the_job_alone_and_starts_the_next_one(
    node: World, namespace: str, job: dict[str, Any]
) -> None:
    (machine,) = node.nodes.values()
    await machine.stop_containerd(kill=True)
    await machine.start_containerd()
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    assert container_id(pod) == container_id(job)
    await node.client.delete(POD, pod["metadata"]["name"], namespace=namespace)
    await eventually(lambda: replaced(node, namespace, pod), within=WITHIN, every=0.1, what="a replacement")
    (successor,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    assert await node.execute(successor, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"


async def test_a_pod_deleted_by_force_is_replaced_on_the_same_node(
    node: World, namespace: str, job: dict[str, Any]
) -> None:
    await node.client.delete(POD, job["metadata"]["name"], namespace=namespace, grace_period=0)

    await eventually(lambda: replaced(node, namespace, job), within=WITHIN, every=0.1, what="a replacement")
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    assert await node.execute(pod, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"


async def test_an_agent_killed_while_kubelet_waits_for_a_channel_gives_it_after_its_return(
    node: World, namespace: str
) -> None:
    (machine,) = node.nodes.values()
    faults = machine.box.path(gpus.FAULTS)
    faults.write_text(json.dumps({"never_ready": True}))
    await node.apply(jobs.domain(namespace))
    await node.apply(jobs.workload(namespace, replicas=1))
    checkpoint = machine.box.path(CHECKPOINT)
    # Written ahead: the claim stands there as soon as Prepare has begun.
    await eventually(lambda: "channel-0" in checkpoint.read_text(), within=WITHIN, what="a Prepare that waits")
    (agent,) = await node.pods(NAMESPACE, labels=AGENT)
    os.kill(container_pid(agent), signal.SIGKILL)

    async def restarted() -> bool:
        (found,) = await node.pods(NAMESPACE, labels=AGENT)
        return bool(found["status"]["containerStatuses"][0]["restartCount"]) and found != agent

    await eventually(restarted, within=WITHIN, every=0.1, what="a restart of the agent")
    await node.until_ready(NAMESPACE, labels=AGENT, count=1)
    faults.unlink()
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1, within=AGAIN)
    assert await node.execute(pod, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"
    await end_job(node, namespace)


async def test_without_an_agent_a_pod_waits_and_with_the_next_one_it_runs(node: World, namespace: str) -> None:
    await node.client.delete(DAEMON_SET, "interlace-agent", namespace=NAMESPACE)
    await node.until_ready(NAMESPACE, labels=AGENT, count=0)
    await node.apply(jobs.domain(namespace))
    await node.apply(jobs.workload(namespace, replicas=1))

    async def refused() -> bool:
        found = (await node.client.list(EVENT, namespace=namespace)).items
        return any("is not registered" in event.get("message", "") for event in found)

    # The scheduler still sees the slice; kubelet does not start the container without what it claims.
    await eventually(refused, within=WITHIN, every=0.1, what="kubelet's refusal")
    (pod,) = await node.pods(namespace, labels=jobs.JOB)
    assert pod["status"]["phase"] == "Pending"
    # About half a minute after the agent's socket went, kubelet deletes the slice.
    await eventually(lambda: _no_slice(node), within=WITHIN, every=0.1, what="the end of the slice")
    await node.apply(agents())
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1, within=AGAIN)
    assert await node.execute(pod, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"
    await until_installed(node)
    await end_job(node, namespace)


async def _no_slice(world: World) -> bool:
    return not await slice_uid(world)


async def test_after_a_reboot_the_pod_comes_back_with_a_channel_and_nothing_of_the_earlier_boot(
    node: World, namespace: str
) -> None:
    (machine,) = node.nodes.values()
    await node.apply(jobs.domain(namespace))
    workload = jobs.workload(namespace, replicas=1)
    # Kubelet fails Pods with GPUs that it sees before their device plugin; their controller makes new ones.
    del workload["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    await node.apply(workload)
    (before,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    await machine.power_off()
    gpus.show_boot(machine)
    await machine.power_on()
    await node.offer_gpus(machine)

    async def back() -> bool:
        (pod,) = await node.pods(namespace, labels=jobs.JOB)
        assert pod["metadata"]["uid"] == before["metadata"]["uid"]
        return container_id(pod) != container_id(before)

    await eventually(back, within=AGAIN, every=0.2, what="the Pod in another container")
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1, within=AGAIN)
    assert await node.execute(pod, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"
    checkpoint = read_checkpoint(machine)
    assert checkpoint["boot_id"] == machine.boot_id
    assert len(checkpoint["claims"]) == len(specs(machine)) == 1
    await until_installed(node)
    await end_job(node, namespace)
    await until_clean(machine)


async def test_the_health_of_a_channel_stands_in_the_status_of_its_pod(
    node: World, namespace: str, job: dict[str, Any]
) -> None:
    (machine,) = node.nodes.values()
    faults = machine.box.path(gpus.FAULTS)

    async def shown(health: str) -> bool:
        (pod,) = await node.pods(namespace, labels=jobs.JOB)
        (container,) = pod["status"]["containerStatuses"]
        found = [
            resource.get("health")
            for status in container.get("allocatedResourcesStatus", [])
            if status["name"].startswith("claim:")
            for resource in status["resources"]
        ]
        assert found == [health], container
        return True

    await eventually(lambda: shown("Healthy"), within=WITHIN, every=0.1, what="a healthy channel")
    faults.write_text(json.dumps({"never_ready": True}))
    os.kill(find_process(machine, "interlace-simulated/daemon"), signal.SIGKILL)
    await eventually(lambda: shown("Unhealthy"), within=WITHIN, every=0.1, what="an unhealthy channel")
    faults.unlink()
    await eventually(lambda: shown("Healthy"), within=WITHIN, every=0.1, what="a healthy channel again")
    (pod,) = await node.until_ready(namespace, labels=jobs.JOB, count=1)
    assert container_id(pod) == container_id(job)

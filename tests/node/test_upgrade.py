"""A rolling upgrade of the agent: old and new one are there at the same time, and no Pod has to wait for either."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.api.computedomain import ComputeDomain
from testbed.node import Node
from tests.node import gpus, jobs
from tests.node.machine import container_id
from tests.node.waves import NAME, wave
from tests.node.world import DEPLOYMENT, EVENT, NAMESPACE, POD, WITHIN, World, agents, until_clean, until_installed
from tests.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

AGENT = "app.kubernetes.io/component=agent"


def speaking(*versions: str) -> dict[str, Any]:
    """Agents that offer kubelet only these versions of DRA."""
    daemons = agents()
    (container,) = daemons["spec"]["template"]["spec"]["containers"]
    container["env"].append({"name": "INTERLACE_DRA_VERSIONS", "value": ",".join(versions)})
    return daemons


async def until_replaced(world: World, before: dict[str, Any]) -> dict[str, Any]:
    """Wait until another agent than ``before`` is the only one, and Ready."""
    found: list[dict[str, Any]] = []

    async def look() -> bool:
        found[:] = await world.until_ready(NAMESPACE, labels=AGENT, count=1)
        return bool(found[0]["metadata"]["uid"] != before["metadata"]["uid"])

    await eventually(look, within=WITHIN, every=0.1, what="the next agent alone")
    return found[0]


def registered(machine: Node) -> list[str]:
    """Versions of DRA that kubelet chose for our plugins, one after the other."""
    lines = (machine.box.folder / "kubelet.log").read_text(errors="replace").splitlines()
    part = 'chosenService="'
    return [line.partition(part)[2].partition('"')[0] for line in lines if "Registered DRA plugin" in line]


def sockets(machine: Node, folder: str) -> list[str]:
    """Ours in a folder of kubelet: beside the lock that for handing over and that for kubelet, or for registration."""
    return [path.name for path in machine.box.path(f"/var/lib/kubelet/{folder}").glob("*.sock")]


async def churn(world: World, namespace: str, keep: str) -> dict[str, Any]:
    """Replace the job's Pod that is not ``keep``; the one that is Ready in its place."""
    pods = await world.pods(namespace, labels=jobs.JOB)
    (old,) = [pod for pod in pods if pod["metadata"]["uid"] != keep]
    await world.client.delete(POD, old["metadata"]["name"], namespace=namespace)

    async def come() -> bool:
        found = await world.pods(namespace, labels=jobs.JOB)
        return len(found) == 2 and old["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in found}

    await eventually(come, within=WITHIN, every=0.1, what="another Pod")
    pods = await world.until_ready(namespace, labels=jobs.JOB, count=2)
    (new,) = [pod for pod in pods if pod["metadata"]["uid"] != keep]
    return new


async def test_pods_come_and_go_while_the_agent_is_upgraded_and_none_is_refused(node: World, namespace: str) -> None:
    (machine,) = node.nodes.values()
    await node.apply(jobs.domain(namespace))
    await node.apply(wave(namespace, pods=2, claims=True))
    steady, _ = await node.until_ready(namespace, labels=jobs.JOB, count=2)
    kept = steady["metadata"]["uid"]
    (agent,) = await node.until_ready(NAMESPACE, labels=AGENT, count=1)
    # To one that speaks the older version alone, as if it had been built long ago, and back.
    for daemons, version in ((speaking("v1beta1"), "v1beta1.DRAPlugin"), (agents(), "v1.DRAPlugin")):
        await node.apply(daemons)
        while len(await node.pods(NAMESPACE, labels=AGENT)) != 1 or registered(machine)[-1] != version:
            await churn(node, namespace, kept)
        agent = await until_replaced(node, agent)
        new = await churn(node, namespace, kept)
        assert await node.execute(new, "helper", "open", f"{gpus.CHANNELS}/channel0") == "ENXIO\n"
    events = (await node.client.list(EVENT, namespace=namespace)).items
    refused = [event.get("message", "") for event in events if event.get("reason", "").startswith("FailedPrepare")]
    assert refused == []
    (pod,) = [pod for pod in await node.pods(namespace, labels=jobs.JOB) if pod["metadata"]["uid"] == kept]
    assert container_id(pod) == container_id(steady)
    await node.client.delete(DEPLOYMENT, NAME, namespace=namespace, propagation="Background")
    await node.client.delete(ComputeDomain, jobs.DOMAIN_NAME, namespace=namespace)
    await node.until_ready(namespace, labels=jobs.JOB, count=0)
    await until_clean(machine)
    await until_installed(node)
    found = [len(sockets(machine, folder)) for folder in ("plugins/compute-domain.nvidia.com", "plugins_registry")]
    assert found == [2, 1]

"""The agent dies at each step of Prepare and Unprepare, and what it wrote is all that the next one knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from testbed.node import Node
from tests.holding import hold
from tests.node import gpus, jobs
from tests.node.killing import compile_killer, killed
from tests.node.machine import container_pid, read_checkpoint, specs
from tests.node.world import DEPLOYMENT, NAMESPACE, World, run_namespace, until_clean

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

AGENT = "app.kubernetes.io/component=agent"
SPEC = "-claim_"
"""In the names of CDI specs."""
Step = tuple[Literal["enter", "exit"], Literal["rename", "unlink"], str, int]


@pytest.fixture(scope="module")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(compile_killer(tmp_path_factory.mktemp("killer")))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def team(node: World) -> AsyncIterator[str]:
    """A namespace with a domain, for all tests here."""
    async with hold(run_namespace(node)) as name:
        await node.apply(jobs.domain(name))
        yield name


def kept(machine: Node) -> int:
    """How many claims the checkpoint of the node has."""
    return len(read_checkpoint(machine)["claims"])


async def agent(world: World) -> dict[str, Any]:
    """The agent's Pod, Ready."""
    (pod,) = await world.until_ready(NAMESPACE, labels=AGENT, count=1)
    return pod


@pytest.mark.parametrize(
    ("step", "written", "there"),
    [
        (("enter", "rename", "checkpoint.json", 1), 0, 0),
        (("exit", "rename", "checkpoint.json", 1), 1, 0),
        (("enter", "rename", SPEC, 1), 1, 0),
        (("exit", "rename", SPEC, 1), 1, 1),
        (("enter", "rename", "checkpoint.json", 2), 1, 1),
        (("exit", "rename", "checkpoint.json", 2), 1, 1),
    ],
    ids=["before-claim", "claim", "before-spec", "spec", "before-completion", "completion"],
)
async def test_an_agent_that_dies_in_prepare_gives_the_channel_after_its_return(
    node: World, team: str, killer: Path, step: Step, written: int, there: int
) -> None:
    (machine,) = node.nodes.values()
    before = await agent(node)
    when, call, path, times = step
    async with killed(killer, container_pid(before), when=when, call=call, path=path, times=times):
        await node.apply(jobs.workload(team, replicas=1))
    assert (kept(machine), len([name for name in specs(machine) if name.endswith(".json")])) == (written, there)
    (pod,) = await node.until_ready(team, labels=jobs.JOB, count=1)
    assert await node.execute(pod, "helper", "list", gpus.CHANNELS) == f"c channel0 {node.major}:0 666\n"
    assert (await agent(node))["status"]["containerStatuses"][0]["restartCount"] == restarts(before) + 1
    await node.client.delete(DEPLOYMENT, jobs.DEPLOYMENT_NAME, namespace=team, propagation="Background")
    await node.until_ready(team, labels=jobs.JOB, count=0)
    await until_clean(machine)


def restarts(pod: dict[str, Any]) -> int:
    return int(pod["status"]["containerStatuses"][0]["restartCount"])


@pytest.mark.parametrize(
    ("step", "kept_then", "there"),
    [
        (("enter", "unlink", SPEC, 1), 1, 1),
        (("exit", "unlink", SPEC, 1), 1, 0),
        (("exit", "rename", "checkpoint.json", 1), 0, 0),
    ],
    ids=["before-spec", "spec", "claim"],
)
async def test_an_agent_that_dies_in_unprepare_cleans_up_after_its_return(
    node: World, team: str, killer: Path, step: Step, kept_then: int, there: int
) -> None:
    (machine,) = node.nodes.values()
    await node.apply(jobs.workload(team, replicas=1))
    await node.until_ready(team, labels=jobs.JOB, count=1)
    before = await agent(node)
    when, call, path, times = step
    async with killed(killer, container_pid(before), when=when, call=call, path=path, times=times):
        await node.client.delete(DEPLOYMENT, jobs.DEPLOYMENT_NAME, namespace=team, propagation="Background")
    assert (kept(machine), len(specs(machine))) == (kept_then, there)
    await node.until_ready(team, labels=jobs.JOB, count=0)
    await until_clean(machine)
    await agent(node)

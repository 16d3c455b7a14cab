"""An agent takes over from one of another Pod, as in a rolling upgrade: kubelet always has somebody to call."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator

import pytest_asyncio

from interlace.api.computedomain import DRIVER
from interlace.sim.plane import Plane
from tests.contract.agent_world import WITHIN, World, install, run_world
from tests.holding import hold
from tests.waiting import eventually

OLD, NEW = "0000000a", "0000000b"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installed(plane: Plane) -> Plane:
    await install(plane)
    return plane


@pytest_asyncio.fixture(loop_scope="module")
async def world(installed: Plane) -> AsyncIterator[World]:
    async with hold(run_world(installed)) as running:
        yield running


def sockets(world: World) -> set[str]:
    return {path.name for path in world.settings.registrar_dir.iterdir()}


def endpoints(world: World) -> list[str]:
    return sorted(path.name for path in world.settings.home.glob("dra-*"))


def registration(instance: str) -> str:
    return f"{DRIVER}-{instance}-reg.sock"


def called(world: World) -> str:
    """Whom kubelet calls."""
    return world.kubelet.find(DRIVER).socket.name if world.kubelet.names() else ""


async def until_alone(world: World, instance: str) -> None:
    """Wait until an agent serves, and no other one."""
    name = registration(instance)
    await eventually(lambda: sockets(world) == {name} and called(world) == name, within=WITHIN, what=f"{name} alone")


async def test_a_claim_prepared_by_the_old_agent_is_unprepared_by_the_new_one(world: World, plane: Plane) -> None:
    domain = str(uuid.uuid4())
    async with world.agent(instance=OLD):
        await world.published()
        claim = await world.claim(domain)
        await world.join(domain)
        ids = await world.prepare(claim)
        async with world.agent(instance=NEW, dra_versions=("v1beta1",)):
            await until_alone(world, NEW)
            assert await world.prepare(claim) == ids
            await world.unprepare(claim)
            assert world.specs() == []
        # The new one ended, and the old one is still there: it takes the node back.
        await until_alone(world, OLD)
        assert await world.prepare(claim) == ids
        await world.unprepare(claim)


async def test_a_prepare_that_waits_in_the_old_agent_is_answered_before_it_hands_over(
    world: World, plane: Plane
) -> None:
    domain = str(uuid.uuid4())
    world.host.prompt = False
    async with world.agent(instance=OLD), asyncio.TaskGroup() as group:
        await world.published()
        first, second = await world.claim(domain), await world.claim(domain)
        await world.join(domain)
        waiting = group.create_task(world.prepare(first))
        await eventually(lambda: world.host.heard, within=WITHIN, what="an order for the imex-host")
        async with world.agent(instance=NEW):
            both = {registration(OLD), registration(NEW)}
            await eventually(lambda: sockets(world) == both, within=WITHIN, what="two agents")
            await eventually(lambda: called(world) == registration(NEW), within=WITHIN, what="calls to the new one")
            later = group.create_task(world.prepare(second))
            assert not waiting.done()
            world.host.prompt = True
            world.host.obey()
            assert await waiting
            assert await later
            assert len(world.specs()) == 2
            assert sockets(world) == {registration(NEW)}
            for claim in (first, second):
                await world.unprepare(claim)


async def test_an_agent_that_ends_while_the_next_one_asks_leaves_the_node_to_it(world: World, plane: Plane) -> None:
    """Its lock ends with it, and sockets that another one left long ago are removed by the next one."""
    async with world.agent(instance=OLD) as old:
        await world.published()
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(world.settings.home / "dra-0000000c.sock"))
        async with world.agent(instance=NEW):
            await eventually(lambda: registration(NEW) in sockets(world), within=WITHIN, what="two agents")
            old.cancel()
            await until_alone(world, NEW)
            await eventually(lambda: endpoints(world) == [f"dra-{NEW}.sock"], within=WITHIN, what="the dead one's end")
            claim = await world.claim(domain := str(uuid.uuid4()))
            await world.join(domain)
            assert await world.prepare(claim)
            await world.unprepare(claim)

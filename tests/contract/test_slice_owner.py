"""The slice of a node goes with its Node, and stays while only the Node's uid is new, on both API servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest_asyncio

from interlace.api.core import Node
from interlace.api.meta import OwnerReference
from interlace.api.resource import ResourceSlice
from interlace.kube.errors import NotFound
from interlace.node.slices import slice_name
from interlace.sim.plane import Plane
from tests.contract.agent_world import WITHIN, World, install, run_world
from tests.holding import hold
from tests.unit.sim.platform.world import stand_ins
from tests.waiting import eventually


@asynccontextmanager
async def _collecting(plane: Plane) -> AsyncIterator[None]:
    """A garbage collector: the real server's own, or the stand-in."""
    async with AsyncExitStack() as stack:
        if plane.kind == "embedded":
            await stack.enter_async_context(stand_ins(plane))
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installed(plane: Plane) -> AsyncIterator[Plane]:
    await install(plane)
    async with hold(_collecting(plane)):
        yield plane


@pytest_asyncio.fixture(loop_scope="module")
async def world(installed: Plane) -> AsyncIterator[World]:
    async with hold(run_world(installed)) as running:
        yield running


async def test_a_slice_is_owned_by_its_node_and_goes_with_it(world: World) -> None:
    node = await world.admin.get(Node, world.node)

    async def gone() -> bool:
        try:
            await world.admin.get(ResourceSlice, slice_name(world.node))
        except NotFound:
            return True
        return False

    async with world.agent():
        published = await world.published()
        owner = OwnerReference(api_version="v1", kind="Node", name=world.node, uid=node.metadata.uid)
        assert published.metadata.owner_references == [owner]
    await world.admin.delete(Node, world.node)
    await eventually(gone, within=WITHIN, what="the end of the slice")


async def test_a_slice_of_a_node_that_was_made_again_stands_without_an_owner(world: World) -> None:
    async with world.agent():
        first = await world.published()
        await world.admin.delete(Node, world.node)
        await world.admin.create(
            Node, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": world.node, "labels": {}}}
        )

        async def stands() -> bool:
            found = [
                item for item in (await world.admin.list(ResourceSlice)).items if item.spec.node_name == world.node
            ]
            return [item.metadata.owner_references for item in found] == [[]] and found[
                0
            ].metadata.uid != first.metadata.uid

        await eventually(stands, within=WITHIN, what="a slice without the owner that is gone")

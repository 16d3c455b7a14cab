"""The slice of a node against the embedded server, with a watch that breaks at the wrong moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from interlace.api.resource import ResourceSlice
from interlace.kube.client import Client
from interlace.node.fabric import Fabric
from interlace.node.offer import FREE
from interlace.node.slices import SlicePublisher, slice_name
from interlace.sim.apiserver import ApiServer
from tests.unit.node.parts import CLIQUE, NODE
from tests.waiting import eventually


class GappedClient(Client):
    """Opens no watch while ``gate`` is closed."""

    gate: asyncio.Event

    async def watch(self, *args: Any, **options: Any) -> AsyncGenerator[Any, None]:
        await self.gate.wait()
        async with aclosing(super().watch(*args, **options)) as stream:
            async for event in stream:
                yield event


async def test_a_slice_that_is_deleted_while_nobody_watches_is_published_again(embedded_plane: ApiServer) -> None:
    config = embedded_plane.credentials("admin", groups=["system:masters"])

    async def uid() -> str:
        found = (await admin.list(ResourceSlice)).items
        return found[0].metadata.uid if found else ""

    async with (
        Client(config, user_agent="test", qps=0) as admin,
        GappedClient(config, user_agent="test", qps=0) as client,
        asyncio.TaskGroup() as group,
    ):
        client.gate = asyncio.Event()
        client.gate.set()
        publisher = SlicePublisher(client, node=NODE, rival_timeout=1)
        running = group.create_task(publisher.run())
        await publisher.cleared.wait()
        client.gate.clear()
        await eventually(lambda: embedded_plane.faults.drop_watches("resourceslices"), within=10)
        publisher.offer(FREE)
        publisher.show(Fabric(clique=CLIQUE))
        first = await eventually(uid, within=10, what="the slice")
        await admin.delete(ResourceSlice, slice_name(NODE))
        embedded_plane.faults.expire_history()
        client.gate.set()
        assert await eventually(uid, within=20, what="another slice") != first
        running.cancel()

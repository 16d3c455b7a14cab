"""The slice of a node against the embedded server, with a watch that breaks at the wrong moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from interlace.api.computedomain import DRIVER
from interlace.api.resource import ResourceSlice
from interlace.kube.client import Client
from interlace.node.errors import RivalDriver
from interlace.node.fabric import Fabric
from interlace.node.offer import FREE, SLOTS, Offer
from interlace.node.ownership import Ownership
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
        publisher = SlicePublisher(client, node=NODE, rival_timeout=1, ownership=Ownership(config, node=NODE))
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


async def test_offers_follow_each_other_while_the_watch_shows_nothing(embedded_plane: ApiServer) -> None:
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    name = slice_name("deaf-node")

    async def holders() -> list[str | None]:
        found = [item for item in (await admin.list(ResourceSlice)).items if item.metadata.name == name]
        return [device.attributes["domain"].string for item in found for device in item.spec.devices]

    async with (
        Client(config, user_agent="test", qps=0) as admin,
        GappedClient(config, user_agent="test", qps=0) as client,
        asyncio.TaskGroup() as group,
    ):
        client.gate = asyncio.Event()
        client.gate.set()
        publisher = SlicePublisher(
            client, node="deaf-node", rival_timeout=1, ownership=Ownership(config, node="deaf-node")
        )
        running = group.create_task(publisher.run())
        await publisher.cleared.wait()
        client.gate.clear()
        await eventually(lambda: embedded_plane.faults.drop_watches("resourceslices"), within=10)
        publisher.show(Fabric(clique=CLIQUE))
        for offer in (FREE, Offer(holder="x", slots=SLOTS), Offer(holder="x"), FREE):
            publisher.offer(offer)
            wanted = [offer.holder] * offer.slots

            async def stands(wanted: list[str] = wanted) -> bool:
                return await holders() == wanted

            await eventually(stands, within=10, what=f"{offer}")
        running.cancel()


async def test_whose_the_slice_of_another_driver_is_is_said_also_on_older_servers(tmp_path: Path) -> None:
    async with ApiServer(state_dir=tmp_path, resource_version="v1beta1") as server:
        config = server.credentials("admin", groups=["system:masters"])
        async with Client(config, user_agent="test", qps=0) as client:
            pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [{"name": "channel-0"}]}
            await client.apply(ResourceSlice, {"metadata": {"name": "s"}, "spec": spec}, name="s", manager="other")
            with pytest.raises(ExceptionGroup) as caught:
                await SlicePublisher(client, node=NODE, rival_timeout=0.1, ownership=Ownership(config, node=NODE)).run()
    (error,) = caught.value.exceptions
    assert isinstance(error, RivalDriver)
    assert "field managers: other" in str(error)

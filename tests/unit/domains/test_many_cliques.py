"""A domain over several cliques: none of its node maps waits for another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlace.domains.maps import MapWriter
from tests.unit.domains.desk import RACK, Desk
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLIQUES = 3


async def test_the_node_maps_of_a_domain_are_written_side_by_side(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    written, meeting = MapWriter.write, asyncio.Barrier(CLIQUES)

    async def meet(self: MapWriter, body: dict[str, Any], *, current: Any) -> None:
        if current is None:
            async with asyncio.timeout(10):
                await meeting.wait()  # fails where they come one after the other
        await written(self, body, current=current)

    monkeypatch.setattr(MapWriter, "write", meet)
    team = await desk.team()
    nodes = [name for number in range(CLIQUES) for name in await desk.nodes(1, clique=f"{RACK}.{number}")]
    async with desk.controller():
        domain = await team.create_domain()
        for node in nodes:
            await team.add_claim(f"on-{node}", uid=domain.metadata.uid)
        for node in nodes:
            await team.allocate(f"on-{node}", node=node)

        async def rows() -> set[str]:
            return set(await team.rows(domain.metadata.uid))

        await eventually(lambda: _equal(rows, set(nodes)), within=30)


async def _equal(look: Any, wanted: object) -> bool:
    return bool(await look() == wanted)

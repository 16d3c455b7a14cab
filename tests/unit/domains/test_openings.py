"""When the node map is written and opened, on a cluster whose nodes are all there is to take."""

from __future__ import annotations

import pytest

from interlace.api.computedomain import ComputeDomain
from interlace.api.resource import ResourceSlice
from interlace.domains import debounce, sharing
from tests.unit.domains.desk import Desk, Team, equal, has_rows, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _opened(team: Team, domain: ComputeDomain) -> list[bool]:
    return [row.shared for clique in await team.cliques(domain.metadata.uid) for row in clique.daemons]


def _writes(desk: Desk, *, since: int) -> list[str]:
    return [r.verb for r in desk.requests(since=since) if r.resource == "computedomaincliques" and r.verb != "watch"]


async def test_nobody_waits_for_the_scheduler_when_no_node_is_left_for_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debounce, "STALL", 3600.0)
    monkeypatch.setattr(debounce, "LIMIT", 3600.0)
    monkeypatch.setattr(sharing, "FRESH", 3600.0)
    team = await desk.team()
    names = await desk.nodes(2)
    async with desk.controller():
        domain, begin = await team.create_domain(), desk.now
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        for pod in ("a", "b", "c"):
            await team.add_claim(pod, uid=domain.metadata.uid)
        await team.allocate("a", node=names[0])
        await team.allocate("b", node=names[1])
        await until(lambda: has_rows(team, domain.metadata.uid, names), what="both rows")
        assert await _opened(team, domain) == [True, True]
        assert _writes(desk, since=begin) == ["create"]


async def test_a_job_that_has_waited_long_gets_the_nodes_that_others_leave_in_one_map(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debounce, "STALL", 3600.0)
    monkeypatch.setattr(debounce, "LIMIT", 3600.0)
    monkeypatch.setattr(sharing, "FRESH", 0.0)
    monkeypatch.setattr(sharing, "HASTE", 0.0)
    monkeypatch.setattr(debounce, "STATUS_INTERVAL", 0.0)
    team = await desk.team()
    names = sorted(slice_.spec.node_name or "" for slice_ in (await desk.client.list(ResourceSlice)).items)
    async with desk.controller():
        domain, begin = await team.create_domain(), desk.now
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        await team.add_claim("waits", uid=domain.metadata.uid)
        for node in names:
            await team.add_claim(node, uid=domain.metadata.uid, node=node)
        await team.create_domain("other")
        await equal(lambda: team.condition("Ready", name="other"), ("True", "NoNodes"))
        await team.remove_claim("waits")
        await until(lambda: has_rows(team, domain.metadata.uid, names), what="all rows")
        assert await _opened(team, domain) == [False] * len(names)
        assert _writes(desk, since=begin) == ["create"]


async def test_while_a_node_is_free_the_map_waits_for_the_scheduler_and_opens_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debounce, "STALL", 3600.0)
    monkeypatch.setattr(debounce, "LIMIT", 3600.0)
    team = await desk.team()
    names = await desk.nodes(3)
    async with desk.controller():
        domain, begin = await team.create_domain(), desk.now
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        for pod in ("a", "b", "c"):
            await team.add_claim(pod, uid=domain.metadata.uid)
        for pod, node in zip(("a", "b", "c"), names, strict=True):
            await team.allocate(pod, node=node)
        await until(lambda: has_rows(team, domain.metadata.uid, names), what="all rows")
        assert await _opened(team, domain) == [False, False, False]
        assert _writes(desk, since=begin) == ["create"]

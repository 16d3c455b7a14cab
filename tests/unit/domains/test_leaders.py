"""One leader after another, two at once, and what one cannot read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from interlace.api.computedomain import ComputeDomain
from interlace.api.crd import crds
from interlace.domains import reconciler
from interlace.kube.untyped import apply_manifest
from tests.unit.domains.desk import UNTYPED_DOMAIN, Desk, equal, form, told_about, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_next_leader_goes_on_where_the_last_one_stopped_and_repeats_nothing(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(3)
    async with desk.controller():
        domain = await form(desk, team, names)
        await until(lambda: told_about(team, "cd", ("Normal", "Formed")), what="an event")
    begin = desk.now
    async with desk.controller():
        await team.add_claim("probe", uid=domain.metadata.uid)
        await equal(lambda: team.condition("Ready"), ("False", "WaitingForAllocation"))
        made = Counter((r.verb, r.resource, r.subresource) for r in desk.requests(since=begin))
        assert made == {("patch", "computedomains", "status"): 1}
        assert {index for index, _ in (await team.rows(domain.metadata.uid)).values()} == {0, 1, 2}


async def test_what_a_domain_left_behind_while_nobody_led_is_removed(desk: Desk) -> None:
    team = await desk.team()
    (name,) = await desk.nodes(1)
    async with desk.controller():
        domain = await form(desk, team, [name])
    await desk.client.merge_patch(ComputeDomain, "cd", {"metadata": {"finalizers": None}}, namespace=team.namespace)
    await desk.client.delete(ComputeDomain, "cd", namespace=team.namespace)
    async with desk.controller():
        await equal(lambda: team.cliques(domain.metadata.uid), [])
        await equal(team.templates, [])


async def test_a_domain_that_this_controller_cannot_read_keeps_its_template_and_node_map(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer release, or another driver, wrote a value that this one does not know."""
    monkeypatch.setattr(reconciler, "HIDDEN_RETRY", 0.2)
    team = await desk.team()
    (name,) = await desk.nodes(1)
    async with _lax_status(desk), desk.controller():
        domain = await form(desk, team, [name])
        patch = {"status": {"status": "Degraded"}}
        await desk.client.merge_patch(UNTYPED_DOMAIN, "cd", patch, namespace=team.namespace, subresource="status")
        await team.create_domain("other")
        await equal(lambda: team.condition("Ready", name="other"), ("True", "NoNodes"))
        assert {t.metadata.name for t in await team.templates()} == {"cd-rct", "other-rct"}
        assert list(await team.rows(domain.metadata.uid)) == [name]
        await desk.client.delete(UNTYPED_DOMAIN, "cd", namespace=team.namespace)
        await equal(lambda: _names(desk, UNTYPED_DOMAIN), ["other"])
        assert await team.cliques(domain.metadata.uid) == []


async def _names(desk: Desk, kind: type[Any]) -> list[str]:
    return [found.metadata.name for found in (await desk.client.list(kind)).items]


@asynccontextmanager
async def _lax_status(desk: Desk) -> AsyncIterator[None]:
    """The server takes any word as status of a domain."""
    (lax, _) = crds()
    del lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["status"]["enum"]
    await apply_manifest(desk.client, lax, manager="test")
    try:
        yield
    finally:
        await apply_manifest(desk.client, crds()[0], manager="test")


async def test_only_one_of_two_controllers_writes(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(4)
    begin = desk.now
    async with desk.controller(), desk.controller():
        await form(desk, team, names)
        made = desk.requests(since=begin)
        assert len([r for r in made if r.resource == "resourceclaimtemplates" and r.verb == "create"]) == 1
        assert not [r for r in made if r.code == 409]


async def test_metrics_count_domains_by_status(desk: Desk) -> None:
    team = await desk.team()
    async with desk.controller() as port, aiohttp.ClientSession() as session:
        await team.create_domain()
        await team.create_domain("waiting", num_nodes=1)
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        await equal(lambda: team.condition("Ready", name="waiting"), ("False", "TooFewNodes"))
        async with session.get(f"http://127.0.0.1:{port()}/readyz") as answer:
            assert answer.status == 200

        async def metrics() -> str:
            async with session.get(f"http://127.0.0.1:{port()}/metrics") as answer:
                return await answer.text()

        def gauge(text: str, status: str) -> float:
            found = re.search(rf'^nvidia_dra_compute_domain_info{{status="{status}"}} (\S+)$', text, re.MULTILINE)
            return float(found[1]) if found else -1.0

        domains = (await desk.client.list(ComputeDomain)).items
        ready = sum(1 for d in domains if d.status and d.status.status == "Ready")

        async def right() -> bool:
            text = await metrics()
            return (gauge(text, "Ready"), gauge(text, "NotReady")) == (ready, len(domains) - ready)

        await until(right, what="the gauges")

"""Claims that wait, strangers and Pods that nobody prepares, with a controller that runs."""

from __future__ import annotations

import pytest

from interlace.api.computedomain import ComputeDomain
from interlace.api.core import Pod
from interlace.api.crd import crds
from interlace.domains import retry, waiting
from interlace.domains.retry import RETRY_ANNOTATION, WAITING_FOR_KUBELET
from interlace.kube.untyped import apply_manifest
from tests.unit.domains.desk import Desk, Team, add_node, equal, form, gone, told_about, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_domain_stored_without_spec_harms_nobody(desk: Desk) -> None:
    team = await desk.team()
    (lax, _) = crds()
    del lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"]
    await apply_manifest(desk.client, lax, manager="test")
    await desk.client.create(ComputeDomain, {"metadata": {"name": "bare"}}, namespace=team.namespace)
    await apply_manifest(desk.client, crds()[0], manager="test")
    async with desk.controller():
        await until(lambda: told_about(team, "bare", ("Warning", "NoSpec")), what="an event")
        await team.create_domain()
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        await desk.client.delete(ComputeDomain, "bare", namespace=team.namespace)
        await until(lambda: gone(team, "bare"), what="the end of the domain without spec")


async def test_a_claim_in_another_namespace_makes_no_member_and_istold_about(desk: Desk) -> None:
    home, other = await desk.team(), await desk.team()
    (name,) = await desk.nodes(1)
    async with desk.controller():
        domain = await home.create_domain()
        await other.add_claim("stranger", uid=domain.metadata.uid, node=name)
        await until(lambda: told_about(other, "stranger", ("Warning", "ClaimInWrongNamespace")), what="an event")
        assert await home.rows(domain.metadata.uid) == {}
        assert await home.condition("Ready") == ("True", "NoNodes")


async def test_a_pod_that_has_waited_is_told_what_for_and_the_domain_says_it_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.3)
    team = await desk.team()
    async with desk.controller():
        domain = await team.create_domain()
        await team.add_claim("lost", uid=domain.metadata.uid)
        await equal(lambda: team.condition("Ready"), ("False", "WaitingForAllocation"))
        await until(lambda: told_about(team, "lost", ("Warning", "WaitingForAllocation")), what="an event")
        await team.allocate("lost", node="node-without-anything")
        await equal(lambda: team.condition("Ready"), ("False", "NoAgent"))
        await add_node(desk.client, "node-without-anything", address="10.201.0.1")
        await equal(lambda: team.condition("Ready"), ("False", "WaitingForPrepare"))
        await team.report("lost", node="node-without-anything", status="False", reason="ImexStarting")
        await equal(lambda: team.condition("Ready"), ("False", "WaitingForImex"))
        await until(lambda: told_about(team, "lost", ("Warning", "WaitingForImex")), what="an event")


async def test_a_clique_that_is_full_refuses_a_node_and_says_so(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(3)
    async with desk.controller(max_nodes=2):
        domain = await form(desk, team, names[:2])
        await team.add_claim("third", uid=domain.metadata.uid, node=names[2])
        await equal(lambda: team.condition("Ready"), ("False", "CliqueFull"))
        await until(lambda: told_about(team, "third", ("Warning", "CliqueFull")), what="an event on the Pod")
        await until(lambda: told_about(team, "cd", ("Warning", "CliqueFull")), what="an event on the domain")
        assert set(await team.rows(domain.metadata.uid)) == set(names[:2])


async def test_a_pod_whose_next_prepare_will_succeed_is_touched(desk: Desk) -> None:
    team = await desk.team()
    (name,) = await desk.nodes(1)
    async with desk.controller():
        domain = await team.create_domain()
        pod = await team.create_pod("late")
        await team.add_claim("late", uid=domain.metadata.uid, node=name)
        await team.reserve("late", pod=pod)
        await team.report("late", node=name, status="False", reason="ImexStarting")
        await team.report("late", node=name, status="False", reason=WAITING_FOR_KUBELET)
        await until(lambda: _touched(team, "late"), what="the annotation")


async def test_a_pod_whose_agent_was_not_there_is_touched_until_it_reports(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "SILENCE", 0.2)
    team = await desk.team()
    (name,) = await desk.nodes(1)
    async with desk.controller():
        domain = await team.create_domain()
        pod = await team.create_pod("lonely")
        await team.add_claim("lonely", uid=domain.metadata.uid, node=name)
        await team.reserve("lonely", pod=pod)
        await until(lambda: _touched(team, "lonely"), what="the annotation")


async def _touched(team: Team, pod: str) -> bool:
    return RETRY_ANNOTATION in (await team.client.get(Pod, pod, namespace=team.namespace)).metadata.annotations

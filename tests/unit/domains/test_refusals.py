"""What the API server refuses, and what people do to templates: told, and made good."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from interlace.api.computedomain import ComputeDomain
from interlace.api.resource import ResourceClaimTemplate
from interlace.domains import templates, waiting
from interlace.kube.untyped import apply_manifest
from interlace.manifests import manifests
from tests.unit.domains.desk import Desk, equal, gone, told_about, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_template_that_somebody_deletes_is_made_again(desk: Desk) -> None:
    team = await desk.team()
    async with desk.controller():
        await team.create_domain()
        await equal(lambda: team.condition("TemplateReady"), ("True", "TemplateCreated"))
        (old,) = await team.templates()
        await desk.client.delete(ResourceClaimTemplate, "cd-rct", namespace=team.namespace)

        async def replaced() -> bool:
            return [t.metadata.uid for t in await team.templates()] not in ([], [old.metadata.uid])

        await until(replaced, what="another template")


async def test_a_name_that_another_domains_template_has_is_told_at_once(desk: Desk) -> None:
    team = await desk.team()
    async with desk.controller():
        await team.create_domain("first", template="shared")
        await equal(lambda: team.condition("TemplateReady", name="first"), ("True", "TemplateCreated"))
        await team.create_domain("second", template="shared")
        await equal(lambda: team.condition("Ready", name="second"), ("False", "TemplateNameTaken"))
        message = next(c.message for c in (await team.status("second")).conditions if c.type == "Ready")
        assert f"belongs to ComputeDomain {team.namespace}/first" in message
        await until(lambda: told_about(team, "second", ("Warning", "TemplateNameTaken")), what="an event")
        await desk.client.delete(ComputeDomain, "second", namespace=team.namespace)
        await until(lambda: gone(team, "second"), what="the end of the second domain")
        assert [t.metadata.name for t in await team.templates()] == ["shared"]


async def test_a_template_name_that_is_no_name_is_told_at_once(desk: Desk) -> None:
    team = await desk.team()
    async with desk.controller():
        await team.create_domain(template="No Name")
        await equal(lambda: team.condition("TemplateReady"), ("False", "TemplateInvalid"))


async def test_a_template_that_the_server_forbids_is_told_with_the_servers_words(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "RETRY", 0.2)
    team = await desk.team()
    async with desk.controller():
        async with _without(desk, "ClusterRole", "resourceclaimtemplates"):
            await team.create_domain()
            await equal(lambda: team.condition("Ready"), ("False", "TemplateRefused"))
            message = next(c.message for c in (await team.status()).conditions if c.type == "Ready")
            assert 'cannot create resource "resourceclaimtemplates"' in message
            await until(lambda: told_about(team, "cd", ("Warning", "TemplateRefused")), what="an event")
        await equal(lambda: team.condition("TemplateReady"), ("True", "TemplateCreated"))


@pytest.mark.parametrize("isolation", ["Domain", "Channel"])
async def test_a_node_map_that_the_server_forbids_is_told_to_domain_and_pod(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.3)
    team = await desk.team()
    (name,) = await desk.nodes(1)
    async with desk.controller():
        async with _without(desk, "Role", "computedomaincliques"):
            domain = await team.create_domain(isolation=isolation)
            await team.add_claim("a", uid=domain.metadata.uid, node=name)

            async def told() -> bool:
                ready = next((c for c in (await team.status()).conditions if c.type == "Ready"), None)
                return ready is not None and 'cannot create resource "computedomaincliques"' in ready.message

            await until(told, what="the server's words in the condition")
            assert await team.condition("Ready") == ("False", "WaitingForClique")
            await until(lambda: told_about(team, "a", ("Warning", "WaitingForClique")), what="an event on the Pod")
        await equal(lambda: team.condition("Ready"), ("False", "WaitingForPrepare"))


@asynccontextmanager
async def _without(desk: Desk, kind: str, resource: str) -> AsyncIterator[None]:
    """The controller may not create these."""
    (role,) = [m for m in manifests() if m["kind"] == kind and m["metadata"]["name"] == "interlace-controller"]
    rules = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "create"]}
        if resource in rule["resources"]
        else rule
        for rule in role["rules"]
    ]
    await apply_manifest(desk.client, {**role, "rules": rules}, manager="test")
    try:
        yield
    finally:
        await apply_manifest(desk.client, role, manager="test")

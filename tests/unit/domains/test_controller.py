"""The controller against the embedded API server, with its own ServiceAccount and its real rights."""

from __future__ import annotations

from collections import Counter

import pytest

from interlace.api.computedomain import CLIQUE_LABEL, DOMAIN_LABEL, FINALIZER, ComputeDomain
from interlace.api.core import Pod
from interlace.api.resource import ResourceClaim
from interlace.domains import debounce
from interlace.manifests import NAMESPACE
from tests.unit.domains.desk import RACK, Desk, add_host, equal, form, gone, has_rows, leads, told_about, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_domain_gets_finalizer_template_and_status(desk: Desk) -> None:
    team = await desk.team()
    async with desk.controller():
        domain = await team.create_domain()
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        assert (await team.domain()).metadata.finalizers == [FINALIZER]
        (template,) = await team.templates()
        assert template.metadata.name == "cd-rct"
        assert template.metadata.labels[DOMAIN_LABEL] == domain.metadata.uid
        assert (await team.status()).status == "Ready"


async def test_eighteen_nodes_form_for_at_most_ten_requests_and_go_for_at_most_four(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(18)
    async with desk.controller():
        await until(lambda: leads(desk), what="a leader")
        begin = desk.now
        domain = await form(desk, team, names)
        uid = domain.metadata.uid
        status = await team.status()
        assert (status.status, status.ready_nodes) == ("Ready", "18/18")
        assert sorted(node.index for node in status.nodes) == list(range(18))
        assert await team.condition("WithinOneClique") == ("True", "OneClique")
        await until(lambda: told_about(team, "cd", ("Normal", "Formed")), what="an event")
        made = desk.requests(since=begin)
        assert len(made) <= 10, Counter((r.verb, r.resource, r.subresource) for r in made)
        assert not [r for r in made if r.verb in {"get", "list"}]
        assert not [r for r in made if r.code >= 400]

        begin = desk.now
        await desk.client.delete(ComputeDomain, "cd", namespace=team.namespace)
        await until(lambda: gone(team), what="the end of the domain")
        assert await team.cliques(uid) == []
        assert await team.templates() == []
        made = desk.requests(since=begin)
        assert Counter((r.verb, r.resource, r.code) for r in made) == {
            ("delete", "resourceclaimtemplates", 200): 1,
            ("patch", "resourceclaimtemplates", 200): 1,
            ("delete", "computedomaincliques", 200): 1,
            ("patch", "computedomains", 200): 1,
        }


async def test_that_a_domain_is_formed_waits_for_no_interval_and_what_follows_does(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = await desk.team()
    names = await desk.nodes(2)
    monkeypatch.setattr(debounce, "STATUS_INTERVAL", 3600.0)
    async with desk.controller():
        domain = await team.create_domain()
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        for name in names:
            await team.add_claim(name, uid=domain.metadata.uid, node=name)
        await until(lambda: has_rows(team, domain.metadata.uid, names), what="both rows")
        await team.report(names[0], node=names[0])
        await team.report(names[1], node=names[1])
        await equal(lambda: team.condition("Ready"), ("True", "Formed"))
        begin = desk.now
        await team.add_claim("late", uid=domain.metadata.uid)
        other = await team.create_domain("other")
        await equal(lambda: team.condition("Ready", name="other"), ("True", "NoNodes"))
        assert [r.name for r in desk.requests(since=begin) if r.subresource == "status"] == [other.metadata.name]
        assert await team.condition("Ready") == ("True", "Formed")


async def test_the_clique_can_be_found_by_the_agents_of_its_fabric(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(2)
    async with desk.controller():
        domain = await form(desk, team, names)
        (clique,) = await team.cliques(domain.metadata.uid)
        assert clique.metadata.name == f"{domain.metadata.uid}.{RACK}.0"
        assert clique.metadata.labels[CLIQUE_LABEL] == f"{RACK}.0"
        assert clique.metadata.annotations["interlace.dev/domain-name"] == "cd"
        assert clique.metadata.annotations["interlace.dev/domain-namespace"] == team.namespace


async def test_a_domain_over_two_cliques_has_a_node_map_for_each(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(2) + await desk.nodes(2, clique=f"{RACK}.1")
    async with desk.controller():
        domain = await form(desk, team, names)
        cliques = {c.metadata.labels[CLIQUE_LABEL]: c for c in await team.cliques(domain.metadata.uid)}
        assert {key: [row.index for row in c.daemons] for key, c in cliques.items()} == {
            f"{RACK}.0": [0, 1],
            f"{RACK}.1": [0, 1],
        }
        assert await team.condition("WithinOneClique") == ("False", "SeveralCliques")


async def test_nodes_without_a_fabric_need_no_clique(desk: Desk) -> None:
    team = await desk.team()
    (name,) = await desk.nodes(1, clique="")
    async with desk.controller():
        domain = await team.create_domain()
        await team.add_claim("a", uid=domain.metadata.uid, node=name)
        await team.report("a", node=name)
        await equal(lambda: team.condition("Ready"), ("True", "Formed"))
        assert await team.cliques(domain.metadata.uid) == []
        assert [(n.name, n.index) for n in (await team.status()).nodes] == [(name, -1)]


async def test_a_node_that_leaves_frees_its_row_and_one_that_returns_gets_its_index(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(3)
    (newcomer,) = await desk.nodes(1)
    async with desk.controller():
        domain = await form(desk, team, names)
        uid = domain.metadata.uid
        before = await team.rows(uid)
        await team.remove_claim(f"cd-{names[1]}")
        await until(lambda: has_rows(team, uid, [names[0], names[2]]), what="the node's departure")
        await until(lambda: told_about(team, "cd", ("Normal", "NodesLeft")), what="an event")
        await team.add_claim("new", uid=uid, node=newcomer)
        await team.add_claim("again", uid=uid, node=names[1])
        await until(lambda: has_rows(team, uid, [*names, newcomer]), what="all rows")
        after = await team.rows(uid)
        assert {name: after[name] for name in names} == before
        assert after[newcomer][0] == 3


async def test_an_emptied_clique_is_deleted_and_the_domain_is_ready_again(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(3)
    async with desk.controller():
        domain = await form(desk, team, names)
        begin = desk.now
        for name in names:
            await team.remove_claim(f"cd-{name}")
        await equal(lambda: team.cliques(domain.metadata.uid), [])
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        writes = [r for r in desk.requests(since=begin) if r.resource == "computedomaincliques"]
        assert len(writes) <= 2


async def test_a_new_imex_host_pod_brings_its_address_into_the_row(desk: Desk) -> None:
    team = await desk.team()
    (name,) = await desk.nodes(1)
    async with desk.controller():
        domain = await form(desk, team, [name])
        uid = domain.metadata.uid
        old = await team.rows(uid)
        await desk.client.delete(Pod, f"imex-{name}", namespace=NAMESPACE, grace_period=0)
        await add_host(desk.client, f"imex-{name}-new", node=name, address="10.200.0.1")
        await equal(lambda: team.rows(uid), {name: (old[name][0], "10.200.0.1")})


async def test_a_domain_is_deleted_while_its_claims_are_still_held(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(2)
    async with desk.controller():
        domain = await form(desk, team, names)
        await desk.client.delete(ComputeDomain, "cd", namespace=team.namespace)
        await until(lambda: gone(team), what="the end of the domain")
        assert await team.cliques(domain.metadata.uid) == []
        claims = (await desk.client.list(ResourceClaim, namespace=team.namespace)).items
        assert len(claims) == 2

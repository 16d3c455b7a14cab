"""The controller against the embedded API server, with its own ServiceAccount and its real rights."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from interlace.api.computedomain import (
    CLIQUE_LABEL,
    DOMAIN_LABEL,
    DRIVER,
    FINALIZER,
    ComputeDomain,
    ComputeDomainClique,
    ComputeDomainStatus,
)
from interlace.api.core import Event, Pod
from interlace.api.crd import crds
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from interlace.domains import reconciler, retry, templates, waiting
from interlace.domains.controller import serve
from interlace.domains.retry import RETRY_ANNOTATION, WAITING_FOR_KUBELET
from interlace.domains.settings import ControllerSettings
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.kube.untyped import apply_manifest, untyped
from interlace.manifests import NAMESPACE, manifests
from interlace.sim.plane import AuditRecord, Plane
from tests.waiting import eventually

RACK = "c0ffee00-0000-4000-8000-0000000000ff"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:interlace-controller"
GROUPS = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
WITHIN = 15.0
UNTYPED_DOMAIN = untyped(ComputeDomain.resource)


class Team:
    """A namespace, and what users, scheduler, kubelet and agents would do in it."""

    def __init__(self, client: Client, *, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def create_domain(
        self, name: str = "cd", *, num_nodes: int = 0, template: str = "", isolation: str = "Domain"
    ) -> ComputeDomain:
        channel = {"resourceClaimTemplate": {"name": template or f"{name}-rct"}}
        spec = {"numNodes": num_nodes, "channel": channel, "isolation": isolation}
        return await self.client.create(
            ComputeDomain, {"metadata": {"name": name}, "spec": spec}, namespace=self.namespace
        )

    async def domain(self, name: str = "cd") -> ComputeDomain:
        return await self.client.get(ComputeDomain, name, namespace=self.namespace)

    async def status(self, name: str = "cd") -> ComputeDomainStatus:
        return (await self.domain(name)).status or ComputeDomainStatus()

    async def condition(self, type_: str, *, name: str = "cd") -> tuple[str, str]:
        found = {c.type: c for c in (await self.status(name)).conditions}
        return (found[type_].status, found[type_].reason) if type_ in found else ("", "")

    async def cliques(self, uid: str) -> list[ComputeDomainClique]:
        labels = f"{DOMAIN_LABEL}={uid}"
        return (await self.client.list(ComputeDomainClique, namespace=NAMESPACE, labels=labels)).items

    async def rows(self, uid: str) -> dict[str, tuple[int, str]]:
        return {r.node_name: (r.index, r.ip_address) for c in await self.cliques(uid) for r in c.daemons}

    async def templates(self) -> list[ResourceClaimTemplate]:
        return (await self.client.list(ResourceClaimTemplate, namespace=self.namespace)).items

    async def add_claim(self, name: str, *, uid: str, node: str = "") -> None:
        """A claim of Pod ``name``, as the template makes it; allocated if ``node`` is given."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"{name}-uid"}
        request = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
        await self.client.create(
            ResourceClaim,
            {
                "metadata": {"name": name, "labels": {DOMAIN_LABEL: uid}, "ownerReferences": [owner]},
                "spec": {"devices": {"requests": [request]}},
            },
            namespace=self.namespace,
        )
        if node:
            await self.allocate(name, node=node)

    async def allocate(self, name: str, *, node: str) -> None:
        result = {"request": "channel", "driver": DRIVER, "pool": node, "device": "channel-0"}
        await self._claim_status(name, {"allocation": {"devices": {"results": [result]}}})

    async def create_pod(self, name: str) -> Pod:
        containers = [{"name": "c", "image": "docker.io/library/busybox:1.37"}]
        body = {"metadata": {"name": name}, "spec": {"containers": containers}}
        return await self.client.create(Pod, body, namespace=self.namespace)

    async def reserve(self, name: str, *, pod: Pod) -> None:
        consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
        await self._claim_status(name, {"reservedFor": [consumer]})

    async def report(
        self, name: str, *, node: str, status: str = "True", reason: str = "Prepared", message: str = ""
    ) -> None:
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        device = {"driver": DRIVER, "pool": node, "device": "channel-0", "conditions": [condition]}
        await self._claim_status(name, {"devices": [device]})

    async def remove_claim(self, name: str) -> None:
        await self.client.delete(ResourceClaim, name, namespace=self.namespace)

    async def _claim_status(self, name: str, status: dict[str, Any]) -> None:
        await self.client.merge_patch(
            ResourceClaim, name, {"status": status}, namespace=self.namespace, subresource="status"
        )

    async def events(self, about: str) -> list[tuple[str, str]]:
        listing = await self.client.list(Event, namespace=self.namespace)
        return [(e.type, e.reason) for e in listing.items if e.involved_object.name == about]


async def add_node(client: Client, name: str, *, address: str, clique: str | None = f"{RACK}.0") -> None:
    """The slice of the agent and the imex-host Pod of a node."""
    if clique is not None:
        attributes = {"type": {"string": "channel"}, "id": {"int": 0}, "clique": {"string": clique}}
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": [{"name": "channel-0"}]}
        spec["devices"] = [{"name": "channel-0", "attributes": {**attributes, "domain": {"string": ""}}}]
        await client.create(ResourceSlice, {"metadata": {"name": f"{name}-slice"}, "spec": spec})
    await add_host(client, f"imex-{name}", node=name, address=address)


async def add_host(client: Client, name: str, *, node: str, address: str) -> None:
    labels = {"app.kubernetes.io/component": "imex-host"}
    containers = [{"name": "imex-host", "image": "ghcr.io/interlace/interlace:0"}]
    await client.create(
        Pod,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": node, "serviceAccountName": "interlace-imex-host", "containers": containers},
        },
        namespace=NAMESPACE,
    )
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    await client.merge_patch(Pod, name, {"status": status}, namespace=NAMESPACE, subresource="status")


class Desk:
    """One control plane with our objects installed."""

    def __init__(self, plane: Plane, client: Client) -> None:
        self.plane = plane
        self.client = client
        self._numbers = iter(range(1000))

    async def team(self) -> Team:
        name = f"team-{next(self._numbers)}"
        account = {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        for manifest in ({"kind": "Namespace", "metadata": {"name": name}}, account):
            await apply_manifest(self.client, {"apiVersion": "v1", **manifest}, manager="test")
        return Team(self.client, namespace=name)

    async def nodes(self, count: int, **options: Any) -> list[str]:
        """So many new nodes."""
        first = next(self._numbers)
        names = [f"node-{first:03d}-{i:02d}" for i in range(count)]
        for i, name in enumerate(names):
            await add_node(self.client, name, address=f"10.{first}.0.{i + 1}", **options)
        return names

    @asynccontextmanager
    async def controller(self, **changes: Any) -> AsyncIterator[Callable[[], int]]:
        """A controller that leads; yields a function that gives its port. It runs until the block ends."""
        port = asyncio.get_running_loop().create_future()
        settings = ControllerSettings(
            **{
                "identity": f"controller-{next(self._numbers)}",
                "http_host": "127.0.0.1",
                "http_port": 0,
                "lease_duration": 2,
                "lease_renew_deadline": 1.5,
                "lease_retry_period": 0.2,
                **changes,
            }
        )
        config = self.plane.credentials(ACCOUNT, groups=GROUPS)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(serve(settings, config=config, on_listening=port.set_result))
            await port
            try:
                yield port.result
            finally:
                task.cancel()

    def requests(self, *, since: int, agent: str = "interlace-controller") -> list[AuditRecord]:
        """What the controller asked for since then, watches and Leases apart."""
        return [
            record
            for record in self.plane.audit()[since:]
            if record.user_agent.startswith(agent) and record.verb != "watch" and record.resource != "leases"
        ]

    @property
    def now(self) -> int:
        return len(self.plane.audit())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(embedded_plane: Plane) -> AsyncIterator[Desk]:
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        for manifest in manifests():
            await apply_manifest(client, manifest, manager="test")
        yield Desk(embedded_plane, client)


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def tidy(desk: Desk) -> AsyncIterator[None]:
    """No domain, claim, template or clique is left for the next test."""
    yield
    for kind in (ComputeDomain, ResourceClaim, ResourceClaimTemplate, ComputeDomainClique):
        for found in (await desk.client.list(kind)).items:
            meta = found.metadata
            if meta.finalizers:
                patch = {"metadata": {"finalizers": None}}
                await desk.client.merge_patch(kind, meta.name, patch, namespace=meta.namespace)
            with contextlib.suppress(NotFound):
                await desk.client.delete(kind, meta.name, namespace=meta.namespace)


async def until(look: Callable[[], Awaitable[object]], *, what: str) -> None:
    await eventually(look, within=WITHIN, what=what)


async def equal(look: Callable[[], Awaitable[object]], expected: object) -> None:
    """Wait until ``look`` gives ``expected``."""

    async def same() -> bool:
        found = await look()
        assert found == expected
        return True

    await eventually(same, within=WITHIN)


async def form(desk: Desk, team: Team, names: list[str], *, cd: str = "cd") -> ComputeDomain:
    """A domain with a Ready channel on each of the nodes."""
    domain = await team.create_domain(cd)
    uid = domain.metadata.uid
    for name in names:
        await team.add_claim(f"{cd}-{name}", uid=uid)
    for name in names:
        await team.allocate(f"{cd}-{name}", node=name)
    await until(lambda: _has_rows(team, uid, names), what="a row for each node")
    for name in names:
        await team.report(f"{cd}-{name}", node=name)
    await equal(lambda: team.condition("Ready", name=cd), ("True", "Formed"))
    return domain


async def _has_rows(team: Team, uid: str, names: list[str]) -> bool:
    return set(await team.rows(uid)) == set(names)


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
        await until(lambda: _leads(desk), what="a leader")
        begin = desk.now
        domain = await form(desk, team, names)
        uid = domain.metadata.uid
        status = await team.status()
        assert (status.status, status.ready_nodes) == ("Ready", "18/18")
        assert sorted(node.index for node in status.nodes) == list(range(18))
        assert await team.condition("WithinOneClique") == ("True", "OneClique")
        await until(lambda: _told(team, "cd", ("Normal", "Formed")), what="an event")
        made = desk.requests(since=begin)
        assert len(made) <= 10, Counter((r.verb, r.resource, r.subresource) for r in made)
        assert not [r for r in made if r.verb in {"get", "list"}]
        assert not [r for r in made if r.code >= 400]

        begin = desk.now
        await desk.client.delete(ComputeDomain, "cd", namespace=team.namespace)
        await until(lambda: _gone(team), what="the end of the domain")
        assert await team.cliques(uid) == []
        assert await team.templates() == []
        made = desk.requests(since=begin)
        assert Counter((r.verb, r.resource, r.code) for r in made) == {
            ("delete", "resourceclaimtemplates", 200): 1,
            ("patch", "resourceclaimtemplates", 200): 1,
            ("delete", "computedomaincliques", 200): 1,
            ("patch", "computedomains", 200): 1,
        }


async def _leads(desk: Desk) -> bool:
    """The last of the six first lists of a leader has been answered."""
    watched = {r.resource for r in desk.plane.audit() if r.verb == "watch" and r.user_agent.startswith("interlace-con")}
    return {"computedomains", "resourceslices", "pods", "resourceclaims"} <= watched


async def _told(team: Team, about: str, event: tuple[str, str]) -> bool:
    return event in await team.events(about)


async def _gone(team: Team, name: str = "cd") -> bool:
    try:
        await team.domain(name)
    except NotFound:
        return True
    return False


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
        await until(lambda: _has_rows(team, uid, [names[0], names[2]]), what="the node's departure")
        await until(lambda: _told(team, "cd", ("Normal", "NodesLeft")), what="an event")
        await team.add_claim("new", uid=uid, node=newcomer)
        await team.add_claim("again", uid=uid, node=names[1])
        await until(lambda: _has_rows(team, uid, [*names, newcomer]), what="all rows")
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
        await until(lambda: _gone(team), what="the end of the domain")
        assert await team.cliques(domain.metadata.uid) == []
        claims = (await desk.client.list(ResourceClaim, namespace=team.namespace)).items
        assert len(claims) == 2


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
        await until(lambda: _told(team, "second", ("Warning", "TemplateNameTaken")), what="an event")
        await desk.client.delete(ComputeDomain, "second", namespace=team.namespace)
        await until(lambda: _gone(team, "second"), what="the end of the second domain")
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
            await until(lambda: _told(team, "cd", ("Warning", "TemplateRefused")), what="an event")
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
            await until(lambda: _told(team, "a", ("Warning", "WaitingForClique")), what="an event on the Pod")
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


async def test_a_domain_stored_without_spec_harms_nobody(desk: Desk) -> None:
    team = await desk.team()
    (lax, _) = crds()
    del lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"]
    await apply_manifest(desk.client, lax, manager="test")
    await desk.client.create(ComputeDomain, {"metadata": {"name": "bare"}}, namespace=team.namespace)
    await apply_manifest(desk.client, crds()[0], manager="test")
    async with desk.controller():
        await until(lambda: _told(team, "bare", ("Warning", "NoSpec")), what="an event")
        await team.create_domain()
        await equal(lambda: team.condition("Ready"), ("True", "NoNodes"))
        await desk.client.delete(ComputeDomain, "bare", namespace=team.namespace)
        await until(lambda: _gone(team, "bare"), what="the end of the domain without spec")


async def test_a_claim_in_another_namespace_makes_no_member_and_is_told(desk: Desk) -> None:
    home, other = await desk.team(), await desk.team()
    (name,) = await desk.nodes(1)
    async with desk.controller():
        domain = await home.create_domain()
        await other.add_claim("stranger", uid=domain.metadata.uid, node=name)
        await until(lambda: _told(other, "stranger", ("Warning", "ClaimInWrongNamespace")), what="an event")
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
        await until(lambda: _told(team, "lost", ("Warning", "WaitingForAllocation")), what="an event")
        await team.allocate("lost", node="node-without-anything")
        await equal(lambda: team.condition("Ready"), ("False", "NoAgent"))
        await add_node(desk.client, "node-without-anything", address="10.201.0.1")
        await equal(lambda: team.condition("Ready"), ("False", "WaitingForPrepare"))
        await team.report("lost", node="node-without-anything", status="False", reason="ImexStarting")
        await equal(lambda: team.condition("Ready"), ("False", "WaitingForImex"))
        await until(lambda: _told(team, "lost", ("Warning", "WaitingForImex")), what="an event")


async def test_a_clique_that_is_full_refuses_a_node_and_says_so(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(3)
    async with desk.controller(max_nodes=2):
        domain = await form(desk, team, names[:2])
        await team.add_claim("third", uid=domain.metadata.uid, node=names[2])
        await equal(lambda: team.condition("Ready"), ("False", "CliqueFull"))
        await until(lambda: _told(team, "third", ("Warning", "CliqueFull")), what="an event on the Pod")
        await until(lambda: _told(team, "cd", ("Warning", "CliqueFull")), what="an event on the domain")
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


async def test_the_next_leader_goes_on_where_the_last_one_stopped_and_repeats_nothing(desk: Desk) -> None:
    team = await desk.team()
    names = await desk.nodes(3)
    async with desk.controller():
        domain = await form(desk, team, names)
        await until(lambda: _told(team, "cd", ("Normal", "Formed")), what="an event")
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

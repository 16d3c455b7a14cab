"""Our client runtime against a server: requests, cache, leader election, events. Every test runs on both servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
import pytest_asyncio

from interlace.api.core import Event, Lease, ObjectReference, Pod
from interlace.api.meta import Resource
from interlace.kube.client import Client
from interlace.kube.election import Election
from interlace.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from interlace.kube.events import Recorder
from interlace.kube.informer import Informer
from interlace.kube.untyped import Discovery, Untyped, untyped
from tests.contract.space import ADMIN, Space, pod
from tests.waiting import eventually

ConfigMap = untyped(Resource("", "v1", "configmaps", "ConfigMap", True))
WITHIN = 10.0


@pytest_asyncio.fixture(loop_scope="module")
async def client(space: Space) -> AsyncIterator[Client]:
    """Our client, as an administrator."""
    user, groups = ADMIN
    config = space.plane.credentials(user, groups=groups)
    async with Client(config, user_agent="contract-client/1", qps=500, burst=500) as made:
        yield made


@asynccontextmanager
async def running(*jobs: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run these for the length of the block."""

    async def run(job: Callable[[], Awaitable[None]]) -> None:
        await job()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(job)) for job in jobs]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def keys(informer: Informer[Untyped]) -> set[str]:
    """Names in a cache, without what the platform puts into every namespace."""
    return {item.metadata.name for item in informer.items()} - {"kube-root-ca.crt"}


async def test_errors_have_the_class_that_says_what_to_do(space: Space, client: Client) -> None:
    ns = space.name
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "none", namespace=ns)
    made = await client.create(ConfigMap, {"metadata": {"name": "a"}, "data": {"k": "v"}}, namespace=ns)
    with pytest.raises(AlreadyExists):
        await client.create(ConfigMap, {"metadata": {"name": "a"}}, namespace=ns)
    await client.merge_patch(ConfigMap, "a", {"data": {"k": "w"}}, namespace=ns)
    with pytest.raises(Conflict):
        await client.replace(ConfigMap, "a", dict(made), namespace=ns)
    with pytest.raises(Invalid):
        await client.create(ConfigMap, {"metadata": {"name": "Not_A_Name"}}, namespace=ns)
    async with Client(space.plane.credentials("nobody-special"), user_agent="x") as stranger:
        with pytest.raises(Forbidden):
            await stranger.get(ConfigMap, "a", namespace=ns)


async def test_an_object_goes_through_all_writing_verbs(space: Space, client: Client) -> None:
    ns = space.name
    applied = await client.apply(
        ConfigMap,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}},
        name="m",
        namespace=ns,
        manager="one",
    )
    assert applied["data"] == {"a": "1"}
    await client.json_patch(ConfigMap, "m", [{"op": "add", "path": "/data/b", "value": "2"}], namespace=ns)
    await client.merge_patch(ConfigMap, "m", {"data": {"a": None}}, namespace=ns)
    found = await client.get(ConfigMap, "m", namespace=ns)
    assert found["data"] == {"b": "2"}
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "m", namespace=ns, uid="11111111-1111-1111-1111-111111111111")
    await client.delete(ConfigMap, "m", namespace=ns, uid=found.metadata.uid)
    with pytest.raises(NotFound):
        await client.delete(ConfigMap, "m", namespace=ns)


async def test_a_pod_is_evicted(space: Space, client: Client) -> None:
    await space.wire("POST", space.path("pods"), pod("p", nodeName=f"{space.name}-n"))
    await client.evict("p", namespace=space.name)
    assert (await client.get(Pod, "p", namespace=space.name)).metadata.deletion_timestamp


async def test_a_list_reads_all_pages(space: Space, client: Client) -> None:
    for number in range(7):
        await space.config_map(f"c{number}")
    listing = await client.list(ConfigMap, namespace=space.name, limit=3)
    assert {item.metadata.name for item in listing.items} >= {f"c{number}" for number in range(7)}
    assert int(listing.resource_version) > 0


async def test_a_cache_follows_additions_changes_and_deletions(space: Space, client: Client) -> None:
    await space.config_map("before")
    informer = Informer(client, ConfigMap, namespace=space.name)
    seen: list[tuple[str | None, str | None]] = []

    def note(old: Untyped | None, new: Untyped | None) -> None:
        seen.append((None if old is None else old.metadata.name, None if new is None else new.metadata.name))

    informer.on_change(note)
    async with running(informer.run):
        await asyncio.wait_for(informer.synced(), WITHIN)
        assert keys(informer) == {"before"}
        await space.config_map("after", data={"n": "1"})
        await eventually(lambda: "after" in keys(informer), within=WITHIN)
        await client.merge_patch(ConfigMap, "after", {"data": {"n": "2"}}, namespace=space.name)
        await eventually(
            lambda: (found := informer.get("after", space.name)) and found["data"]["n"] == "2", within=WITHIN
        )
        await client.delete(ConfigMap, "before", namespace=space.name)
        await eventually(lambda: keys(informer) == {"after"}, within=WITHIN)
    mine = [item for item in seen if "kube-root-ca.crt" not in item]
    assert mine == [(None, "before"), (None, "after"), ("after", "after"), ("before", None)]


async def test_the_same_name_with_a_new_uid_is_a_deletion_and_an_addition(space: Space, client: Client) -> None:
    informer = Informer(client, ConfigMap, namespace=space.name, fields="metadata.name=phoenix")
    seen: list[str] = []

    def note(old: Untyped | None, new: Untyped | None) -> None:
        seen.append("added" if old is None else "deleted" if new is None else "changed")

    informer.on_change(note)
    async with running(informer.run):
        await asyncio.wait_for(informer.synced(), WITHIN)
        await space.config_map("phoenix")
        await client.delete(ConfigMap, "phoenix", namespace=space.name)
        await space.config_map("phoenix")
        await eventually(lambda: len(seen) >= 3, within=WITHIN)
    assert seen == ["added", "deleted", "added"]


async def test_a_cache_can_hold_a_selection_with_an_index(space: Space, client: Client) -> None:
    for name, team in (("a", "red"), ("b", "blue"), ("c", "red")):
        await space.config_map(name, metadata={"labels": {"team": team, "here": "yes"}})
    await space.config_map("outside")
    informer = Informer(
        client,
        ConfigMap,
        namespace=space.name,
        labels="here=yes",
        indexes={"team": lambda obj: [obj.metadata.labels["team"]]},
    )
    async with running(informer.run):
        await asyncio.wait_for(informer.synced(), WITHIN)
        assert {obj.metadata.name for obj in informer.by("team", "red")} == {"a", "c"}
        assert len(informer) == 3
        await client.merge_patch(ConfigMap, "c", {"metadata": {"labels": {"team": "blue"}}}, namespace=space.name)
        await eventually(lambda: len(informer.by("team", "blue")) == 2, within=WITHIN)
        await client.merge_patch(ConfigMap, "c", {"metadata": {"labels": {"here": None}}}, namespace=space.name)
        await eventually(lambda: keys(informer) == {"a", "b"}, within=WITHIN)


async def test_a_cache_can_hold_metadata_alone(space: Space, client: Client) -> None:
    await space.config_map("slim", data={"big": "x" * 1000}, metadata={"labels": {"a": "b"}})
    informer = Informer(client, Pod, namespace=space.name, metadata_only=True)
    await space.wire("POST", space.path("pods"), pod("p"))
    async with running(informer.run):
        await asyncio.wait_for(informer.synced(), WITHIN)
        found = informer.get("p", space.name)
        assert found is not None
        assert found.metadata.uid
        assert found.spec.node_name == ""


async def test_leadership_goes_to_one_and_is_handed_over(space: Space) -> None:
    user, groups = ADMIN
    config = space.plane.credentials(user, groups=groups)
    leading: list[str] = []

    async with Client(config, user_agent="one") as first, Client(config, user_agent="two") as second:

        def candidate(client: Client, name: str) -> Callable[[], Awaitable[None]]:
            async def lead() -> None:
                leading.append(name)
                await asyncio.Event().wait()

            election = Election(
                client, namespace=space.name, name="lock", identity=name, duration=4, renew_deadline=3, retry=0.3
            )
            return lambda: election.lead(lead)

        async with running(candidate(first, "one")):
            await eventually(lambda: leading == ["one"], within=WITHIN)
            async with running(candidate(second, "two")):
                lease = await first.get(Lease, "lock", namespace=space.name)
                assert lease.spec.holder_identity == "one"
                assert leading == ["one"]
        async with running(candidate(second, "two")):
            await eventually(lambda: leading == ["one", "two"], within=WITHIN)


async def test_equal_events_are_one_object_with_a_count(space: Space, client: Client) -> None:
    made = await space.wire("POST", space.path("pods"), pod("p"))
    about = ObjectReference(
        api_version="v1", kind="Pod", namespace=space.name, name="p", uid=made.body["metadata"]["uid"]
    )
    recorder = Recorder(client, component="contract")
    for _ in range(2):
        recorder.event(about, reason="Tested", message="it works", warning=True)
    async with running(recorder.run):

        async def found() -> list[Event]:
            fields = "involvedObject.name=p,reason=Tested"
            return (await client.list(Event, namespace=space.name, fields=fields)).items

        events = await eventually(found, within=WITHIN)
    assert [(event.type, event.count, event.message) for event in events] == [("Warning", 2, "it works")]
    assert events[0].source.component == "contract"


async def test_discovery_resolves_kinds_by_name(client: Client) -> None:
    discovery = Discovery(client)
    resource = await discovery.resolve("resource.k8s.io/v1", "ResourceClaim")
    assert (resource.plural, resource.namespaced) == ("resourceclaims", True)
    listable = {f"{r.plural}.{r.group}" for r in await discovery.listable()}
    assert {"pods.", "deployments.apps", "leases.coordination.k8s.io"} <= listable


async def test_raw_values_reach_the_server_as_they_are(space: Space, client: Client) -> None:
    template = untyped(Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True))
    parameters = msgspec.Raw(b'{"b":1,"a":{"z":1,"y":2}}')
    spec = {
        "devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": "class.example.com"}}],
            "config": [{"requests": ["r"], "opaque": {"driver": "one.example.com", "parameters": parameters}}],
        }
    }
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}}
    await client.create(template, {**body, "spec": {"spec": spec}}, namespace=space.name)
    answer = await client.request("GET", f"{space.path('resourceclaimtemplates', api='/apis/resource.k8s.io/v1')}/t")
    assert bytes(parameters) in answer

"""Requests and watches against a server that answers well, badly, late or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from itertools import pairwise
from typing import Any, ClassVar

import msgspec
import pytest

from interlace.api.core import Lease, Node, Pod
from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.kube import credentials
from interlace.kube.client import Client
from interlace.kube.codec import WatchEvent
from interlace.kube.config import Config, ExecCredential, Impersonation
from interlace.kube.credentials import ExecStatus
from interlace.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    ConfigError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    Unreadable,
)
from interlace.kube.meters import Registry
from interlace.kube.metrics import Metrics
from tests.unit.kube.server import Server
from tests.unit.kube.support import PODS, cluster, now, running, wait_for
from tests.waiting import eventually

pytestmark = pytest.mark.looptime


class Strict(Struct, frozen=True):
    """A Pod that is not readable when it holds something else than text."""

    resource: ClassVar[Resource] = Pod.resource
    metadata: ObjectMeta = ObjectMeta()
    value: str = ""


async def test_an_object_is_created_read_patched_and_deleted() -> None:
    async with cluster() as (server, client):
        made = await client.create(Pod, {"metadata": {"name": "a"}, "spec": {"nodeName": "n"}}, namespace="x")
        assert made.spec.node_name == "n"
        patched = await client.merge_patch(Pod, "a", {"spec": {"nodeName": "m"}}, namespace="x")
        assert patched.spec.node_name == "m"
        assert (await client.get(Pod, "a", namespace="x")).metadata == patched.metadata
        await client.delete(Pod, "a", namespace="x", uid=made.metadata.uid)
        assert server.list(PODS) == []
        with pytest.raises(NotFound) as caught:
            await client.get(Pod, "a", namespace="x")
        assert caught.value.status == 404
        assert str(caught.value).startswith("GET /api/v1/namespaces/x/pods/a: ")


async def test_what_the_struct_does_not_know_is_named_on_the_wire_by_its_resource() -> None:
    async with cluster() as (server, client):
        await client.create(Pod, Pod(metadata=ObjectMeta(name="a")), namespace="x")
        assert server.asked[-1].body == b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}'


async def test_a_body_keeps_its_key_order_and_raw_parts_byte_for_byte() -> None:
    async with cluster() as (server, client):
        body = {"kind": "Pod", "metadata": {"name": "a"}, "spec": msgspec.Raw(b'{"z":1, "a":2}')}
        await client.create(Pod, body, namespace="x")
        expected = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"z":1, "a":2}}'
        assert server.asked[-1].body == expected


async def test_apply_names_manager_and_force_and_sends_the_apply_type() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        for force in (True, False):
            await client.apply(
                Pod, {"metadata": {"name": "a"}}, name="a", namespace="default", manager="me", force=force, dry_run=True
            )
            asked = server.asked[-1]
            assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
            expected = {"fieldManager": "me", "dryRun": "All"} | ({"force": "true"} if force else {})
            assert asked.query == expected


async def test_a_stale_precondition_is_a_conflict_and_a_second_creation_already_exists() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        with pytest.raises(Conflict):
            await client.merge_patch(Pod, "a", {"metadata": {"resourceVersion": "1"}}, namespace="default")
        with pytest.raises(Conflict):
            await client.delete(Pod, "a", namespace="default", uid="another")
        with pytest.raises(AlreadyExists):
            await client.create(Pod, {"metadata": {"name": "a"}}, namespace="default")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Expired),
        (418, ApiError),
        (422, Invalid),
        (500, ServerError),
        (503, ServerError),
    ],
)
async def test_each_status_has_its_error(status: int, kind: type[ApiError]) -> None:
    async with cluster() as (server, client):
        server.refuse(status)
        with pytest.raises(kind) as caught:
            await client.get(Pod, "a", namespace="x")
        assert type(caught.value) is kind
        assert caught.value.status == status


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_obeyed(status: int) -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        server.refuse(status, times=2, Retry_After="2")
        await client.get(Pod, "a", namespace="default")
        times = [asked.time for asked in server.asked]
        assert len(times) == 3
        assert all(later - earlier >= 2 for earlier, later in pairwise(times))


async def test_a_wait_longer_than_the_deadline_is_told_at_once() -> None:
    async with cluster() as (server, client):
        server.refuse(429, Retry_After="60")
        with pytest.raises(TooManyRequests) as caught:
            await client.get(Pod, "a", namespace="x")
        assert caught.value.retry_after == 60
        assert now() < 1


async def test_endless_429_ends_with_the_deadline() -> None:
    async with cluster() as (server, client):
        server.refuse(429, times=1000)
        with pytest.raises(TooManyRequests):
            await client.get(Pod, "a", namespace="x")
        assert 25 < now() <= 30
        assert len(server.asked) <= 31


@pytest.mark.parametrize(("status", "named"), [(429, "0"), (503, "0"), (429, "²")])
async def test_a_server_that_names_no_real_wait_is_not_asked_in_a_hot_loop(status: int, named: str) -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        server.refuse(status, times=5, Retry_After=named)
        await client.get(Pod, "a", namespace="default")
        assert all(later.time - earlier.time >= 1 for earlier, later in pairwise(server.asked))


async def test_an_eviction_that_a_budget_forbids_is_not_tried_again() -> None:
    async with cluster() as (server, client):
        server.refuse(429, times=2, Retry_After="1")
        with pytest.raises(TooManyRequests):
            await client.evict("a", namespace="x", uid="u")
        assert len(server.asked) == 1
        assert json.loads(server.asked[0].body)["deleteOptions"] == {"preconditions": {"uid": "u"}}


async def test_a_server_that_does_not_answer_is_unreachable_within_the_deadline() -> None:
    async with cluster() as (server, client):
        server.delay = 1000
        with pytest.raises(Unreachable, match="no answer within 30 s") as caught:
            await client.get(Pod, "a", namespace="x")
        assert caught.value.url == server.url
        assert now() == pytest.approx(30, abs=0.1)


async def test_a_server_that_is_not_there_is_unreachable_and_named() -> None:
    async with cluster() as (server, client):
        await server.away()
        with pytest.raises(Unreachable, match=f"cannot connect to {server.url}: Connection refused"):
            await client.list(Node)


async def test_a_lost_answer_is_unreachable_and_the_client_goes_on() -> None:
    async with cluster() as (server, client):
        server.lose_answers = 1
        with pytest.raises(Unreachable):
            await client.create(Pod, {"metadata": {"name": "a"}}, namespace="x")
        assert (await client.get(Pod, "a", namespace="x")).metadata.name == "a"


async def test_the_bucket_spreads_requests_after_the_burst() -> None:
    async with cluster(qps=10, burst=5) as (server, client):
        server.put(PODS, "a")
        await asyncio.gather(*(client.get(Pod, "a", namespace="default") for _ in range(25)))
        assert now() == pytest.approx(2.0, abs=0.01)


async def test_a_list_is_all_pages_at_one_version() -> None:
    async with cluster() as (server, client):
        for index in range(7):
            server.put(PODS, f"p{index}", labels={"odd": str(index % 2)})
        version = server.version
        listing = await client.list(Pod, limit=2)
        assert [pod.metadata.name for pod in listing.items] == [f"p{index}" for index in range(7)]
        assert listing.resource_version == str(version)
        assert len(server.asked) == 4
        odd = await client.list(Pod, namespace="default", labels="odd=1", limit=2)
        assert [pod.metadata.name for pod in odd.items] == ["p1", "p3", "p5"]


async def test_pages_that_expire_on_the_way_are_read_again_as_a_whole() -> None:
    async with cluster() as (server, client):
        for index in range(4):
            server.put(PODS, f"p{index}")
        server.expiring_pages = 1
        listing = await client.list(Pod, limit=2, resource_version="0")
        assert [pod.metadata.name for pod in listing.items] == ["new", *(f"p{index}" for index in range(4))]
        assert [asked.query for asked in server.asked] == [
            {"resourceVersion": "0", "limit": "2"},
            {"limit": "2", "continue": server.asked[1].query["continue"]},
            {},
        ]


async def test_no_items_may_be_null() -> None:
    async with cluster() as (_, client):
        assert (await client.list(Pod)).items == []


async def test_an_unreadable_object_does_not_hide_the_others() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "bad", value=7)
        server.put(PODS, "good", value="x")
        listing = await client.list(Strict)
        assert [each.metadata.name for each in listing.items] == ["good"]
        assert listing.unreadable == ["/api/v1/pods/bad: not readable as Pod: Expected `str`, got `int` - at `$.value`"]
        with pytest.raises(Unreadable, match="/api/v1/namespaces/default/pods/bad"):
            await client.get(Strict, "bad", namespace="default")
        events = await _first(client.watch(Strict, initial_events=True), 2)
        assert [(event.type, event.object.metadata.name) for event in events] == [
            ("UNREADABLE", "bad"),
            ("ADDED", "good"),
        ]


async def test_a_watch_tells_changes_bookmarks_and_the_end_of_the_initial_events() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a", labels={"x": "y"})
        seen: list[tuple[str, str, bool]] = []

        async def follow() -> None:
            async for event in client.watch(Pod, labels="x=y", initial_events=True):
                seen.append((event.type, event.object.metadata.name, event.initial_events_end))
                if len(seen) == 2:
                    server.put(PODS, "a", labels={"x": "y"}, spec={"nodeName": "n"})
                    server.put(PODS, "a", labels={"x": "z"})
                    server.bookmark()
                    server.end_watches()

        await follow()
        assert seen == [
            ("ADDED", "a", False),
            ("BOOKMARK", "", True),
            ("MODIFIED", "a", False),
            ("DELETED", "a", False),
            ("BOOKMARK", "", False),
        ]


async def test_a_large_object_in_many_small_pieces_is_one_event() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a", metadata={"annotations": {"big": "x" * 3_000_000}})
        (event,) = await _first(client.watch(Pod, initial_events=True), 1)
        assert len(event.object.metadata.annotations["big"]) == 3_000_000


@pytest.mark.parametrize("form", ["status", "event"])
async def test_an_expired_version_is_expired_in_both_forms(form: Any) -> None:
    async with cluster() as (server, client):
        server.expired = form
        server.put(PODS, "a")
        server.compact()
        with pytest.raises(Expired):
            await _first(client.watch(Pod, resource_version="100"), 1)


async def test_an_error_event_of_another_kind_raises_its_error() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        with pytest.raises(ServerError, match="WATCH /api/v1/pods"):
            await _follow(client, lambda: server.error(500, "InternalError"))


async def test_a_connection_cut_within_a_line_is_unreachable() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        with pytest.raises(Unreachable):
            await _follow(client, lambda: server.cut(mid_line=True))


async def test_a_silent_watch_is_unreachable_after_its_limit() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        with pytest.raises(Unreachable, match="nothing was received for 180 s"):
            await _follow(client, server.freeze)
        assert now() == pytest.approx(180, abs=1)


async def test_leaving_a_watch_closes_its_connection() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        await _first(client.watch(Pod, initial_events=True), 1)
        await eventually(lambda: not server.watchers, within=10)


async def test_a_cancelled_watch_closes_its_connection() -> None:
    async with cluster() as (server, client):

        async def follow() -> None:
            async for _ in client.watch(Pod, initial_events=True):
                pass

        async with running(follow()) as (task,):
            await eventually(lambda: bool(server.watchers), within=10)
            task.cancel()
            await wait_for(task)
            assert task.cancelled()
            await eventually(lambda: not server.watchers, within=10)


async def test_many_watches_leave_room_for_requests() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")

        async def follow() -> None:
            async for _ in client.watch(Pod, initial_events=True):
                pass

        async with running(*(follow() for _ in range(150))):
            await eventually(lambda: len(server.watchers) == 150, within=10)
            await client.get(Pod, "a", namespace="default")


async def test_metadata_alone_is_asked_for_and_read() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a", spec={"nodeName": "n"})
        (pod,) = (await client.list(Pod, metadata_only=True)).items
        assert (pod.metadata.name, pod.spec.node_name) == ("a", "")
        (event,) = await _first(client.watch(Pod, initial_events=True, metadata_only=True), 1)
        assert (event.object.metadata.name, event.object.spec.node_name) == ("a", "")


async def test_names_cannot_leave_their_place_in_the_path() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        with pytest.raises(NotFound):
            await client.get(Pod, "../pods/a?x=y", namespace="default")
        with pytest.raises(ValueError, match="a Pod needs a name"):
            await client.get(Pod, "", namespace="default")


async def test_a_refused_token_is_read_again_from_its_file_and_the_request_repeated_once(tmp_path: Any) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    async with Server() as server, Client(Config(server=server.url, token_file=token), user_agent="t") as client:
        server.put(PODS, "a")
        server.token = "old"
        await client.get(Pod, "a", namespace="default")
        server.token = "new"
        token.write_text("new\n")
        await client.get(Pod, "a", namespace="default")
        server.token = "newer"
        with pytest.raises(Unauthorized):
            await client.get(Pod, "a", namespace="default")
        assert len(server.asked) == 4, "the same token is not sent twice"


async def test_a_watch_also_reads_a_refused_token_again(tmp_path: Any) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    async with Server() as server, Client(Config(server=server.url, token_file=token), user_agent="t") as client:
        server.put(PODS, "a")
        server.token = "old"
        await client.list(Pod)
        server.token = "new"
        token.write_text("new")
        assert len(await _first(client.watch(Pod, initial_events=True), 1)) == 1


async def test_a_login_that_takes_longer_than_a_request_may_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    logins = iter(("old", "new"))

    async def log_in(*_: Any, **__: Any) -> ExecStatus:  # a person at a browser
        await asyncio.sleep(90)
        return ExecStatus(token=next(logins))

    monkeypatch.setattr(credentials, "run_plugin", log_in)
    async with (
        Server() as server,
        Client(Config(server=server.url, exec=ExecCredential(command="login")), user_agent="t", timeout=30) as client,
    ):
        server.put(PODS, "a")
        server.token = "new"
        await client.get(Pod, "a", namespace="default")
        assert [asked.headers["Authorization"] for asked in server.asked] == ["Bearer old", "Bearer new"]
        server.delay = 1000
        before = now()
        with pytest.raises(Unreachable, match="no answer within 30 s"):
            await client.get(Pod, "a", namespace="default")
        assert now() - before == pytest.approx(30, abs=0.1)


async def test_who_is_impersonated_stands_in_the_headers() -> None:
    who = Impersonation(user="jane", groups=("a", "b"), uid="7", extra={"scope/x": ("view",)})
    async with (
        Server() as server,
        Client(Config(server=server.url, impersonate=who, username="u", password="p"), user_agent="me/1") as client,
    ):
        await client.list(Pod)
        headers = server.asked[0].headers
        assert headers["Impersonate-User"] == "jane"
        assert headers["Impersonate-Uid"] == "7"
        assert headers["Impersonate-Extra-scope%2Fx"] == "view"
        assert headers["Authorization"] == "Basic dTpw"
        assert headers["User-Agent"] == "me/1"


async def test_requests_are_counted_by_resource_and_code() -> None:
    registry = Registry()
    async with Server() as server, Client(server.config, user_agent="t", metrics=Metrics(registry)) as client:
        server.put(PODS, "a")
        await client.get(Pod, "a", namespace="default")
        await client.list(Lease)
        with pytest.raises(NotFound):
            await client.evict("b", namespace="default")
    counted = {
        (sample.labels["method"], sample.labels["resource"], sample.labels["code"]): sample.value
        for metric in registry.families()
        for sample in metric.samples
        if sample.name == "interlace_kube_requests_total"
    }
    assert counted == {
        ("GET", "pods", "200"): 1,
        ("GET", "leases", "200"): 1,
        ("POST", "pods/eviction", "404"): 1,
    }


async def test_a_proxy_of_an_unknown_kind_is_refused() -> None:
    config = Config(server="https://x", proxy_url="socks5://me:secret@y:1")
    with pytest.raises(ConfigError, match="socks5") as caught:
        Client(config, user_agent="t")
    assert "secret" not in f"{caught.value}{config}"


async def test_a_client_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="async context manager"):
        await Client(Config(server="http://127.0.0.1:1"), user_agent="t").list(Pod)


async def _first(stream: Any, count: int) -> list[WatchEvent[Any]]:
    events: list[WatchEvent[Any]] = []
    async with aclosing(stream):
        async for event in stream:
            events.append(event)
            if len(events) == count:
                break
    return events


async def _follow(client: Client, act: Callable[[], object]) -> None:
    """Watch Pods and call ``act`` at each event."""
    async for _ in client.watch(Pod, initial_events=True):
        act()

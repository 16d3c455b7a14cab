"""A cache that comes to equal the server again, whatever the wire does. Virtual time, real sockets."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from interlace.api.core import Pod
from interlace.api.meta import Resource
from interlace.kube.client import Client
from interlace.kube.errors import Unreachable
from interlace.kube.informer import Informer
from interlace.kube.untyped import untyped
from tests.unit.kube.server import Server
from tests.unit.kube.support import PODS, cluster, now, running, wait_for

pytestmark = pytest.mark.looptime

Told = list[tuple[str | None, str | None]]


def follow(client: Client, **options: Any) -> tuple[Informer[Pod], Told]:
    """An informer of Pods, and what it tells: names with the last digits of their uids."""
    informer = Informer(client, Pod, **options)
    told: Told = []

    def name(pod: Pod | None) -> str | None:
        return f"{pod.metadata.name}/{pod.metadata.uid.removeprefix('uid-')}" if pod is not None else None

    informer.on_change(lambda old, new: told.append((name(old), name(new))))
    return informer, told


def cached(informer: Informer[Pod]) -> list[str]:
    return sorted(pod.metadata.name for pod in informer.items())


async def settle(server: Server, informer: Informer[Any]) -> None:
    """Wait until the cache has reached the server's version."""
    await informer.reached(str(server.version), timeout=600)


async def test_the_first_list_is_one_watch_with_initial_events() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        informer, told = follow(client)
        assert not informer.has_synced
        async with running(informer.run()):
            await informer.synced()
            assert cached(informer) == ["a"]
            assert told == [(None, "a/101")]
            assert informer.problem is None
            assert len(informer) == 1
            assert informer.get("a", "default") is not None
        assert [asked.query.get("sendInitialEvents") for asked in server.asked] == ["true"]
        assert informer.problem == "stopped"


@pytest.mark.parametrize("form", ["refused", "ignored"])
async def test_a_server_without_initial_events_is_listed_by_pages(form: Literal["refused", "ignored"]) -> None:
    async with cluster() as (server, client):
        server.watch_list = form
        server.put(PODS, "a")
        informer, told = follow(client)
        async with running(informer.run()):
            await informer.synced()
            server.put(PODS, "b")
            await settle(server, informer)
        assert told == [(None, "a/101"), (None, "b/102")]
        lists = [asked for asked in server.asked if "watch" not in asked.query]
        assert [asked.query.get("resourceVersion") for asked in lists] == ["0"]


async def test_after_an_expired_version_the_newest_is_listed() -> None:
    async with cluster() as (server, client):
        server.watch_list = "refused"
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            server.end_watches()
            server.put(PODS, "a")
            server.compact()
            await settle(server, informer)
        lists = [asked for asked in server.asked if "watch" not in asked.query]
        assert [asked.query.get("resourceVersion") for asked in lists] == ["0", None]


@pytest.mark.parametrize("form", ["status", "event"])
async def test_a_deletion_in_the_gap_of_an_expired_version_is_told(form: Literal["status", "event"]) -> None:
    async with cluster() as (server, client):
        server.expired = form
        server.put(PODS, "a")
        server.put(PODS, "b")
        informer, told = follow(client, indexes={"all": lambda pod: ["pods"]})
        async with running(informer.run()):
            await informer.synced()
            told.clear()
            server.end_watches()
            server.remove(PODS, "a")
            server.compact()
            await settle(server, informer)
            assert told == [("a/101", None)]
            assert [pod.metadata.name for pod in informer.by("all", "pods")] == ["b"]


async def test_a_replacement_in_the_gap_is_a_deletion_and_an_addition() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        informer, told = follow(client)
        async with running(informer.run()):
            await informer.synced()
            server.end_watches()
            server.replace(PODS, "a")
            server.compact()
            await settle(server, informer)
        assert told[1:] == [("a/101", None), (None, "a/103")]


async def test_a_bookmark_whose_version_expired_leads_to_a_new_list() -> None:
    async with cluster() as (server, client):
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            server.version += 50  # other kinds move on
            server.bookmark()
            await settle(server, informer)
            server.put(PODS, "a")
            server.remove(PODS, "a")
            server.put(PODS, "b")
            server.compact()
            server.cut()
            await settle(server, informer)
            assert cached(informer) == ["b"]


async def test_a_bookmark_spares_the_list() -> None:
    async with cluster() as (server, client):
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            server.version += 50
            server.compact()
            server.bookmark()
            await settle(server, informer)
            server.end_watches()
            server.put(PODS, "a")
            await settle(server, informer)
        assert [asked.query.get("sendInitialEvents") for asked in server.asked] == ["true", None]


async def test_a_connection_cut_within_a_line_resumes_where_it_was() -> None:
    async with cluster() as (server, client):
        informer, told = follow(client)
        async with running(informer.run()):
            await informer.synced()
            version = str(server.version)
            server.cut(mid_line=True)
            server.put(PODS, "a")
            await settle(server, informer)
        assert told == [(None, "a/101")]
        assert server.asked[-1].query["resourceVersion"] == version


async def test_a_half_open_connection_is_left_after_its_limit() -> None:
    async with cluster() as (server, client):
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            server.freeze()
            server.put(PODS, "a")
            await settle(server, informer)
            assert 179 < now() < 182


async def test_a_server_away_for_a_while_is_found_again_without_haste() -> None:
    async with cluster() as (server, client):
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            await server.away()
            server.put(PODS, "a")
            await asyncio.sleep(60)
            assert "cannot connect" in (informer.problem or "")
            asked = len(server.asked)
            await server.back()
            await settle(server, informer)
            assert now() < 60 + 31
            assert len(server.asked) == asked + 1
            assert informer.problem is None, "a quiet watch that stands is no problem"


async def test_a_throttling_server_is_obeyed() -> None:
    async with cluster() as (server, client):
        server.refuse(429, Retry_After="7")
        server.put(PODS, "a")
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            assert 7 <= now() < 8


async def test_a_missing_right_is_a_problem_that_can_end() -> None:
    async with cluster() as (server, client):
        server.refuse(403, times=5, reason="Forbidden")
        informer, _ = follow(client)
        async with running(informer.run()):
            await asyncio.sleep(0.1)
            assert "Forbidden" in (informer.problem or "")
            await informer.synced()
            assert informer.problem is None
            assert len(server.asked) == 6


@pytest.mark.parametrize("doom", ["expire", "end"])
async def test_watches_that_never_last_do_not_make_it_spin(doom: Literal["expire", "end"]) -> None:
    async with cluster() as (server, client):
        server.doom = doom
        server.put(PODS, "a")
        informer, told = follow(client)
        async with running(informer.run()):
            await asyncio.sleep(600)
            assert told == [(None, "a/101")]
        assert 20 < len(server.asked) < 50


async def test_relists_of_a_fleet_are_spread() -> None:
    async with cluster() as (server, client):
        informers = [Informer(client, Pod) for _ in range(40)]
        async with running(*(informer.run() for informer in informers)):
            for informer in informers:
                await informer.synced()
            await asyncio.sleep(20)
            before = len(server.asked)
            server.error(410, "Expired")
            await asyncio.sleep(5)
            times = sorted(asked.time for asked in server.asked[before:])
        assert len(times) == 40
        assert times[-1] - times[0] > 0.5


async def test_an_object_that_leaves_the_selection_is_deleted() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a", labels={"x": "1"})
        server.put(PODS, "b", labels={"x": "2"})
        server.put(PODS, "a", namespace="other", labels={"x": "1"})
        informer, told = follow(client, namespace="default", labels="x=1")
        async with running(informer.run()):
            await informer.synced()
            assert cached(informer) == ["a"]
            written = server.put(PODS, "a", labels={"x": "2"})
            await informer.reached(written["metadata"]["resourceVersion"])
            assert cached(informer) == []
        assert told == [(None, "a/101"), ("a/101", None)]


async def test_metadata_alone_is_cached_without_the_rest() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a", labels={"x": "1"}, spec={"nodeName": "n"})
        informer, _ = follow(client, metadata_only=True)
        async with running(informer.run()):
            await informer.synced()
            (pod,) = informer.items()
        assert (pod.metadata.labels, pod.spec.node_name) == ({"x": "1"}, "")


async def test_untyped_objects_are_dicts_in_the_cache() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a", anything={"at": ["all"]})
        informer = Informer(client, untyped(Resource("", "v1", "pods", "Pod", namespaced=True)))
        async with running(informer.run()):
            await informer.synced()
            server.put(PODS, "b")
            await settle(server, informer)
            assert {each["metadata"]["name"] for each in informer.items()} == {"a", "b"}
            one = informer.get("a", "default")
            assert one is not None
            assert one["anything"] == {"at": ["all"]}


async def test_an_object_that_became_unreadable_is_no_longer_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        informer, told = follow(client)
        async with running(informer.run()):
            await informer.synced()
            server.put(PODS, "a", spec=7)
            await settle(server, informer)
            assert cached(informer) == []
            server.put(PODS, "a", spec={})
            await settle(server, informer)
            assert cached(informer) == ["a"]
        assert told == [(None, "a/101"), ("a/101", None), (None, "a/101")]
        assert [vars(entry)["fields"]["object"] for entry in caplog.records if entry.message == "object left out"] == [
            "default/a"
        ]


async def test_a_handler_that_raises_stops_neither_the_others_nor_the_informer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with cluster() as (server, client):
        informer = Informer(client, Pod)
        seen: list[int] = []

        def bad(_old: Pod | None, _new: Pod | None) -> None:
            raise RuntimeError("no")

        informer.on_change(bad)
        informer.on_change(lambda _old, _new: seen.append(len(informer)))
        async with running(informer.run()):
            await informer.synced()
            server.put(PODS, "a")
            server.put(PODS, "b")
            await settle(server, informer)
        assert seen == [1, 2]
        assert [entry.message for entry in caplog.records] == ["a change handler failed"] * 2


async def test_a_handler_that_comes_late_is_told_what_is_there() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            late: list[str] = []
            informer.on_change(lambda _old, new: late.append(new.metadata.name if new else ""))
            assert late == ["a"]


async def test_a_handler_sees_the_whole_of_a_new_list() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        server.put(PODS, "b")
        informer = Informer(client, Pod)
        sizes: list[int] = []
        informer.on_change(lambda _old, _new: sizes.append(len(informer)))
        async with running(informer.run()):
            await informer.synced()
        assert sizes == [2, 2]


async def test_own_writes_are_waited_for() -> None:
    async with cluster() as (server, client):
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            made = await client.create(Pod, {"metadata": {"name": "a"}}, namespace="default")
            await informer.reached(made.metadata.resource_version)
            assert cached(informer) == ["a"]
            await informer.reached(made.metadata.resource_version)
            with pytest.raises(Unreachable, match=f"version {server.version + 1} not seen within 5 s"):
                await informer.reached(str(server.version + 1))


async def test_cancelling_ends_the_watch_and_keeps_the_cache() -> None:
    async with cluster() as (server, client):
        server.put(PODS, "a")
        informer, _ = follow(client)
        async with running(informer.run()) as (task,):
            await informer.synced()
            task.cancel()
            await wait_for(task)
            assert task.cancelled()
            await asyncio.sleep(1)
            assert not server.watchers
        assert cached(informer) == ["a"]
        async with running(informer.run()):
            server.put(PODS, "b")
            await settle(server, informer)
            assert cached(informer) == ["a", "b"]


async def test_an_informer_runs_once_at_a_time() -> None:
    async with cluster() as (_, client):
        informer, _ = follow(client)
        async with running(informer.run()):
            await informer.synced()
            with pytest.raises(RuntimeError, match="runs already"):
                await informer.run()

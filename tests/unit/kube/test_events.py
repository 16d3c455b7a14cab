"""Events: aggregated, bounded, and never the caller's trouble. Virtual time, real requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlace.api.core import ObjectReference
from interlace.kube.client import Client
from interlace.kube.events import BURST, GATHER, REFILL, WAITING, Recorder
from interlace.kube.meters import Registry
from interlace.kube.metrics import Metrics
from tests.unit.kube.server import Server
from tests.unit.kube.support import EVENTS, cluster, now, running, wait_for

pytestmark = pytest.mark.looptime

POD = ObjectReference(api_version="v1", kind="Pod", namespace="default", name="a", uid="u")
NODE = ObjectReference(api_version="v1", kind="Node", name="n", uid="v")


def recorder(client: Client, **options: Any) -> Recorder:
    return Recorder(client, component="interlace-controller", **options)


def written(server: Server) -> list[tuple[str, str, int]]:
    return sorted((event["reason"], event["message"], event["count"]) for event in server.list(EVENTS))


def methods(server: Server) -> list[str]:
    return [asked.method for asked in server.asked]


async def test_an_event_stands_beside_its_object_and_says_who_reports() -> None:
    async with cluster() as (server, client):
        events = recorder(client, host="node-1")
        async with running(events.run()):
            events.event(POD, reason="Waiting", message="waits for x", warning=True)
            events.event(NODE, reason="Ready", message="is ready")
            await asyncio.sleep(1)
        node, pod = server.list(EVENTS)[::-1]
        if pod["reason"] != "Waiting":
            node, pod = pod, node
        assert pod["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "a",
            "uid": "u",
        }
        assert (pod["type"], pod["reason"], pod["message"], pod["count"]) == ("Warning", "Waiting", "waits for x", 1)
        assert pod["source"] == {"component": "interlace-controller", "host": "node-1"}
        assert (pod["reportingComponent"], pod["reportingInstance"]) == ("interlace-controller", "node-1")
        assert pod["firstTimestamp"] == pod["lastTimestamp"]
        assert pod["metadata"]["name"].startswith("a.")
        assert (node["type"], node["metadata"]["namespace"]) == ("Normal", "default")


async def test_an_event_about_a_cluster_scoped_object_goes_where_the_component_says() -> None:
    async with cluster() as (server, client):
        events = recorder(client, namespace_for_cluster_scoped="interlace-system")
        async with running(events.run()):
            events.event(NODE, reason="Ready", message="is ready")
            await asyncio.sleep(1)
        assert server.asked[0].path == "/api/v1/namespaces/interlace-system/events"


async def test_repetitions_are_gathered_into_a_count() -> None:
    async with cluster() as (server, client):
        events = recorder(client)
        async with running(events.run()):
            for _ in range(50):
                events.event(POD, reason="Waiting", message="waits")
                await asyncio.sleep(1)
            await asyncio.sleep(2 * GATHER)
        assert written(server) == [("Waiting", "waits", 50)]
        assert methods(server) == ["POST"] + ["PATCH"] * 5


async def test_repetitions_before_the_first_write_are_in_its_count() -> None:
    async with cluster() as (server, client):
        events = recorder(client)
        for _ in range(3):
            events.event(POD, reason="Waiting", message="waits")
        async with running(events.run()):
            await asyncio.sleep(100)
        assert written(server) == [("Waiting", "waits", 3)]
        assert methods(server) == ["POST"]


async def test_other_reasons_messages_types_and_objects_are_other_events() -> None:
    async with cluster() as (server, client):
        events = recorder(client)
        async with running(events.run()):
            events.event(POD, reason="A", message="x")
            events.event(POD, reason="B", message="x")
            events.event(POD, reason="A", message="y")
            events.event(POD, reason="A", message="x", warning=True)
            events.event(NODE, reason="A", message="x")
            await asyncio.sleep(100)
        assert len(server.list(EVENTS)) == 5


async def test_an_event_that_expired_on_the_server_begins_anew() -> None:
    async with cluster() as (server, client):
        events = recorder(client)
        async with running(events.run()):
            events.event(POD, reason="Waiting", message="waits")
            await asyncio.sleep(1)
            server.remove(EVENTS, server.list(EVENTS)[0]["metadata"]["name"])
            events.event(POD, reason="Waiting", message="waits")
            await asyncio.sleep(100)
        assert written(server) == [("Waiting", "waits", 1)]


async def test_about_one_object_a_burst_is_written_and_then_one_each_five_minutes() -> None:
    async with cluster() as (server, client):
        registry = Registry()
        events = recorder(client, metrics=Metrics(registry))
        async with running(events.run()):
            for index in range(100):
                events.event(POD, reason="Waiting", message=f"waits {index}")
            events.event(NODE, reason="Ready", message="others are not affected")
            await asyncio.sleep(10)
            assert len(server.list(EVENTS)) == BURST + 1
            assert registry.value("interlace_events_dropped_total") == 100 - BURST
            await asyncio.sleep(2 * REFILL)
            for index in range(10):
                events.event(POD, reason="Later", message=f"waits {index}")
            await asyncio.sleep(10)
        assert len(server.list(EVENTS)) == BURST + 1 + 2


async def test_a_server_that_is_away_for_a_while_gets_the_event_later() -> None:
    async with cluster() as (server, client):
        events = recorder(client)
        async with running(events.run()):
            server.refuse(500, times=2)
            events.event(POD, reason="Waiting", message="waits")
            events.event(POD, reason="Waiting", message="waits")
            await asyncio.sleep(100)
        assert written(server) == [("Waiting", "waits", 2)]


async def test_an_event_that_is_refused_is_dropped_and_later_ones_are_written() -> None:
    async with cluster() as (server, client):
        events = recorder(client)
        async with running(events.run()):
            server.refuse(403, reason="Forbidden")
            events.event(POD, reason="A", message="x")
            await asyncio.sleep(100)
            assert written(server) == []
            events.event(POD, reason="A", message="x")
            await asyncio.sleep(100)
        assert written(server) == [("A", "x", 1)]
        assert methods(server) == ["POST", "POST"]


async def test_a_server_that_stays_away_costs_a_few_attempts_and_no_memory() -> None:
    async with cluster() as (server, client):
        registry = Registry()
        events = recorder(client, metrics=Metrics(registry))
        server.refuse(500, times=10_000)
        async with running(events.run()):
            events.event(POD, reason="A", message="x")
            await asyncio.sleep(1000)
            assert len(server.asked) == 5
        assert registry.value("interlace_events_dropped_total") == 1


async def test_recording_never_waits_and_is_bounded() -> None:
    async with cluster() as (_, client):
        registry = Registry()
        events = recorder(client, metrics=Metrics(registry))
        for index in range(WAITING + 7):
            events.event(POD, reason="A", message=str(index))
        assert now() == 0
        assert registry.value("interlace_events_dropped_total") == 7


async def test_a_long_message_is_cut_to_what_the_server_takes() -> None:
    async with cluster() as (server, client):
        events = recorder(client)
        async with running(events.run()):
            events.event(POD, reason="A", message="x" * 5000)
            await asyncio.sleep(1)
        message = json.loads(server.asked[0].body)["message"]
        assert len(message) == 1024
        assert message.endswith("…")


async def test_a_cancelled_recorder_ends() -> None:
    async with cluster() as (server, client):
        server.delay = 1000
        events = recorder(client)
        async with running(events.run()) as (task,):
            events.event(POD, reason="A", message="x")
            await asyncio.sleep(1)
            task.cancel()
            await wait_for(task)
            assert task.cancelled()

"""The simulated cloud over HTTP: its header, its log, dropped connections, waiting, and its end."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import aiohttp
import pytest

from interlace.sim.gke import Durations, GkeServer, Kind
from interlace.sim.gke.server import Entry
from tests.unit.sim.gke.cloud import CLUSTERS, GLOBAL, REGION, cluster_body, pool_body
from tests.unit.sim.gke.served import served
from tests.waiting import eventually

NETWORK = {"name": "net", "autoCreateSubnetworks": False}


async def ask(fake: GkeServer, method: str, path: str, body: Any = None) -> tuple[int, Any, Any]:
    """Status, headers and body of an answer."""
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session,
        session.request(method, fake.url + path, json=body) as response,
    ):
        return response.status, response.headers, await response.json(content_type=None)


async def test_every_answer_says_that_it_is_simulated() -> None:
    async with served() as fake:
        for path in (f"{GLOBAL}/networks", f"{GLOBAL}/networks/none", "/elsewhere", CLUSTERS):
            _, headers, _ = await ask(fake, "GET", path)
            assert headers["x-interlace-simulated"] == "true"


async def test_a_body_without_end_is_refused() -> None:
    async with served() as fake, aiohttp.ClientSession() as session:
        async with session.post(f"{fake.url}{GLOBAL}/networks", data=io.BytesIO(b" " * 5_000_000)) as answer:
            assert (answer.status, answer.headers["x-interlace-simulated"]) == (413, "true")
        assert len(fake.log) == 0


async def test_waiting_for_an_operation_lasts_until_it_has_ended() -> None:
    async with served(latency=0.3) as fake:
        _, _, started = await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
        _, _, ended = await ask(fake, "POST", f"{GLOBAL}/operations/{started['name']}/wait")
        assert (started["status"], ended["status"]) == ("RUNNING", "DONE")
        assert fake.store.names("networks") == ["default", "net"]


async def test_who_waits_for_a_stuck_operation_learns_when_it_is_ended_by_hand() -> None:
    async with served() as fake:
        fake.faults.add(Kind.STUCK)
        _, _, started = await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
        wait = f"{GLOBAL}/operations/{started['name']}/wait"
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(ask(fake, "POST", wait))
            await eventually(lambda: len(fake.log) == 2, within=10)
            operation = fake.world.operations.find(started["name"])
            assert operation is not None
            fake.finish(operation)
        assert waiting.result()[2]["status"] == "DONE"


async def test_a_connection_dropped_before_the_change_leaves_nothing() -> None:
    async with served() as fake:
        fake.faults.add(Kind.DROPPED_BEFORE)
        with pytest.raises(aiohttp.ClientError):
            await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
        assert (fake.log.committed(), len(fake.log.mutations())) == ([], 1)
        assert (await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK))[0] == 200


async def test_a_connection_dropped_after_the_change_leaves_the_change() -> None:
    async with served() as fake:
        fake.faults.add(Kind.DROPPED_AFTER)
        with pytest.raises(aiohttp.ClientError):
            await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
        assert [(entry.dropped, entry.status) for entry in fake.log.committed()] == [(True, 0)]
        assert (await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK))[0] == 409


async def test_hooks_see_a_request_before_and_after_its_change() -> None:
    seen: list[tuple[str, bool]] = []

    async def before(entry: Entry) -> None:
        seen.append(("before", entry.answer is None))

    async def after(entry: Entry) -> None:
        seen.append(("after", entry.answer is None))

    async with served() as fake:
        fake.before, fake.after = before, after
        await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
    assert seen == [("before", True), ("after", False)]


async def test_the_log_tells_changes_from_questions() -> None:
    async with served() as fake:
        _, _, started = await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
        await ask(fake, "POST", f"{GLOBAL}/operations/{started['name']}/wait")
        await ask(fake, "POST", "/v3/projects/example-project:testIamPermissions", {"permissions": []})
        await ask(fake, "GET", f"{GLOBAL}/networks")
        assert [entry.line for entry in fake.log.mutations()] == [f"POST {GLOBAL}/networks"]
        assert fake.log.mutations()[0].request.body == NETWORK
        assert len(fake.log.lines()) == 4


async def test_durations_differ_by_kind() -> None:
    async with served(latency=Durations(compute=0, cluster=1000)) as fake:
        await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
        _, _, started = await ask(fake, "POST", CLUSTERS, {"cluster": cluster_body()})
        assert (await ask(fake, "GET", f"{GLOBAL}/networks/net"))[0] == 200
        path = f"{CLUSTERS.rpartition('/')[0]}/operations/{started['name']}"
        assert (await ask(fake, "GET", path))[2]["status"] == "RUNNING"


async def test_the_end_does_not_wait_for_who_waits() -> None:
    async with served(latency=1000) as fake:
        _, _, started = await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(ask(fake, "POST", f"{GLOBAL}/operations/{started['name']}/wait"))
            await eventually(lambda: len(fake.log) == 2, within=10)
            waiting.cancel()
    assert waiting.cancelled()


async def test_eight_networks_at_once_take_as_long_as_one() -> None:
    """In order: all requests come before the first operation ends, whatever the speed of the machine."""
    async with served(latency=1000) as fake:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(ask(fake, "POST", f"{GLOBAL}/networks", NETWORK | {"name": f"n{i}"}))
                for i in range(8)
            ]
        assert {task.result()[0] for task in tasks} == {200}
        running = fake.world.operations.running()
        assert len(running) == 8
        for operation in running:
            fake.finish(operation)
        assert len(fake.store.names("networks")) == 9


async def test_a_subnetwork_of_a_network_whose_operation_fails_is_refused() -> None:
    async with served() as fake:
        fake.world.catalog.global_quotas["NETWORKS"] = 1
        _, _, started = await ask(fake, "POST", f"{GLOBAL}/networks", NETWORK)
        _, _, ended = await ask(fake, "POST", f"{GLOBAL}/operations/{started['name']}/wait")
        assert ended["httpErrorStatusCode"] == 403
        body = {"name": "s", "network": "global/networks/net", "ipCidrRange": "192.168.1.0/24"}
        assert (await ask(fake, "POST", f"{REGION}/subnetworks", body))[0] == 404


async def test_a_whole_cluster_is_made_by_many_requests_at_once() -> None:
    async with served(latency=0.05) as fake:

        async def make(path: str, body: dict[str, Any]) -> None:
            status, _, started = await ask(fake, "POST", path, body)
            assert status == 200, started
            scope = path.rpartition("/")[0]
            _, _, ended = await ask(fake, "POST", f"{scope}/operations/{started['name']}/wait")
            assert (ended["status"], "error" in ended) == ("DONE", False)

        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(make(f"{GLOBAL}/networks", NETWORK | {"name": f"net-{number}"}))
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                where = {"network": f"global/networks/net-{number}"}
                subnet = {"name": f"sub-{number}", "ipCidrRange": f"192.168.{number}.0/24"}
                rule = {"name": f"rule-{number}", "allowed": [{"IPProtocol": "icmp"}]}
                group.create_task(make(f"{REGION}/subnetworks", subnet | where))
                group.create_task(make(f"{GLOBAL}/firewalls", rule | where))
        assert (await ask(fake, "POST", CLUSTERS, {"cluster": cluster_body()}))[0] == 200
        await eventually(lambda: fake.store.names("clusters") and not fake.world.operations.running(), within=30)
        pairs = [{"network": f"net-{number}", "subnetwork": f"sub-{number}"} for number in range(8)]
        pool = pool_body(networkConfig={"additionalNodeNetworkConfigs": pairs})
        status, _, _ = await ask(fake, "POST", f"{CLUSTERS}/example-cluster/nodePools", {"nodePool": pool})
        assert status == 200
        await eventually(lambda: len(fake.store.made()) == 8 * 3 + 1 + 2 + 4, within=30)

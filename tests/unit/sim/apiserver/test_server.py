"""What only the embedded server can be asked to do: misbehave, forget, stop and start."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
import yaml

from interlace.sim.apiserver import ApiServer
from interlace.sim.apiserver.errors import ApiFault
from tests.contract.space import Space, a_space, domain, our_kinds, pod
from tests.contract.wire import MERGE, Wire, admin

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with ApiServer(state_dir=tmp_path, history=20, bookmark_every=0.1) as running:
        yield running


@pytest_asyncio.fixture
async def wire(server: ApiServer) -> AsyncIterator[Wire]:
    async with admin(server) as client:
        yield client


@pytest_asyncio.fixture
async def space(server: ApiServer) -> AsyncIterator[Space]:
    async with a_space(server) as made:
        yield made


async def test_history_is_bounded_and_what_fell_out_is_expired(wire: Wire) -> None:
    await wire("POST", MAPS, {"metadata": {"name": "a"}})
    version = (await wire("GET", MAPS)).version
    for number in range(25):
        await wire("PATCH", MAPS + "/a", {"data": {"n": str(number)}}, media=MERGE)
    async with wire.watch(MAPS, resourceVersion=version) as events:
        event = await events.next()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await events.ended() == b""
    listed = await wire("GET", MAPS, resourceVersion=version, resourceVersionMatch="Exact")
    assert (listed.code, listed.reason) == (410, "Expired")


async def test_a_page_of_a_forgotten_list_is_expired_and_offers_to_go_on(server: ApiServer, wire: Wire) -> None:
    for name in "abc":
        await wire("POST", MAPS, {"metadata": {"name": name}})
    token = (await wire("GET", MAPS, limit="1")).body["metadata"]["continue"]
    await wire("DELETE", MAPS + "/b")
    server.faults.expire_history()
    late = await wire("GET", MAPS, limit="1", continue_=token)
    assert (late.code, late.reason) == (410, "Expired")
    rest = await wire("GET", MAPS, continue_=late.body["metadata"]["continue"])
    assert [item["metadata"]["name"] for item in rest.body["items"]] == ["c"]


async def test_bookmarks_come_to_those_who_ask(wire: Wire) -> None:
    version = (await wire("GET", MAPS)).version
    async with wire.watch(MAPS, resourceVersion=version, allowWatchBookmarks="true") as events:
        bookmark = await events.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "ConfigMap"
        await wire("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
        later = await events.until(lambda e: e["object"]["metadata"]["resourceVersion"] != version)
        assert {event["type"] for event in later} == {"BOOKMARK"}


async def test_watches_can_be_cut_in_the_middle_of_a_line(server: ApiServer, wire: Wire) -> None:
    async with wire.watch(MAPS, resourceVersion="0") as events:
        await wire("POST", MAPS, {"metadata": {"name": "a"}})
        await events.next()
        assert server.faults.drop_watches("configmaps") == 1
        with pytest.raises(aiohttp.ClientPayloadError):
            await events.ended()
    assert not server.faults.watches


async def test_watches_can_be_told_that_they_expired(server: ApiServer, wire: Wire) -> None:
    async with wire.watch(MAPS, resourceVersion="0") as events:
        await wire("POST", MAPS, {"metadata": {"name": "a"}})
        await events.next()
        assert server.faults.expire_watches() == 1
        assert (await events.next())["object"]["code"] == 410


async def test_the_next_requests_can_be_throttled(server: ApiServer, wire: Wire) -> None:
    server.faults.throttle(2, retry_after=3, resource="configmaps")
    assert (await wire("GET", "/api/v1/namespaces/default/secrets")).code == 200
    for _ in range(2):
        reply = await wire("GET", MAPS)
        assert (reply.code, reply.reason, reply.headers["Retry-After"]) == (429, "TooManyRequests", "3")
    assert (await wire("GET", MAPS)).code == 200


async def test_the_server_can_go_away_and_come_back_as_it_was(server: ApiServer, wire: Wire) -> None:
    await wire("POST", MAPS, {"metadata": {"name": "a"}})
    url = server.url
    await server.refuse()
    with pytest.raises(aiohttp.ClientError):
        await wire("GET", MAPS)
    await server.accept()
    assert server.url == url
    assert (await wire("GET", MAPS + "/a")).code == 200


async def test_a_gone_client_leaves_no_watch_behind(server: ApiServer, wire: Wire) -> None:
    async with wire.watch(MAPS, resourceVersion="0") as events:
        await wire("POST", MAPS, {"metadata": {"name": "a"}})
        await events.next()
        assert len(server.faults.watches) == 1
    async with asyncio.timeout(5):
        while server.faults.watches:
            await wire("GET", MAPS)


async def test_after_its_block_nothing_listens(tmp_path: Path) -> None:
    async with ApiServer(state_dir=tmp_path) as server:
        port = int(server.url.rpartition(":")[2])
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection("127.0.0.1", port)


async def test_the_kubeconfig_is_private_and_leads_to_the_server(server: ApiServer) -> None:
    assert server.kubeconfig.stat().st_mode & 0o077 == 0
    content = yaml.safe_load(server.kubeconfig.read_text(encoding="utf-8"))
    cluster = content["clusters"][0]["cluster"]
    assert cluster["server"] == server.url
    assert b"BEGIN CERTIFICATE" in base64.b64decode(cluster["certificate-authority-data"])


async def test_an_eviction_of_another_uid_is_a_conflict(space: Space) -> None:
    await space.wire("POST", space.path("pods"), pod("p", nodeName="n"))
    options = {"preconditions": {"uid": "11111111-1111-1111-1111-111111111111"}}
    body = {"metadata": {"name": "p"}, "deleteOptions": options}
    reply = await space.wire("POST", space.path("pods") + "/p/eviction", body)
    assert (reply.code, reply.reason) == (409, "Conflict")


async def test_a_definition_with_objects_that_hold_on_goes_after_them(space: Space) -> None:
    await our_kinds(space.wire)
    body = domain("d")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    path = space.path("computedomains", api="/apis/resource.nvidia.com/v1beta1")
    assert (await space.wire("POST", path, body)).code == 201
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/computedomains.resource.nvidia.com"
    marked = await space.wire("DELETE", definition)
    assert marked.body["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    held = await space.wire("GET", path + "/d")
    assert held.body["metadata"]["deletionTimestamp"]
    await space.wire("PATCH", path + "/d", {"metadata": {"finalizers": None}}, media=MERGE)
    assert (await space.wire("GET", definition)).code == 404
    assert (await space.wire("GET", path)).code == 404


async def test_a_namespace_goes_when_its_finalizer_is_taken_off(space: Space) -> None:
    path = f"/api/v1/namespaces/{space.name}"
    marked = (await space.wire("DELETE", path)).body
    assert marked["spec"]["finalizers"] == ["kubernetes"]
    marked["spec"]["finalizers"] = []
    assert (await space.wire("PUT", path + "/finalize", marked)).code == 200
    assert (await space.wire("GET", path)).code == 404


async def test_bodies_have_a_limit(wire: Wire) -> None:
    reply = await wire("POST", MAPS, json.dumps({"metadata": {"name": "a"}, "data": {"k": "x" * 4_000_000}}).encode())
    assert (reply.code, reply.reason) == (413, "RequestEntityTooLarge")


async def test_an_unforeseen_failure_is_an_internal_error_and_audited(server: ApiServer, wire: Wire) -> None:
    def broken() -> ApiFault:
        raise RuntimeError("nobody thought of this")

    server.faults.refuse(1, broken)
    reply = await wire("GET", MAPS)
    assert (reply.code, reply.reason) == (500, "InternalError")
    assert "nobody thought of this" in reply.message
    assert (server.audit()[-1].code, server.audit()[-1].reason) == (500, "InternalError")

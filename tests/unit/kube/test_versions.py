"""Versions of ``resource.k8s.io``: which one is spoken, and objects there and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from interlace.api.core import Pod
from interlace.api.meta import Resource, Status, StatusDetails
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from interlace.kube.client import Client
from interlace.kube.codec import Codec
from interlace.kube.config import Config
from interlace.kube.errors import NotFound, UnknownKind, Unreadable
from interlace.kube.untyped import untyped
from interlace.kube.versions import Versions, from_newest, manifest_in, to_newest
from tests.unit.kube.support import cluster

KINDS = (ResourceClaim.resource, ResourceClaimTemplate.resource, ResourceSlice.resource)
WAYS = {"ResourceClaim": ("spec",), "ResourceClaimTemplate": ("spec", "spec"), "ResourceSlice": ("spec",)}

names = st.text("abc-", min_size=1, max_size=4)
values = st.recursive(
    st.booleans() | st.integers(1, 9) | st.text(min_size=1, max_size=4),
    lambda inner: st.lists(inner, min_size=1, max_size=2) | st.dictionaries(names, inner, min_size=1, max_size=2),
    max_leaves=4,
)
extras = st.dictionaries(st.sampled_from(["selectors", "count", "allocationMode", "tolerations"]), values, max_size=3)
requests = st.fixed_dictionaries(
    {"name": names, "exactly": extras.map(lambda more: {"deviceClassName": "c", **more})}
) | st.fixed_dictionaries({"name": names, "firstAvailable": st.lists(extras, min_size=1, max_size=2)})
devices = st.fixed_dictionaries(
    {"name": names}, optional={"attributes": values, "capacity": values, "nodeName": names, "taints": values}
)


def older(resource: Resource, version: str) -> Resource:
    return msgspec.structs.replace(resource, version=version)


def nested(resource: Resource, content: Any) -> dict[str, Any]:
    obj: Any = content
    for key in reversed(WAYS[resource.kind]):
        obj = {key: obj, "other": {"exactly": 1, "basic": 2}}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x"}, **obj}


@given(
    st.sampled_from(KINDS),
    st.sampled_from(["v1beta1", "v1beta2"]),
    st.lists(requests, max_size=3),
    st.lists(devices, max_size=3),
)
def test_there_and_back_is_the_same_object(
    resource: Resource, version: str, wanted: list[Any], offered: list[Any]
) -> None:
    slices = resource.kind == "ResourceSlice"
    obj = nested(resource, {"devices": offered if slices else {"requests": wanted, "config": [{"exactly": 1}]}})
    text = msgspec.json.encode(obj)
    asked = older(resource, version)
    there = from_newest(text, asked=asked)
    assert msgspec.json.decode(there)["apiVersion"] == f"resource.k8s.io/{version}"
    assert msgspec.json.decode(to_newest(there, asked=asked)) == obj


def test_a_request_of_v1beta1_has_its_fields_in_itself() -> None:
    wanted = {"name": "channel", "exactly": {"deviceClassName": "c", "count": 2}}
    asked = older(ResourceClaim.resource, "v1beta1")
    there = from_newest(msgspec.json.encode(nested(asked, {"devices": {"requests": [wanted]}})), asked=asked)
    (request,) = msgspec.json.decode(there)["spec"]["devices"]["requests"]
    assert request == {"name": "channel", "deviceClassName": "c", "count": 2}


def test_a_device_of_v1beta1_has_its_fields_below_basic() -> None:
    asked = older(ResourceSlice.resource, "v1beta1")
    offered = [{"name": "channel-0", "attributes": {"id": {"int": 0}}}, {"name": "bare"}]
    there = from_newest(msgspec.json.encode(nested(asked, {"devices": offered})), asked=asked)
    assert msgspec.json.decode(there)["spec"]["devices"] == [
        {"name": "channel-0", "basic": {"attributes": {"id": {"int": 0}}}},
        {"name": "bare", "basic": {}},
    ]


def test_an_empty_class_beside_alternatives_is_no_request_of_its_own() -> None:
    asked = older(ResourceClaim.resource, "v1beta1")
    flat = {"name": "r", "deviceClassName": "", "firstAvailable": [{"name": "a"}]}
    back = to_newest(msgspec.json.encode(nested(asked, {"devices": {"requests": [flat]}})), asked=asked)
    assert msgspec.json.decode(back)["spec"]["devices"]["requests"] == [
        {"name": "r", "firstAvailable": [{"name": "a"}]}
    ]


def test_opaque_parameters_are_not_decoded() -> None:
    asked = older(ResourceClaim.resource, "v1beta1")
    odd = b'{"b": 1e400,  "a":"\\u0041"}'
    config = b'"config":[{"opaque":{"driver":"d","parameters":' + odd + b"}}]"
    text = (
        b'{"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[{"name":"r","exactly":{"count":1}}],'
        + config
        + b"}}}"
    )
    there = from_newest(text, asked=asked)
    assert odd in there
    assert odd in to_newest(there, asked=asked)


def test_lists_and_events_are_converted_item_by_item() -> None:
    asked = older(ResourceSlice.resource, "v1beta1")
    item = {"metadata": {"name": "s"}, "spec": {"devices": [{"name": "d", "basic": {"capacity": {"x": 1}}}]}}
    page = {"apiVersion": asked.api_version, "kind": "ResourceSliceList", "items": [item, 7]}
    found = msgspec.json.decode(to_newest(msgspec.json.encode(page), asked=asked))
    assert found["apiVersion"] == "resource.k8s.io/v1"
    assert found["items"] == [
        {"metadata": {"name": "s"}, "spec": {"devices": [{"name": "d", "capacity": {"x": 1}}]}},
        7,
    ]
    line = {"type": "ADDED", "object": {"apiVersion": asked.api_version, **item}}
    event = msgspec.json.decode(to_newest(msgspec.json.encode(line), asked=asked))
    assert event["object"]["spec"]["devices"] == [{"name": "d", "capacity": {"x": 1}}]


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "Status", "apiVersion": "v1", "spec": {"devices": [{"name": "d", "basic": {}}]}},
        {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x"}},
    ],
    ids=lambda other: str(other["kind"]),
)
def test_what_is_not_of_the_group_stays(other: dict[str, Any]) -> None:
    text = msgspec.json.encode(other)
    assert to_newest(text, asked=older(ResourceSlice.resource, "v1beta1")) == text


@pytest.mark.parametrize("devices", ["null", "7", "{}", "[1,null]", '[{"basic":7,"name":"d"}]'])
def test_an_odd_object_is_left_to_whoever_reads_it(devices: str) -> None:
    asked = older(ResourceSlice.resource, "v1beta1")
    text = f'{{"apiVersion":"resource.k8s.io/v1beta1","spec":{{"devices":{devices}}}}}'.encode()
    assert json.loads(to_newest(text, asked=asked))["apiVersion"] == "resource.k8s.io/v1"


def test_one_odd_object_hides_no_other_on_an_older_server() -> None:
    asked = older(ResourceClaim.resource, "v1beta1")
    text = (
        b'{"apiVersion":"resource.k8s.io/v1beta1","items":[{"metadata":{"name":"odd"},"status":7},'
        b'{"metadata":{"name":"even"}}]}'
    )
    items, _, problems = Codec(ResourceClaim).page(text, asked=asked, path="/claims")
    assert [item.metadata.name for item in items] == ["even"]
    assert len(problems) == 1
    with pytest.raises(Unreadable):
        Codec(ResourceClaim).object(b"rubbish", asked=asked, path="/claims/x")


def test_a_manifest_for_an_older_cluster_has_its_shape() -> None:
    claim = nested(ResourceClaim.resource, {"devices": {"requests": [{"name": "r", "exactly": {"count": 1}}]}})
    older_claim = manifest_in("v1beta1", claim)
    assert older_claim["apiVersion"] == "resource.k8s.io/v1beta1"
    assert older_claim["spec"]["devices"]["requests"] == [{"name": "r", "count": 1}]
    assert manifest_in("v1", claim) is claim
    other = {"apiVersion": "apps/v1", "kind": "Deployment"}
    assert manifest_in("v1beta1", other) is other


def missing(*, named: bool) -> NotFound:
    details = StatusDetails(name="x" if named else "")
    return NotFound("not found", status=404, details=Status(details=details))


def answering(*versions: str) -> Versions:
    async def read(path: str) -> bytes:
        assert path == "/apis/resource.k8s.io"
        if not versions:
            raise missing(named=False)
        return msgspec.json.encode({"versions": [{"version": version} for version in versions]})

    return Versions(read)


@pytest.mark.parametrize(
    ("served", "spoken"),
    [
        (("v1", "v1beta2", "v1beta1"), "v1"),
        (("v1beta1", "v1beta2"), "v1beta2"),
        (("v1alpha3", "v1beta1"), "v1beta1"),
    ],
    ids=["1.34", "1.33", "1.32"],
)
async def test_the_newest_version_that_is_served_is_spoken(served: tuple[str, ...], spoken: str) -> None:
    assert await answering(*served).choose() == spoken


@pytest.mark.parametrize("served", [(), ("v1alpha3",)])
async def test_a_server_without_any_of_them_is_told_what_it_lacks(served: tuple[str, ...]) -> None:
    with pytest.raises(
        UnknownKind, match=r"Kubernetes 1\.34 or later.*--runtime-config=resource\.k8s\.io/v1beta1=true"
    ):
        await answering(*served).choose()


async def test_a_missing_object_is_no_reason_to_ask() -> None:
    versions, claim = answering(), ResourceClaim.resource
    assert not await versions.changed(claim, versions.of(claim), missing(named=True))


async def test_another_group_and_a_version_asked_for_by_name_stay() -> None:
    versions = answering("v1beta1")
    await versions.choose()
    explicit = older(ResourceClaim.resource, "v1beta2")
    assert versions.of(Pod.resource) is Pod.resource
    assert versions.of(explicit) is explicit
    assert not await versions.changed(explicit, explicit, missing(named=False))


async def test_many_that_miss_v1_at_once_ask_once() -> None:
    asked = 0

    async def read(_path: str) -> bytes:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return b'{"versions":[{"version":"v1beta1"}]}'

    versions, claim = Versions(read), ResourceClaim.resource
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(versions.changed(claim, claim, missing(named=False))) for _ in range(5)]
    assert [task.result() for task in tasks] == [True] * 5
    assert asked == 1


async def test_a_server_that_was_upgraded_is_spoken_to_in_v1() -> None:
    served = ["v1beta1"]

    async def read(_path: str) -> bytes:
        return msgspec.json.encode({"versions": [{"version": version} for version in served]})

    versions, claim = Versions(read), ResourceClaim.resource
    assert await versions.choose() == "v1beta1"
    served[:] = ["v1"]
    assert await versions.changed(claim, versions.of(claim), missing(named=False))
    assert versions.of(claim) == claim


async def test_a_modern_server_is_asked_nothing_more() -> None:
    async with cluster() as (server, client):
        server.put("apis/resource.k8s.io/v1/resourceslices", "one", namespace="")
        await client.list(ResourceSlice)
        assert [asked.path for asked in server.asked] == ["/apis/resource.k8s.io/v1/resourceslices"]


@asynccontextmanager
async def an_api(served: Callable[[int], str]) -> AsyncIterator[tuple[list[str], Client]]:
    """A server that serves one version, which may be another one at each request, and a client of it."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        version = served(len(asked))
        asked.append(request.path.removeprefix("/apis/resource.k8s.io"))
        if request.path == "/apis/resource.k8s.io":
            return web.json_response({"versions": [{"version": version}]})
        if not request.path.startswith(f"/apis/resource.k8s.io/{version}/"):
            return web.Response(status=404, text="404 page not found")
        head = {"apiVersion": f"resource.k8s.io/{version}", "metadata": {"name": "s", "resourceVersion": "1"}}
        if "watch" in request.query:
            return web.Response(text=json.dumps({"type": "ADDED", "object": head}) + "\n")
        return web.json_response({**head, "items": [{"metadata": {"name": "s"}}]})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        config = Config(server=f"http://127.0.0.1:{runner.addresses[0][1]}")
        async with Client(config, user_agent="test", qps=0) as client:
            yield asked, client
    finally:
        await runner.cleanup()


async def test_the_first_request_finds_the_version_and_the_second_uses_it() -> None:
    async with an_api(lambda _number: "v1beta1") as (asked, client):
        assert len((await client.list(ResourceSlice)).items) == 1
        async for event in client.watch(ResourceSlice):
            assert event.object.metadata.name == "s"
    slices = "resourceslices"
    assert asked == [f"/v1/{slices}", "", f"/v1beta1/{slices}", f"/v1beta1/{slices}"]


async def test_a_watch_finds_the_version_too() -> None:
    async with an_api(lambda _number: "v1beta2") as (asked, client):
        events = [event async for event in client.watch(ResourceSlice)]
    assert [event.type for event in events] == ["ADDED"]
    assert asked == ["/v1/resourceslices", "", "/v1beta2/resourceslices"]


async def test_servers_that_disagree_at_each_request_end_in_an_error() -> None:
    # The discovery that follows a refusal names another version than the next server serves.
    async with an_api(lambda number: "v1beta1" if number % 3 == 1 else "v1beta2") as (asked, client):
        with pytest.raises((NotFound, UnknownKind)):
            await client.list(ResourceSlice)
    assert len(asked) <= 6


def test_an_untyped_kind_of_v1_is_v1_on_every_server() -> None:
    kind = untyped(ResourceSlice.resource)
    text = b'{"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":[{"name":"d","basic":{"attributes":{}}}]}}'
    found = Codec(kind).object(text, asked=older(ResourceSlice.resource, "v1beta1"), path="/x")
    assert found["spec"]["devices"] == [{"name": "d", "attributes": {}}]

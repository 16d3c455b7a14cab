"""Kinds without a struct: found by discovery, kept as dicts, written by apply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from interlace.api.meta import Resource
from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.errors import NotFound, UnknownKind
from interlace.kube.untyped import Discovery, Untyped, apply_manifest, untyped

WIDGET = Resource("example.com", "v1", "widgets", "Widget", namespaced=True)


class Api:
    """Discovery documents, and an echo of every PATCH."""

    def __init__(self) -> None:
        self.groups: dict[str, list[dict[str, Any]]] = {
            "v1": [
                {"name": "namespaces", "kind": "Namespace", "namespaced": False, "verbs": ["get", "list"]},
                {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list"]},
                {"name": "pods/status", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
                {"name": "bindings", "kind": "Binding", "namespaced": True, "verbs": ["create"]},
            ],
            "example.com/v1": [{"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["list"]}],
        }
        self.asked: list[str] = []
        self.broken: set[str] = set()

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        if request.method == "PATCH":
            return web.json_response(json.loads(await request.read()) | {"metadata": {"name": "echo"}})
        if request.path == "/apis":
            groups = sorted({name.split("/")[0] for name in self.groups if "/" in name} | self.broken)
            return web.json_response({"groups": [{"versions": [{"groupVersion": f"{group}/v1"}]} for group in groups]})
        name = request.path.removeprefix("/apis/").removeprefix("/api/")
        if name.split("/")[0] in self.broken:
            return web.json_response({"kind": "Status", "code": 503}, status=503)
        if name not in self.groups:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        return web.json_response({"groupVersion": name, "resources": self.groups[name]})


@pytest.fixture
async def api() -> Any:
    """The API and a client of it."""
    there = Api()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", there.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with Client(Config(server=f"http://127.0.0.1:{runner.addresses[0][1]}"), user_agent="t") as client:
        yield there, client
    await runner.cleanup()


async def test_a_kind_is_found_once_and_remembered(api: tuple[Api, Client]) -> None:
    there, client = api
    discovery = Discovery(client)
    assert await discovery.resolve("example.com/v1", "Widget") == WIDGET
    assert await discovery.resolve("example.com/v1", "Widget") == WIDGET
    assert await discovery.resolve("v1", "Pod") == Resource("", "v1", "pods", "Pod", namespaced=True)
    assert there.asked == ["GET /apis/example.com/v1", "GET /api/v1"]


async def test_a_kind_whose_definition_is_new_is_found_at_the_next_question(api: tuple[Api, Client]) -> None:
    there, client = api
    discovery = Discovery(client)
    with pytest.raises(UnknownKind, match=r"example\.com/v1 has no such kind; install its CRD"):
        await discovery.resolve("example.com/v1", "Gadget")
    with pytest.raises(UnknownKind, match=r"the server does not serve other\.example/v1"):
        await discovery.resolve("other.example/v1", "Gadget")
    there.groups["example.com/v1"].append({"name": "gadgets", "kind": "Gadget"})
    found = await discovery.resolve("example.com/v1", "Gadget")
    assert (found.plural, found.namespaced) == ("gadgets", False)


async def test_everything_that_can_be_listed_is_listed_even_if_an_aggregated_api_is_away(
    api: tuple[Api, Client],
) -> None:
    there, client = api
    there.broken.add("away.example")
    found = await Discovery(client).listable()
    assert [resource.plural for resource in found] == ["namespaces", "pods", "widgets"]


async def test_a_manifest_is_applied_in_its_own_namespace_or_the_one_given(api: tuple[Api, Client]) -> None:
    there, client = api
    discovery = Discovery(client)
    manifest = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"b": 1, "a": [2]}}
    applied = await apply_manifest(client, manifest, manager="me", discovery=discovery)
    assert applied["spec"] == {"b": 1, "a": [2]}
    assert applied.metadata.name == "echo"
    await apply_manifest(client, manifest, manager="me", discovery=discovery, namespace="given")
    named = manifest | {"metadata": {"name": "w", "namespace": "own"}}
    await apply_manifest(client, named, manager="me", discovery=discovery, namespace="given")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    await apply_manifest(client, namespace, manager="me", discovery=discovery, namespace="given")
    assert [asked for asked in there.asked if asked.startswith("PATCH")] == [
        "PATCH /apis/example.com/v1/namespaces/default/widgets/w",
        "PATCH /apis/example.com/v1/namespaces/given/widgets/w",
        "PATCH /apis/example.com/v1/namespaces/own/widgets/w",
        "PATCH /api/v1/namespaces/n",
    ]


async def test_a_manifest_without_a_name_is_refused(api: tuple[Api, Client]) -> None:
    _, client = api
    with pytest.raises(ValueError, match=r"needs apiVersion, kind and metadata.name; this has \['kind'\]"):
        await apply_manifest(client, {"kind": "Widget"}, manager="me")


async def test_an_untyped_object_is_the_servers_json(api: tuple[Api, Client]) -> None:
    _, client = api
    kind = untyped(WIDGET)
    assert untyped(WIDGET) is kind
    with pytest.raises(NotFound):
        await client.get(kind, "w", namespace="x")
    one = kind({"metadata": {"name": "w", "labels": {"x": "y"}}, "spec": 1})
    assert isinstance(one, Untyped)
    assert (one.metadata.name, one.metadata.labels, one["spec"]) == ("w", {"x": "y"}, 1)
    assert kind({}).metadata.name == ""

"""``resource.k8s.io`` where the server does not serve v1: our client speaks v1beta2 or v1beta1, our code v1.

Every test runs on the embedded and on the real server, each serving one older version alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from interlace.api.computedomain import DRIVER
from interlace.api.resource import (
    GROUP,
    Device,
    DeviceAttribute,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.kube.untyped import apply_manifest, untyped
from interlace.kube.versions import NEWEST
from interlace.sim.apiserver import ApiServer
from interlace.sim.plane import Plane
from testbed.flags import Settings
from testbed.plane import ControlPlane
from tests.contract.wire import ADMIN

pytestmark = pytest.mark.asyncio(loop_scope="module")

WITHIN = 10.0
NS = "default"
AnyClaim = untyped(ResourceClaim.resource)
AnyTemplate = untyped(ResourceClaimTemplate.resource)
AnySlice = untyped(ResourceSlice.resource)

SPACED = msgspec.Raw(b'{"z": 1,  "a":{"deep":[ 1,2]}}')
COMPACT = msgspec.Raw(b'{"allocationMode":"Single","domainID":"u","kind":"K"}')
EXACTLY = {"deviceClassName": "c.example.com", "selectors": [{"cel": {"expression": 'device.driver == "d"'}}]}


@pytest.fixture(
    scope="module",
    params=[("embedded", "v1beta1"), ("embedded", "v1beta2"), ("real", "v1beta1"), ("real", "v1beta2")],
    ids="-".join,
)
def served(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Which server, and the one version that it serves."""
    server, version = request.param
    return server, version


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def older(served: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Plane]:
    """A server that serves one older version alone."""
    server, version = served
    folder = tmp_path_factory.mktemp("older")
    if server == "embedded":
        async with ApiServer(state_dir=folder, resource_version=version) as embedded:
            yield embedded
        return
    settings = Settings(
        scheduler=False,
        controller_manager=False,
        authorization=("RBAC",),
        runtime_config={f"{GROUP}/{NEWEST}": False, f"{GROUP}/{version}": True},
    )
    async with ControlPlane(state_dir=folder, settings=settings) as real:
        yield real


@pytest.fixture(scope="module")
def version(served: tuple[str, str]) -> str:
    """The version that is served."""
    return served[1]


@pytest_asyncio.fixture(loop_scope="module")
async def client(older: Plane) -> AsyncIterator[Client]:
    """Our client, as an administrator, that has not spoken to the server yet."""
    user, groups = ADMIN
    async with Client(older.credentials(user, groups=groups), user_agent="contract-client/1", qps=0) as made:
        yield made


def spec(*, parameters: msgspec.Raw, **request: Any) -> dict[str, Any]:
    """``spec`` of a claim."""
    return {
        "devices": {
            "requests": [{"name": "channel", **(request or {"exactly": EXACTLY})}],
            "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters}}],
        }
    }


def claim(name: str, *, parameters: msgspec.Raw = COMPACT, **request: Any) -> dict[str, Any]:
    """A claim as our code writes it."""
    return {"metadata": {"name": name, "namespace": NS}, "spec": spec(parameters=parameters, **request)}


async def test_the_first_request_finds_the_version_that_is_served(client: Client, version: str) -> None:
    assert client.versions.spoken == "v1"
    assert (await client.list(ResourceClaim, namespace="kube-system")).items == []
    assert client.versions.spoken == version


async def test_an_object_that_is_not_there_is_no_other_version(client: Client, version: str) -> None:
    with pytest.raises(NotFound):
        await client.get(ResourceClaim, "nobody", namespace=NS)
    assert client.versions.spoken == version


async def test_a_template_is_v1_on_the_way_there_and_back(client: Client, version: str) -> None:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "template", "namespace": NS},
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": spec(parameters=COMPACT)},
    }
    written = await client.create(AnyTemplate, body, namespace=NS)
    assert written["apiVersion"] == f"{GROUP}/v1"
    (request,) = written["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["selectors"] == EXACTLY["selectors"]
    assert await client.get(AnyTemplate, "template", namespace=NS) == written
    assert (await client.get(ResourceClaimTemplate, "template", namespace=NS)).spec.metadata.labels == {"a": "b"}
    raw = await client.request("GET", f"/apis/{GROUP}/{version}/namespaces/{NS}/resourceclaimtemplates/template")
    stored = msgspec.json.decode(raw)["spec"]["spec"]["devices"]["requests"][0]
    assert ("exactly" in stored) == (version != "v1beta1")


@pytest.mark.parametrize("parameters", [SPACED, COMPACT], ids=["spaced", "compact"])
async def test_opaque_parameters_stay_byte_for_byte(client: Client, parameters: msgspec.Raw) -> None:
    name = f"bytes-{len(bytes(parameters))}"
    await client.create(ResourceClaim, claim(name, parameters=parameters), namespace=NS)
    written = await client.get(ResourceClaim, name, namespace=NS)
    (config,) = written.spec.devices.config
    assert config.opaque is not None
    shown = bytes(config.opaque.parameters)
    assert msgspec.json.decode(shown) == msgspec.json.decode(parameters)
    if parameters is COMPACT:
        assert shown == bytes(COMPACT)


async def test_alternatives_of_a_request_keep_their_shape(client: Client) -> None:
    wanted = [{"name": "one", "deviceClassName": "a.example.com"}, {"name": "two", "deviceClassName": "b.example.com"}]
    await client.create(ResourceClaim, claim("alternatives", firstAvailable=wanted), namespace=NS)
    (request,) = (await client.get(AnyClaim, "alternatives", namespace=NS))["spec"]["devices"]["requests"]
    assert [(item["name"], item["deviceClassName"]) for item in request["firstAvailable"]] == [
        ("one", "a.example.com"),
        ("two", "b.example.com"),
    ]
    assert "exactly" not in request


async def test_a_report_reaches_an_allocated_claim(client: Client) -> None:
    made = await client.create(AnyClaim, claim("reported"), namespace=NS)
    node = "tray-1"
    allocation = {
        "devices": {
            "results": [{"request": "channel", "driver": DRIVER, "pool": node, "device": "channel-0"}],
            "config": [
                {
                    "source": "FromClaim",
                    "requests": ["channel"],
                    "opaque": {"driver": DRIVER, "parameters": COMPACT},
                }
            ],
        }
    }
    await client.merge_patch(
        ResourceClaim, "reported", {"status": {"allocation": allocation}}, namespace=NS, subresource="status"
    )
    entry = {"driver": DRIVER, "pool": node, "device": "channel-0", "data": {"index": 1}}
    answer = await client.apply(
        ResourceClaim,
        {"metadata": {"name": "reported", "uid": made["metadata"]["uid"]}, "status": {"devices": [entry]}},
        name="reported",
        namespace=NS,
        manager="agent",
        subresource="status",
    )
    assert [device.device for device in answer.status.devices] == ["channel-0"]
    assert answer.status.allocation is not None
    (config,) = answer.status.allocation.devices.config
    assert config.opaque is not None
    assert bytes(config.opaque.parameters) == bytes(COMPACT)


async def test_a_slice_is_watched_as_it_was_published(client: Client) -> None:
    devices = [
        Device(name="channel-0", attributes={"type": DeviceAttribute(string="channel"), "id": DeviceAttribute(int_=0)})
    ]
    wanted = ResourceSliceSpec(
        driver=DRIVER,
        node_name="tray-1",
        pool=ResourcePool(name="tray-1", generation=1, resource_slice_count=1),
        devices=devices,
    )
    listed = await client.list(ResourceSlice, fields=f"spec.driver={DRIVER}")
    await client.apply(ResourceSlice, {"metadata": {"name": "tray-1"}, "spec": wanted}, name="tray-1", manager="agent")
    stream = client.watch(ResourceSlice, fields=f"spec.driver={DRIVER}", resource_version=listed.resource_version)
    async with asyncio.timeout(WITHIN), aclosing(stream) as events:
        event = await anext(events)
    assert (event.type, event.object.metadata.name) == ("ADDED", "tray-1")
    assert event.object.spec == wanted
    (found,) = (await client.list(ResourceSlice, fields=f"spec.driver={DRIVER}")).items
    assert found.spec == wanted
    (whole,) = (await client.list(AnySlice, fields=f"spec.driver={DRIVER}")).items
    assert whole["spec"]["devices"][0]["attributes"]["type"] == {"string": "channel"}


async def test_a_manifest_of_v1_can_be_applied(client: Client, version: str) -> None:
    manifest = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "class.example.com"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "d"'}}]},
    }
    applied = await apply_manifest(client, manifest, manager="person")
    assert applied["apiVersion"] == f"{GROUP}/v1"
    assert client.versions.spoken == version

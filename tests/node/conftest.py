"""Real nodes as fixtures; a world lives as long as a test module, and ends with it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlace.api.meta import Resource
from interlace.kube.untyped import untyped
from tests.holding import hold
from tests.node.world import WITHIN, Parts, World, make_parts, run_world
from tests.waiting import eventually

_NAMESPACE = untyped(Resource("", "v1", "namespaces", "Namespace", False))
_ACCOUNT = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))
_numbers = itertools.count()


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """Images and NVML, made once a run."""
    return asyncio.run(make_parts(tmp_path_factory.mktemp("parts")))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two_nodes(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Two real nodes in one NVLink partition, Interlace installed."""
    async with hold(run_world(tmp_path_factory.mktemp("two"), names=("node1", "node2"), parts=parts)) as world:
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One real node, Interlace installed."""
    async with hold(run_world(tmp_path_factory.mktemp("one"), names=("node1",), parts=parts)) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own in the world that it uses; deleted with all that is in it."""
    (world,) = (request.getfixturevalue(name) for name in ("two_nodes", "node") if name in request.fixturenames)
    name = f"team-{next(_numbers)}"
    await world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def account() -> bool:
        return bool((await world.client.list(_ACCOUNT, namespace=name)).items)

    await eventually(account, within=WITHIN, what=f"ServiceAccount of {name}")
    yield name
    await world.client.delete(_NAMESPACE, name)

    async def gone() -> bool:
        return name not in [each["metadata"]["name"] for each in (await world.client.list(_NAMESPACE)).items]

    await eventually(gone, within=WITHIN, every=0.1, what=f"the end of namespace {name}")

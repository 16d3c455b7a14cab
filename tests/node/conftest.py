"""Real nodes as fixtures.

Two nodes live as long as the module that uses them, for what is measured there. One node lives as long as the run,
since making it takes longer than most tests do; whoever changes it puts it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.holding import hold
from tests.node.world import Parts, World, make_parts, run_namespace, run_world


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """Images and NVML, made once a run."""
    return asyncio.run(make_parts(tmp_path_factory.mktemp("parts")))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def two_nodes(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Two real nodes in one NVLink partition, Interlace installed."""
    async with hold(run_world(tmp_path_factory.mktemp("two"), names=("node1", "node2"), parts=parts)) as world:
        yield world


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def node(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One real node, Interlace installed."""
    async with hold(run_world(tmp_path_factory.mktemp("one"), names=("node1",), parts=parts)) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own in the world that it uses; deleted with all that is in it."""
    (world,) = (request.getfixturevalue(name) for name in ("two_nodes", "node") if name in request.fixturenames)
    async with hold(run_namespace(world)) as name:
        yield name

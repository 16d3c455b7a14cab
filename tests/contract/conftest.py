"""Fixtures of the contract suite: every test that takes them runs on the embedded and on the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from interlace.sim.plane import Plane
from tests.contract.space import Space, a_space


@pytest_asyncio.fixture(loop_scope="module")
async def space(plane: Plane) -> AsyncIterator[Space]:
    """A namespace of the test's own."""
    async with a_space(plane) as made:
        yield made

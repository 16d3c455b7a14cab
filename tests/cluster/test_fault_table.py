"""The fault table: each row that is cheap enough to be played every time; ``make faults`` plays all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bench.faults.beds import Ground, run_ground
from bench.faults.row import Bed, Row
from bench.faults.runner import play
from bench.faults.table import ROWS
from tests.holding import hold

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(600),
    # the hostile tenant sends fields of 1 MB on purpose
    pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"),
]

OUTAGE = 10.0
"""Seconds for which something is away."""
MANY = 150
"""Random objects a kind."""
BEDS: tuple[Bed, ...] = ("embedded", "real")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BEDS)
async def ground(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    async with hold(run_ground(request.param)) as running:
        yield running


@pytest.mark.parametrize(
    ("ground", "row"),
    [pytest.param(row.bed, row, id=row.name) for row in sorted(ROWS, key=lambda row: row.bed) if row.cheap],
    indirect=["ground"],
    scope="module",
)
async def test_what_a_fault_leaves_behind_needs_nobody(ground: Ground, row: Row) -> None:
    result = await play(row, ground, outage=OUTAGE, many=MANY)
    assert result.failure == ""
    assert result.seconds is not None

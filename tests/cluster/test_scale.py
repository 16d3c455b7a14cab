"""Scale in short: churn with the checker that watches the long one, and one more domain among others."""

from __future__ import annotations

import pytest

from bench.scale import crowd, shaken
from bench.scale.page import MEMORY, churn_table, crowd_table

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

SEED = 20261130


def _tell(line: str) -> None:
    print(line)  # noqa: T201


async def test_churn_breaks_no_invariant_and_leaves_nothing_behind() -> None:
    found = await shaken.churn("embedded", nodes=12, jobs=3, seconds=20, seed=SEED, tell=_tell)
    _tell("\n" + churn_table(found))
    assert found.breaches == []
    assert found.leaks == []
    assert found.prepared > 0
    assert found.maps > 0
    assert {trend.what: trend.flat for trend in found.trends if trend.unit == "tasks"}.keys() == {
        "controller: tasks",
        "agents, imex-hosts and hollow nodes: tasks",
    }


async def test_one_more_domain_forms_among_others_and_rest_costs_nothing() -> None:
    found = await crowd.measure("embedded", nodes=60, domains=6, runs=1, idle=3, wide=False, warm=False, tell=_tell)
    _tell("\n" + crowd_table(found))
    alone, empty, full = found.states
    assert (alone.nodes, empty.nodes, full.nodes) == (18, 60, 60)
    assert full.domains == 6
    assert 0 < full.controller <= MEMORY
    one = full.formed[0]  # on a slow machine each Pod is told what it waits for, and the status follows each second
    assert one.controller <= 12 + (0 if one.ready < 5 else 2 * one.pods + one.ready)
    assert sum(found.idle.requests.values()) <= found.idle.seconds

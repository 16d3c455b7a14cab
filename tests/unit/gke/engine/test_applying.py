"""From nothing to a cluster and back, on the simulated cloud in virtual time."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from interlace.gke.scheduling import critical_path
from interlace.sim.gke.operations import Operation
from tests.unit.gke.engine.sky import MEGA, SMALL, Sky, apply_on, destroy_on, plan_on

pytestmark = pytest.mark.looptime


async def test_what_was_applied_leaves_nothing_to_plan(tmp_path: Path) -> None:
    sky = Sky()
    run = await apply_on(sky, tmp_path)
    assert {str(ending.reason) for ending in run.endings.values() if ending.reason} == set()
    assert set(run.states().values()) == {"done"}
    plan = await plan_on(sky, tmp_path)
    assert [(step.key, step.action, step.differences) for step in plan.steps if step.action != "keep"] == []
    assert plan.empty


async def test_a_plan_is_still_empty_when_the_journal_is_lost(tmp_path: Path) -> None:
    sky = Sky(text=SMALL)
    await apply_on(sky, tmp_path / "one")
    assert (await plan_on(sky, tmp_path / "other")).empty


async def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    sky = Sky(text=SMALL)
    await apply_on(sky, tmp_path)
    before = len(sky.mutations())
    run = await apply_on(sky, tmp_path)
    assert run.endings == {}
    assert len(sky.mutations()) == before


async def test_resources_are_made_as_fast_as_their_order_allows(tmp_path: Path) -> None:
    sky = Sky(seconds=1.0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    run = await apply_on(sky, tmp_path)
    took = loop.time() - began
    made = {step.key: step.resource.after for step in run.plan.steps if step.resource is not None}
    assert len(made) >= 26
    shortest = critical_path(made, dict.fromkeys(made, 1.0))
    assert shortest <= took <= 1.2 * shortest


async def test_destroying_leaves_what_stood_there_before(tmp_path: Path) -> None:
    sky = Sky(text=MEGA)
    before = sky.paths()
    await apply_on(sky, tmp_path)
    assert len(sky.paths()) > len(before) + 26
    endings = await destroy_on(sky, tmp_path)
    assert {str(ending.reason) for ending in endings.values() if ending.reason} == set()
    assert sky.paths() == before


async def test_a_cluster_never_has_two_operations_of_ours(tmp_path: Path) -> None:
    pools = "".join(f"    - name: more-{number}\n      nodes: 0\n" for number in range(4))
    sky = Sky(text=SMALL + pools, seconds=1.0)
    run = await apply_on(sky, tmp_path)
    assert set(run.states().values()) == {"done"}
    times = sorted((each.started, each.ended) for each in _operations(sky) if each.service == "container")
    assert len(times) == 6
    assert all(end <= begin for (_, end), (begin, _) in pairwise(times))


@pytest.mark.parametrize("parallel", [1, 3])
async def test_no_more_run_at_once_than_allowed(tmp_path: Path, parallel: int) -> None:
    sky = Sky(text=SMALL, seconds=1.0)
    await apply_on(sky, tmp_path, parallel=parallel)
    found = _operations(sky)
    most = max(sum(each.started <= moment.started < each.ended for each in found) for moment in found)
    assert most == parallel


def _operations(sky: Sky) -> list[Operation]:
    return list(sky.world.operations._all.values())

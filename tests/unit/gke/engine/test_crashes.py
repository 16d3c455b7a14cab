"""Killed before, amid and after each request, and run again: the same end, and nothing was done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.gke.engine.sky import SMALL, Crash, Sky, apply_on, destroy_on, plan_on

pytestmark = pytest.mark.looptime

STRIDE = 1
"""Every request is a place to die."""


async def _count(tmp_path: Path, run: Callable[[Sky, Path], object]) -> int:
    raise AssertionError


async def _apply_until_done(sky: Sky, folder: Path) -> None:
    run = await apply_on(sky, folder)
    assert {task: str(e.reason) for task, e in run.endings.items() if e.state != "done"} == {}


def _died(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_died(each) for each in error.exceptions)
    return isinstance(error, Crash)


@pytest.mark.parametrize("moment", ["before", "amid", "after"])
async def test_an_apply_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path, moment: str) -> None:
    whole = Sky(text=SMALL, seconds=0.3)
    await _apply_until_done(whole, tmp_path / "whole")
    wanted, requests = whole.paths(), len(whole.log)
    deaths = 0
    for number in range(requests):
        sky = Sky(text=SMALL, seconds=0.3)
        folder = tmp_path / f"{number}"
        sky.crash = lambda at, when, number=number: (at, when) == (number, moment)  # type: ignore[misc]
        try:
            await apply_on(sky, folder)
        except BaseException as error:
            if not _died(error):
                raise
            deaths += 1
        sky.crash = lambda *_: False
        await _apply_until_done(sky, folder)
        assert sky.paths() == wanted, f"killed {moment} request {number}"
        twice = {line: count for line, count in Counter(_made(sky)).items() if count > 1}
        assert twice == {}, f"killed {moment} request {number}"
        assert (await plan_on(sky, folder)).empty
    assert deaths > requests // (4 if moment == "amid" else 2)


def _made(sky: Sky) -> list[tuple[str, str]]:
    """What each mutation was about: creations by the name in their body."""
    found = []
    for each in sky.log:
        if (each.method, each.path) in sky.mutations() and each.status < 300:
            body = each.body or {}
            name = (body.get("cluster") or body.get("nodePool") or body).get("name", "")
            found.append((f"{each.method} {each.path}", name))
    return found

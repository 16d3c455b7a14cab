"""Killed before, amid and after each request, and run again: the same end, and nothing was sent twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.unit.gke.engine.sky import SMALL, Crash, Sky, apply_on, destroy_on

pytestmark = pytest.mark.looptime

SECONDS = 0.3
"""Of each operation: many requests are under way when the end comes."""


async def _apply(sky: Sky, folder: Path) -> None:
    run = await apply_on(sky, folder)
    assert {str(task): str(ending.reason) for task, ending in run.endings.items() if ending.state != "done"} == {}


async def _destroy(sky: Sky, folder: Path) -> None:
    endings = await destroy_on(sky, folder)
    assert {str(task): str(ending.reason) for task, ending in endings.items() if ending.state != "done"} == {}


async def _killed(sky: Sky, at: int, moment: str, run: Callable[[], Awaitable[object]]) -> bool:
    """Whether the run died there."""
    sky.crash = lambda number, when: (number, when) == (at, moment)
    try:
        await run()
    except BaseException as error:
        if not _is_crash(error):
            raise
        return True
    finally:
        sky.crash = lambda *_: False
    return False


def _is_crash(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_is_crash(each) for each in error.exceptions)
    return isinstance(error, Crash)


def _sky(*, narrow: bool = True) -> Sky:
    return Sky(text=SMALL, seconds=SECONDS, narrow=narrow)


@pytest.mark.parametrize("moment", ["before", "amid", "after"])
async def test_an_apply_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path, moment: str) -> None:
    whole = _sky()
    await _apply(whole, tmp_path / "whole")
    deaths = 0
    for number in range(len(whole.log)):
        sky, folder = _sky(), tmp_path / str(number)
        deaths += await _killed(sky, number, moment, partial(apply_on, sky, folder))
        await _apply(sky, folder)
        assert sky.paths() == whole.paths(), f"killed {moment} request {number}"
        assert sky.twice() == [], f"killed {moment} request {number}"
    assert deaths == (len(whole.log) if moment != "amid" else 5)  # networks, subnets and rule are waited for


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_destroy_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path, moment: str) -> None:
    whole = _sky()
    empty = whole.paths()
    await _apply(whole, tmp_path / "whole")
    before = len(whole.log)
    await _destroy(whole, tmp_path / "whole")
    deaths = 0
    for number in range(before, len(whole.log)):
        sky, folder = _sky(), tmp_path / str(number)
        await _apply(sky, folder)
        deaths += await _killed(sky, number, moment, partial(destroy_on, sky, folder))
        await _destroy(sky, folder)
        assert sky.paths() == empty, f"killed {moment} request {number}"
        assert sky.twice() == [], f"killed {moment} request {number}"
    assert deaths == len(whole.log) - before


async def test_it_is_so_with_many_requests_under_way(tmp_path: Path) -> None:
    whole = _sky(narrow=False)
    await _apply(whole, tmp_path / "whole")
    for number in range(8, len(whole.log), 9):
        sky, folder = _sky(narrow=False), tmp_path / str(number)
        assert await _killed(sky, number, "after", partial(apply_on, sky, folder))
        await _apply(sky, folder)
        assert sky.paths() == whole.paths(), f"killed after request {number}"
        assert sky.twice() == [], f"killed after request {number}"


async def test_what_is_killed_again_and_again_still_comes_to_its_end(tmp_path: Path) -> None:
    whole, sky = _sky(), _sky()
    await _apply(whole, tmp_path / "whole")
    lives = 0
    number = 12
    while await _killed(sky, number, "after", partial(apply_on, sky, tmp_path)):
        lives += 1
        number += 10
    assert lives >= 3
    assert sky.paths() == whole.paths()
    assert sky.twice() == []


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_lost_journal_costs_no_repetition(tmp_path: Path, moment: str) -> None:
    whole = _sky()
    await _apply(whole, tmp_path / "whole")
    for number in range(8, len(whole.log), 3):
        sky = _sky()
        assert await _killed(sky, number, moment, partial(apply_on, sky, tmp_path / f"{number}"))
        await _apply(sky, tmp_path / f"{number}-lost")
        assert sky.paths() == whole.paths()
        assert sky.twice() == []

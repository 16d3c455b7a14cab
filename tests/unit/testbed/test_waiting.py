"""The helper that waits for conditions."""

import pytest

from tests.waiting import eventually


async def test_the_first_true_value_is_returned() -> None:
    values = iter([0, "", [7]])
    assert await eventually(lambda: next(values), within=5, every=0) == [7]


async def test_coroutines_are_awaited() -> None:
    async def look() -> int:
        return 7

    assert await eventually(look, within=5) == 7


async def test_a_condition_that_stays_false_fails_with_what_was_seen_last() -> None:
    with pytest.raises(AssertionError, match=r"all ready did not come true within 0\.05 s; last seen: 0"):
        await eventually(lambda: 0, within=0.05, every=0.01, what="all ready")


async def test_assertions_inside_a_look_count_as_not_yet() -> None:
    seen: list[int] = []

    def look() -> bool:
        seen.append(1)
        assert len(seen) > 2, "too early"
        return True

    assert await eventually(look, within=5, every=0)
    seen.clear()
    with pytest.raises(AssertionError, match="last seen: too early"):
        await eventually(lambda: look() if len(seen) < 1 else look() and False, within=0.05, every=1)

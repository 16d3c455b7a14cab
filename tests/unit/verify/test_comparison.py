"""Changes between two measurements, and what noise explains."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.verify.comparison import compare, mann_whitney, outcome, tolerance
from interlace.verify.run import Run
from tests.unit.verify.scenes import GIB, HEALTHY, SWEEP, read, table, times


def runs_of(time_us: Callable[[int], float], *, ranks: int = 16, repeats: int = 1, jitter: float = 0.0) -> list[Run]:
    """Repeated runs whose times vary by ``jitter``, the same ones each time."""
    dice = random.Random(7)
    found: list[Run] = []
    for _ in range(repeats):
        factor = 1 + jitter * dice.uniform(-1, 1)
        found += read(table(lambda size, by=factor: time_us(size) * by, ranks=ranks, nodes=ranks // 8))[0]  # type: ignore[misc]
    return found


def test_equal_runs_are_the_same_at_every_size_and_placement() -> None:
    changes = compare(runs_of(HEALTHY), runs_of(HEALTHY))
    assert len(changes) == 2 * len(SWEEP)
    assert {change.meaning for change in changes} == {"same"}
    assert outcome(changes) == "same"


def test_a_slower_fabric_is_slower_where_it_is_beyond_the_noise() -> None:
    changes = compare(runs_of(HEALTHY), runs_of(times(rate=120, floor_us=130)), assumed=0.03)
    large = next(change for change in changes if change.size == GIB and change.place == "out-of-place")
    small = next(change for change in changes if change.size == SWEEP[0] and change.place == "out-of-place")
    assert (large.meaning, small.meaning) == ("slower", "same")
    assert large.change == pytest.approx(large.after / large.before - 1, abs=0.001)
    assert outcome(changes) == "slower"


def test_the_same_change_is_no_news_where_repeats_vary_as_much() -> None:
    before, after = HEALTHY, times(rate=160, floor_us=130)
    assert outcome(compare(runs_of(before), runs_of(after), assumed=0.01)) == "slower"
    assert outcome(compare(runs_of(before), runs_of(after), assumed=0.10)) == "same"


def test_noise_is_measured_where_a_size_is_repeated_three_times() -> None:
    (change, *_) = compare(runs_of(HEALTHY, repeats=5, jitter=0.04), runs_of(HEALTHY), assumed=0.5)
    assert change.noise_measured
    assert 0 < change.noise < 0.06
    (change, *_) = compare(runs_of(HEALTHY, repeats=2, jitter=0.04), runs_of(HEALTHY), assumed=0.5)
    assert not change.noise_measured
    assert change.noise == 0.5


@pytest.mark.parametrize("repeats", [5, 6, 15])
def test_many_repeats_on_both_sides_are_also_tested_by_rank(repeats: int) -> None:
    slow = times(rate=120, floor_us=130)
    changes = compare(runs_of(HEALTHY, repeats=repeats, jitter=0.01), runs_of(slow, repeats=repeats, jitter=0.01))
    large = next(change for change in changes if change.size == GIB)
    assert large.p is not None
    assert large.p < 0.01
    assert large.meaning == "slower"


def test_other_ranks_and_other_sizes_are_not_compared() -> None:
    assert compare(runs_of(HEALTHY), runs_of(HEALTHY, ranks=32)) == ()
    assert outcome(()) == "cannot tell"


def test_small_bandwidths_are_compared_by_their_times_not_by_two_digits() -> None:
    before, after = (runs_of(lambda size, by=by: 4000 * by + size / 190e3) for by in (1.0, 1.03))  # type: ignore[misc]
    change = next(each for each in compare(before, after) if each.size == SWEEP[0])
    assert change.change == pytest.approx(-0.029, abs=0.002)


def test_a_gain_and_a_loss_are_mixed() -> None:
    changes = compare(runs_of(HEALTHY), runs_of(times(rate=240, floor_us=900)), assumed=0.02)
    assert outcome(changes) == "mixed"


def test_no_change_below_three_percent_means_anything() -> None:
    assert tolerance(0.0) == 0.03
    assert tolerance(0.05) == pytest.approx(0.15)


def test_the_rank_test_knows_equal_and_separate_samples() -> None:
    assert mann_whitney([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]) == pytest.approx(1.0)
    assert mann_whitney([1, 2, 3, 4, 5], [11, 12, 13, 14, 15]) == pytest.approx(2 / 252)
    assert mann_whitney([1, 1, 1, 1, 1], [2, 2, 2, 2, 2]) == pytest.approx(2 / 252)
    assert mann_whitney([1, 2, 3, 4, 5], [5, 12, 13, 14, 15]) == pytest.approx(4 / 252)
    assert mann_whitney([3, 3, 3, 3, 3], [3, 3, 3, 3, 3]) == 1.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.1, 1e3), min_size=5, max_size=9), st.lists(st.floats(0.1, 1e3), min_size=5, max_size=9))
def test_the_rank_test_is_symmetric_and_a_probability(first: list[float], second: list[float]) -> None:
    p = mann_whitney(first, second)
    assert 0 <= p <= 1
    assert p == pytest.approx(mann_whitney(second, first))


def test_the_rank_test_of_many_values_comes_close_to_the_exact_one() -> None:
    dice = random.Random(3)
    first, second = [dice.gauss(0, 1) for _ in range(13)], [dice.gauss(0.7, 1) for _ in range(13)]
    assert mann_whitney(first[:12], second[:12]) == pytest.approx(mann_whitney(first, second), abs=0.1)
    assert mann_whitney([*range(13)], [*range(13, 26)]) < 1e-4

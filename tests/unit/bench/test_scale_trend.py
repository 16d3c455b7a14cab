"""Whether something grows."""

from __future__ import annotations

import pytest

from bench.scale.trend import Trend, slope


def _trend(values: list[float], *, allowed: float = 2.0) -> Trend:
    seconds = tuple(float(10 * number) for number in range(len(values)))
    return Trend(what="memory", unit="MB", seconds=seconds, values=tuple(values), allowed=allowed)


def test_what_fills_in_the_beginning_and_stays_is_flat() -> None:
    trend = _trend([10, 30, 40, *[50.0] * 13])
    assert trend.flat
    assert (trend.early, trend.late, trend.slope) == (50, 50, 0)


def test_what_goes_on_growing_is_not_flat_and_has_a_slope_an_hour() -> None:
    trend = _trend([float(number) for number in range(16)])
    assert not trend.flat
    assert trend.slope == pytest.approx(360)


def test_one_spike_is_no_growth() -> None:
    assert _trend([50.0] * 15 + [500.0]).flat


def test_one_sample_is_enough_to_say_nothing() -> None:
    trend = _trend([7.0])
    assert (trend.growth, trend.slope) == (0, 0)
    assert slope([(1.0, 2.0), (1.0, 3.0)]) == 0

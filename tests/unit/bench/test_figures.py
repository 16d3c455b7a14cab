"""Cells of tables: medians with ranges, ratios, verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import NONE, Figure, ratio, table, verdict

values = st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=9)


def test_a_figure_shows_its_median_and_its_range() -> None:
    assert Figure.of([3, 1, 2]).text() == "2 (1–3)"


def test_a_figure_without_spread_shows_one_number() -> None:
    assert Figure.of([0.701, 0.704]).text(2) == "0.70"


def test_values_that_were_not_measured_are_left_out() -> None:
    assert Figure.of([None, 4, None]).values == (4,)


def test_a_figure_without_values_is_a_dash_everywhere() -> None:
    empty = Figure.of([])
    assert (empty.text(), ratio(empty, Figure((1,))), verdict(empty, 5)) == (NONE, NONE, NONE)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ([42], [350], "× 8.3 less"),
        ([90_000], [4_326_000], "× 48 less"),
        ([3], [2], "× 1.5 more"),
        ([7], [7], "same"),
        ([100], [101], "same"),
        ([0], [33], "none of it"),
        ([2], [0], "only here"),
        ([0], [0], "same"),
    ],
)
def test_a_ratio_says_how_many_times_less_or_more(ours: list[float], theirs: list[float], said: str) -> None:
    assert ratio(Figure.of(ours), Figure.of(theirs)) == said


@given(values, values)
def test_a_ratio_never_claims_the_wrong_direction(ours: list[float], theirs: list[float]) -> None:
    left, right = Figure.of(ours), Figure.of(theirs)
    said = ratio(left, right)
    if said.endswith("less"):
        assert left.median < right.median
    if said.endswith("more"):
        assert left.median > right.median


@given(values, st.floats(0, 1e6))
def test_a_budget_is_met_exactly_up_to_its_limit(measured: list[float], limit: float) -> None:
    figure = Figure.of(measured)
    assert (verdict(figure, limit) == "met") == (figure.median <= limit)


def test_a_table_without_rows_is_left_out() -> None:
    assert not table(["a"], [])


def test_a_table_has_as_many_rules_as_columns() -> None:
    assert table(["a", "b"], [[1, "x"]]).splitlines() == ["| a | b |", "| --- | --- |", "| 1 | x |"]

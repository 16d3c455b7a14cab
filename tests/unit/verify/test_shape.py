"""Shapes of curves that name a cause, and healthy curves that have none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.verify import shape
from interlace.verify.curve import Curve, Point, curve, main_curve, size_name, spread, time_name
from tests.unit.verify.recorded import published
from tests.unit.verify.scenes import GIB, HEALTHY, MIB, SWEEP, judged, read, table, times

FACTOR = 15 / 16


def of(time_us: Callable[[int], float], sizes: tuple[int, ...] = SWEEP) -> Curve:
    points = (
        Point(size=size, time_us=time_us(size), busbw=size * FACTOR / time_us(size) / 1e3, line=at)
        for at, size in enumerate(sizes)
    )
    return Curve(place="out-of-place", points=tuple(points))


def kinds(one: Curve, *, rate: float = 200, other: Curve | None = None) -> set[str]:
    return {each.kind for each in shape.shapes(one, other=other, rate=rate)}


def test_a_healthy_curve_has_no_shape() -> None:
    healthy = of(HEALTHY)
    assert kinds(healthy, other=healthy) == set()


def test_time_that_does_not_grow_with_the_data_is_latency() -> None:
    slow = of(lambda size: 4000 + size / 200e3)
    found = shape.flat_time(slow, rate=200)
    assert found is not None
    assert "flat from 1 MiB to 512 MiB" in found.text
    assert "512 times the data" in found.text


def test_the_flat_part_of_published_tables_is_told_apart_from_their_slope() -> None:
    tcpxo, tcpx = (main_curve(read(published(name))[0][0]) for name in ("nccl-tcpxo", "nccl-tcpx"))
    flat = shape.flat_time(tcpxo, rate=200)
    assert flat is not None
    assert "1 MiB to 512 MiB" in flat.text
    assert shape.flat_time(tcpx, rate=100) is None


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_a_plateau_at_a_fraction_of_the_rate_counts_the_nics(parts: int) -> None:
    found = shape.plateau(of(times(rate=190 / parts, floor_us=60)), rate=200)
    assert found is not None
    assert f"one in {parts} NICs" in found.cause


def test_a_curve_that_still_rises_is_no_plateau() -> None:
    rising = of(lambda size: 5000 + size / 200e3, SWEEP[:-1])
    assert shape.plateau(rising, rate=200) is None


@pytest.mark.parametrize(("rate", "named"), [(3.5, True), (1.1, True), (20, False), (190, False)])
def test_the_plateau_of_sockets_is_named(rate: float, *, named: bool) -> None:
    found = shape.socket_plateau(of(times(rate=rate, floor_us=60)), rate=200)
    assert (found is not None) is named


def test_a_dip_of_the_middle_sizes_is_named_with_its_size() -> None:
    dipped = of(lambda size: HEALTHY(size) * (20 if size == 16 * MIB else 1))
    found = shape.dip(dipped)
    assert found is not None
    assert "at 16 MiB" in found.text
    assert "dip" in kinds(dipped)


def test_one_row_that_takes_longer_than_the_next_size_needs_a_repeat() -> None:
    slow = of(lambda size: HEALTHY(size) * (2.5 if size == MIB else 1))
    found = shape.slow_row(slow)
    assert found is not None
    assert "1 MiB takes" in found.text
    assert kinds(slow) == {"row"}
    assert shape.slow_row(of(HEALTHY)) is None


def test_a_slow_end_is_no_dip_but_a_fall() -> None:
    falling = of(lambda size: HEALTHY(size) * (1.5 if size == GIB else 1))
    assert shape.dip(falling) is None
    found = shape.falls(falling)
    assert found is not None
    assert "at 1 GiB" in found.text


def test_halves_that_differ_at_large_sizes_are_named() -> None:
    one, other = of(HEALTHY), of(lambda size: HEALTHY(size) * 1.3)
    found = shape.halves_differ(one, other)
    assert found is not None
    assert "at 1 GiB" in found.text
    assert shape.halves_differ(one, of(lambda size: HEALTHY(size) * 1.1)) is None


def test_halves_that_differ_at_small_sizes_are_noise() -> None:
    one = of(HEALTHY)
    assert shape.halves_differ(one, of(lambda size: HEALTHY(size) * (1.5 if size < 256 * MIB else 1))) is None


def test_more_ranks_that_reach_half_show_a_fault_of_scale() -> None:
    few, many = of(HEALTHY), of(times(rate=80, floor_us=130))
    found = shape.scale([(16, few), (32, many)], rate=200)
    assert found is not None
    assert "32 ranks" in found.text
    assert shape.scale([(16, few), (32, few)], rate=200) is None


def test_two_nodes_above_the_rate_are_no_fault_of_scale() -> None:
    two, four = of(times(rate=340, floor_us=60)), of(times(rate=187, floor_us=60))
    assert shape.scale([(16, two), (32, four)], rate=200) is None


def test_runs_of_two_scales_in_one_log_are_compared() -> None:
    log = [*table(HEALTHY, ranks=16, nodes=2), *table(times(rate=90, floor_us=60, ranks=32), ranks=32, nodes=4)]
    judgement = judged(log)
    assert judgement.verdict == "fail"
    assert any("shows only at scale" in each.text for each in judgement.evidence)


def test_a_curve_has_one_point_a_size_and_none_for_zero() -> None:
    run = read([*table(HEALTHY)])[0][0]
    assert len(curve(run).points) == len(SWEEP)
    assert curve(run, "in-place").points[0].samples == 1
    assert main_curve(run).place == "out-of-place"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 2**40), st.floats(0.01, 1e8), st.floats(0, 1e6)),
        max_size=12,
        unique_by=lambda row: row[0],
    ),
    st.floats(1, 1e4),
)
def test_no_curve_makes_a_shape_raise(rows: list[tuple[int, float, float]], rate: float) -> None:
    points = tuple(Point(size=size, time_us=time, busbw=busbw) for size, time, busbw in sorted(rows))
    one = Curve(place="out-of-place", points=points)
    for found in shape.shapes(one, other=one, rate=rate):
        assert found.text
        assert found.kind != "halves-differ"


def test_sizes_and_times_are_shown_in_units_that_people_use() -> None:
    assert [size_name(size) for size in (512, 64 * MIB, 3 * GIB)] == ["512 B", "64 MiB", "3 GiB"]
    assert [time_name(us) for us in (8.25, 4654.5, 2.5e6)] == ["8.25 us", "4.65 ms", "2.5 s"]


def test_the_spread_of_repeats_ignores_one_outlier() -> None:
    assert spread([100.0]) == 0
    assert spread([100, 101, 99, 100, 20]) < 0.02

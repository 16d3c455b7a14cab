"""Every layout that nccl-tests ever printed reads back as what was measured."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.verify.reader import read_text
from interlace.verify.run import Run, document
from tests.unit.verify.printers import ERAS, Era, Printed, Sweep, show


def expected_name(era: Era, sweep: Sweep) -> str | None:
    """What can be known about the collective."""
    if era.titled:
        return sweep.collective
    if sweep.collective in {"gather", "scatter", "hypercube"}:
        return None
    if sweep.collective == "all_gather" and not era.uniform and not era.old_formula:
        return None  # alltoall prints the same
    return sweep.collective


def check(run: Run, era: Era, sweep: Sweep, log: Printed) -> None:
    said = document(run)
    assert said["rows"] == log.rows
    assert (run.ranks, run.ranks_from, run.nodes) == (sweep.ranks, "rank lines", (sweep.ranks + 7) // 8)
    assert run.collective == expected_name(era, sweep)
    assert run.avg_busbw_printed == float(f"{log.average:g}")
    assert run.avg_busbw_mean == pytest.approx(log.average, rel=2e-2)
    assert run.out_of_bounds == 0
    assert run.wrong_total == (None if era.deviation else 0)
    assert run.partial_rows == 0
    leaves_out = era.old_formula and sweep.collective in {"all_gather", "reduce_scatter"}
    assert run.old_formula == (leaves_out or (sweep.collective == "hypercube" and not era.titled))
    assert [text for text in run.warnings if "own part" not in text] == []


@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
def test_each_era_reads_back_for_each_collective(era: Era) -> None:
    for collective in era.collectives:
        sweep = Sweep(collective=collective)
        log = show(era, sweep)
        (run,) = read_text(log.text)
        check(run, era, sweep, log)


@st.composite
def sweeps(draw: st.DrawFn, era: Era) -> Sweep:
    number = draw(st.integers(1, 5))
    return Sweep(
        collective=draw(st.sampled_from(era.collectives)),
        ranks=draw(st.sampled_from([3, 4, 8, 16, 72, 128])),
        type=draw(st.sampled_from(era.types)),
        counts=draw(st.lists(st.integers(0, 2**28), min_size=number, max_size=number).map(with_a_large_one)),
        times=draw(st.lists(st.floats(1.5, 999_999), min_size=2 * number, max_size=2 * number)),
    )


def with_a_large_one(counts: list[int]) -> list[int]:
    """So that the numbers tell the collective."""
    return [*counts[:-1], 2**29]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_sweep_reads_back_in_any_era(data: st.DataObject) -> None:
    era = data.draw(st.sampled_from(ERAS))
    sweep = data.draw(sweeps(era))
    log = show(era, sweep)
    (run,) = read_text(log.text)
    assert document(run)["rows"] == log.rows
    assert run.ranks == sweep.ranks
    assert run.avg_busbw_printed == float(f"{log.average:g}")
    assert [text for text in run.warnings if "own part" not in text] == []

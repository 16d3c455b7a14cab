"""Whether the numbers of a table agree with each other: size, count, time, both bandwidths, wrong elements, average.

Invariant: only what rounding cannot explain is called a contradiction, and each one names its row. What the last
places of a time hide below the rounding of the bandwidth beside it nobody can see, and nobody is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from interlace.verify.inference import DIVIDING, Formula, formula, parts, rate, ring_ranks
from interlace.verify.layout import SIZES
from interlace.verify.number import Interval
from interlace.verify.run import Half, Row, Run

MOST = 50
"""Contradictions of a run that are told one by one."""
_SLACK = 2e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """A run's own average, and what in the run cannot be true at once."""

    mean: float | None
    """GB/s over all halves, unweighted, as nccl-tests has it; from size/time where that agrees with busbw."""
    span: Interval
    """Where the mean of the unrounded values lies."""
    contradictions: tuple[str, ...]
    """One sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survey:
    mean: float | None
    span: Interval
    halves: int
    suspects: list[int]
    """Indexes of rows with a half whose numbers disagree."""


def contradictions(run: Run) -> tuple[str, ...]:
    """What in ``run`` cannot be true at once, one sentence each."""
    return examine(run).contradictions


def examine(run: Run) -> Examination:
    """Check all numbers of ``run`` against each other."""
    divided = parts(run.rows)
    told: list[str] = []
    ranks = run.ranks
    if run.collective in DIVIDING and run.collective != "alltoallv" and divided is not None and divided > 1:
        if run.ranks_from in {"rank lines", "devices", "NCCL"} and divided != run.ranks:
            told.append(f"the {run.ranks_from} say {run.ranks} ranks, size and count say {divided}")
        ranks = divided
    way = formula(run.collective, ranks, parts=divided, old=run.old_formula)
    survey = _survey(run, way)
    if run.collective == "all_reduce" and run.ranks and len(survey.suspects) * 2 > len(run.rows):
        span = ring_ranks(run.rows)
        if run.ranks > 1 and run.ranks not in span:
            told.append(f"the {run.ranks_from} say {run.ranks} ranks, busbw over algbw says {_span(span)}")
            whole = span.integers()
            way = formula(run.collective, whole[0] if len(whole) == 1 else None, parts=divided)
            survey = _survey(run, way)
    expected = divided if run.collective is None else 1 if run.collective not in DIVIDING else ranks or divided
    found = [*told, *_rows(run, way, None if run.collective == "alltoallv" else expected, set(survey.suspects))]
    found += _footer(run, survey)
    if len(found) > MOST:
        found = [*found[:MOST], f"{len(found) - MOST} more contradictions are not listed"]
    return Examination(mean=survey.mean, span=survey.span, contradictions=tuple(found))


def average_place(value: float) -> float:
    """Worth of one in the last place of an average, which has six significant digits."""
    return 10.0 ** (math.floor(math.log10(abs(value))) - 5) if value and math.isfinite(value) else 1e-5


def _survey(run: Run, way: Formula) -> _Survey:
    """All halves in one loop, on bare numbers, since logs hold many thousands of them."""
    of_size, of_algbw = way.algbw / 1e3, way.busbw
    suspects: list[int] = []
    values: list[float] = []
    low = high = 0.0
    halves = 0
    for index, row in enumerate(run.rows):
        base = row.size * of_size
        for half in (row.oop, row.ip):
            if half is None:
                continue
            halves += 1
            time_unit, algbw_unit, busbw_unit = half.units
            time, algbw, busbw = half.time_us, half.algbw, half.busbw
            least = (algbw - algbw_unit / 2) * (1 - _SLACK)
            most = (algbw + algbw_unit / 2) * (1 + _SLACK)
            by_time = not run.cpu_time and time > time_unit / 2
            if by_time:
                slowest = base / (time + time_unit / 2) * (1 - _SLACK)
                fastest = base / (time - time_unit / 2) * (1 + _SLACK)
                agrees = not (slowest > most or fastest < least)
                least, most = max(least, slowest), min(most, fastest)
            else:
                agrees = True
            floor = (busbw - busbw_unit / 2) * (1 - _SLACK)
            ceiling = (busbw + busbw_unit / 2) * (1 + _SLACK)
            value = busbw
            if agrees and of_algbw is not None:
                least, most = least * of_algbw, most * of_algbw
                agrees = not (least > ceiling or most < floor)
                if agrees:
                    floor, ceiling = max(floor, least), min(ceiling, most)
                    value = base / time * of_algbw if by_time else busbw
            if not agrees and (not suspects or suspects[-1] != index):
                suspects.append(index)
            if math.isfinite(value):
                values.append(value)
                low += floor
                high += ceiling
    number = len(values)
    return _Survey(
        mean=math.fsum(values) / number if number else None,
        span=Interval(low / number, high / number) if number else Interval(-math.inf, math.inf),
        halves=halves,
        suspects=suspects,
    )


def _rows(run: Run, way: Formula, expected: int | None, suspects: set[int]) -> Iterator[str]:
    for index, row in enumerate(run.rows):
        amount = row.count * SIZES[row.type]
        said = []
        if expected and (amount or row.size) and row.size != amount * expected:
            share = f" in {expected} parts" if expected > 1 else ""
            said.append(f"{row.count} elements of {row.type}{share} are {amount * expected} bytes, not {row.size}")
        if row.root is not None and row.root != -1 and (row.root < 0 or (run.ranks and row.root >= run.ranks)):
            said.append(f"there is no root {row.root}")
        if index in suspects:
            said += [f"{name}: {what}" for name, half in row.halves() for what in _half(row, half, way, run.cpu_time)]
        if run.out_of_bounds == 0:
            said += [
                f"{name}: {half.wrong} wrong elements, and the footer counts no failed check"
                for name, half in row.halves()
                if half.wrong
            ]
        if said:
            where = f"row {index + 1} (size {row.size}" + (f", line {row.line})" if row.line else ")")
            yield from (f"{where}: {what}" for what in said)


def _half(row: Row, half: Half, way: Formula, cpu_time: bool) -> Iterator[str]:  # noqa: FBT001
    algbw, busbw = Interval.around(half.algbw, half.units[1]), Interval.around(half.busbw, half.units[2])
    exact = algbw
    if not cpu_time:
        given = rate(row, half).scaled(way.algbw)
        exact = given.meet(algbw)
        if not exact:
            yield f"size over time is {_text(given)} GB/s, algbw says {half.algbw:g}"
            exact = given
    if way.busbw is not None and not exact.scaled(way.busbw).meet(busbw):
        yield f"busbw should be {_text(exact.scaled(way.busbw))} GB/s and says {half.busbw:g}"


def _footer(run: Run, survey: _Survey) -> Iterator[str]:
    whole = not (run.partial_rows or run.left_out or run.gaps)
    if run.out_of_bounds and run.wrong_total == 0 and whole:
        yield f"the footer counts {run.out_of_bounds} failed checks, and no row has a wrong element"
    average = run.avg_busbw_printed
    if average is None or not whole or run.below_minimum:
        return
    if not survey.span.meet(Interval.around(average, average_place(average))):
        yield f"the rows have a mean of {_text(survey.span)} GB/s, the footer says {average:g}"


def _text(span: Interval) -> str:
    middle = (span.low + span.high) / 2
    return f"{middle:.6g}" if math.isfinite(middle) else "unknown"


def _span(span: Interval) -> str:
    whole = span.integers()
    if len(whole) == 1:
        return f"{whole[0]}"
    return f"{whole[0]} to {whole[-1]}" if whole else f"{span.low:.4g} to {span.high:.4g}"

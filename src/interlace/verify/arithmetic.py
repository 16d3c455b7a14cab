"""Whether the numbers of a table agree with each other: size, count, time, both bandwidths, wrong elements, average.

Invariant: only what rounding cannot explain is called a contradiction, and each one names its row. What the last
places of a time hide below the rounding of the bandwidth beside it nobody can see, and nobody is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from interlace.verify.inference import DIVIDING, Formula, formula, parts, rate, ring_ranks
from interlace.verify.layout import SIZES
from interlace.verify.number import Interval
from interlace.verify.run import Half, Row, Run

MOST = 50
"""Contradictions of a run that are told one by one."""


def mean(rows: Sequence[Row], way: Formula, *, cpu_time: bool = False) -> float | None:
    """GB/s over all halves, unweighted, as nccl-tests has it; from size/time where that agrees with busbw."""
    values = [_best(row, half, way, cpu_time=cpu_time) for row in rows for _, half in row.halves()]
    finite = [value for value in values if math.isfinite(value)]
    return math.fsum(finite) / len(finite) if finite else None


def average_place(value: float) -> float:
    """Worth of one in the last place of an average, which has six significant digits."""
    return 10.0 ** (math.floor(math.log10(abs(value))) - 5) if value and math.isfinite(value) else 1e-5


def contradictions(run: Run) -> tuple[str, ...]:
    """What in ``run`` cannot be true at once, one sentence each."""
    divided = parts(run.rows)
    told = _ranks(run, divided)
    counted = counted_ranks(run, divided)
    way = formula(run.collective, counted, parts=divided, old=run.old_formula)
    expected = divided if run.collective is None else 1 if run.collective not in DIVIDING else counted or divided
    if run.collective == "alltoallv":
        expected = None
    found: list[str] = []
    for number, row in enumerate(run.rows, 1):
        where = f"row {number} (size {row.size}" + (f", line {row.line})" if row.line else ")")
        found += (f"{where}: {what}" for what in _row(row, run, way, expected))
    found += _footer(run, way)
    if len(found) > MOST:
        found = [*found[:MOST], f"{len(found) - MOST} more contradictions are not listed"]
    return (*told, *found)


def _row(row: Row, run: Run, way: Formula, expected: int | None) -> Iterator[str]:
    amount = row.count * SIZES[row.type]
    if expected and (amount or row.size) and row.size != amount * expected:
        share = f" in {expected} parts" if expected > 1 else ""
        yield f"{row.count} elements of {row.type}{share} are {amount * expected} bytes, not {row.size}"
    if row.root is not None and (row.root < -1 or (run.ranks is not None and row.root >= run.ranks)):
        yield f"there is no root {row.root}"
    for name, half in row.halves():
        for what in _half(row, half, way, cpu_time=run.cpu_time):
            yield f"{name}: {what}"
        if half.wrong and run.out_of_bounds == 0:
            yield f"{name}: {half.wrong} wrong elements, and the footer counts no failed check"


def _half(row: Row, half: Half, way: Formula, *, cpu_time: bool) -> Iterator[str]:
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


def _best(row: Row, half: Half, way: Formula, *, cpu_time: bool) -> float:
    if cpu_time or way.busbw is None or half.time_us <= 0:
        return half.busbw
    value = row.size / 1e3 / half.time_us * way.algbw * way.busbw
    given = rate(row, half).scaled(way.algbw * way.busbw)
    return value if given.meet(Interval.around(half.busbw, half.units[2])) else half.busbw


def _ranks(run: Run, divided: int | None) -> Iterator[str]:
    """Rank lines against the numbers."""
    if run.ranks is None or run.ranks_from not in {"rank lines", "devices", "NCCL"}:
        return
    if run.collective in DIVIDING and run.collective != "alltoallv" and divided is not None and divided != run.ranks:
        yield f"the {run.ranks_from} say {run.ranks} ranks, size and count say {divided}"
    elif run.collective == "all_reduce":
        span = ring_ranks(run.rows)
        if run.ranks > 1 and run.ranks not in span:
            yield f"the {run.ranks_from} say {run.ranks} ranks, busbw over algbw says {_span(span)}"


def counted_ranks(run: Run, divided: int | None) -> int | None:
    """The ranks that the bandwidths were computed with; None if they say one thing and the rank lines another."""
    if run.collective in DIVIDING and divided is not None and divided > 1:
        return divided
    if run.collective == "all_reduce" and run.ranks is not None and run.ranks > 1:
        span = ring_ranks(run.rows)
        if run.ranks not in span:
            whole = span.integers()
            return whole[0] if len(whole) == 1 else None
    return run.ranks


def _footer(run: Run, way: Formula) -> Iterator[str]:
    if run.out_of_bounds and run.wrong_total == 0 and not run.partial_rows:
        yield f"the footer counts {run.out_of_bounds} failed checks, and no row has a wrong element"
    average = run.avg_busbw_printed
    if average is None or run.partial_rows or run.left_out or run.below_minimum:
        return
    halves = [(row, half) for row in run.rows for _, half in row.halves()]
    spans = []
    for row, half in halves:
        busbw = Interval.around(half.busbw, half.units[2])
        given = busbw if run.cpu_time or way.busbw is None else rate(row, half).scaled(way.algbw * way.busbw)
        spans.append(given.meet(busbw) or busbw)
    span = Interval(math.fsum(one.low for one in spans) / len(spans), math.fsum(one.high for one in spans) / len(spans))
    if not span.meet(Interval.around(average, average_place(average))):
        yield f"the rows have a mean of {_text(span)} GB/s, the footer says {average:g}"


def _text(span: Interval) -> str:
    middle = (span.low + span.high) / 2
    return f"{middle:.6g}" if math.isfinite(middle) else "unknown"


def _span(span: Interval) -> str:
    whole = span.integers()
    if len(whole) == 1:
        return f"{whole[0]}"
    return f"{whole[0]} to {whole[-1]}" if whole else f"{span.low:.4g} to {span.high:.4g}"

"""The end of reading a run: its averages, and everything about it that is doubtful, said in sentences."""

from __future__ import annotations

import msgspec

from interlace.verify import arithmetic
from interlace.verify.number import Interval, printed
from interlace.verify.run import Row, Run

ERROR = "the test ended with an error: "
CUT = "the log ends before the test does: it was cut, or the test hung or was ended"
UNFINISHED = "the JSON file was not finished, as after a crash"
"""Warnings by which a document of runs, too, tells that a run did not end well."""


def conclude(run: Run, *, average: str | None, cut: bool = False, doubts: list[str]) -> Run:
    """``run`` with its averages and warnings.

    ``average`` is the footer's, as printed; ``cut``: the log ends in it, so that it may lack digits. ``doubts`` are
    what the reader saw.
    """
    number = printed(average) if average is not None else None
    footer = None if number is None else number[0]
    examined = arithmetic.examine(msgspec.structs.replace(run, avg_busbw_printed=footer))
    told = [*doubts, *_properties(run)]
    if cut and footer is not None:
        near = Interval.around(footer, arithmetic.average_place(footer))
        if not examined.span.meet(near):
            footer = None
            examined = arithmetic.examine(run)
            told.append("the log ends inside the footer's average, which is left out")
    return msgspec.structs.replace(
        run,
        avg_busbw_printed=footer,
        avg_busbw_mean=examined.mean,
        warnings=(*told, *examined.contradictions),
    )


def total(rows: tuple[Row, ...]) -> int | None:
    """Wrong elements of all halves; None if none were counted."""
    counted = [half.wrong for row in rows for half in (row.oop, row.ip) if half is not None and half.wrong is not None]
    return sum(counted) if counted else None


def _properties(run: Run) -> list[str]:
    told = [f"{ERROR}{text}" for text in run.errors[:1]]
    if run.partial_rows:
        told.append(
            "1 row is cut, and left out" if run.partial_rows == 1 else f"{run.partial_rows} rows are cut, and left out"
        )
    if run.left_out:
        told.append(f"only the first {len(run.rows)} rows are kept, {run.left_out} more are left out")
    if run.checked is False:
        told.append("results were not checked (-c 0): the count of wrong elements says nothing")
    if run.ranks == 1:
        told.append("one rank has no peer: its bandwidth is that of a copy")
    if run.below_minimum:
        told.append("the average is marked FAILED because of NCCL_TESTS_MIN_BW; that says nothing about the data")
    if run.old_formula:
        told.append("algbw leaves out a rank's own part, as hypercube does, and all builds before June 2020")
    return told

"""Figures as they are printed: a median with its range, beside a budget, as a ratio to a reference.

Pure. Invariant: a cell never shows more than was measured; without values it is a dash.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

import msgspec

NONE = "–"


class Figure(msgspec.Struct, frozen=True):
    """Some measurements of one thing."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Figure:
        """Those of ``values`` that were measured."""
        return cls(tuple(value for value in values if value is not None))

    @property
    def median(self) -> float:
        """Raises StatisticsError without values."""
        return statistics.median(self.values)

    def text(self, digits: int = 0) -> str:
        """``median (smallest-largest)``; the range only where it is more than one figure."""
        if not self.values:
            return NONE
        shown = [f"{value:.{digits}f}" for value in (self.median, min(self.values), max(self.values))]
        return shown[0] if shown[1] == shown[2] else f"{shown[0]} ({shown[1]}–{shown[2]})"

    def __bool__(self) -> bool:
        return bool(self.values)


def ratio(measured: Figure, reference: Figure) -> str:
    """How many times less ``measured`` is than ``reference``, by medians: ``× 7.4 less``, ``× 1.2 more``, ``same``."""
    if not measured or not reference:
        return NONE
    ours, theirs = measured.median, reference.median
    if ours == theirs:
        return "same"
    if min(ours, theirs) <= 0:
        return "none of it" if ours <= 0 else "only here"
    less = theirs > ours
    factor = theirs / ours if less else ours / theirs
    shown = f"{factor:.0f}" if factor >= 20 else f"{factor:.1f}"
    return "same" if shown == "1.0" else f"× {shown} {'less' if less else 'more'}"


def verdict(measured: Figure, limit: float) -> str:
    """``met`` or ``missed``, by the median."""
    if not measured:
        return NONE
    return "met" if measured.median <= limit else "**missed**"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; empty without rows."""
    body = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    if not body:
        return ""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *body]) + "\n"

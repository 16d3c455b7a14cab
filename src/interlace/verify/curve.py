"""The curve of a run: one value a size, whatever cycles, types and operations the run repeated.

Invariant: sizes rise; zero sizes are left out, since nothing was moved; each value is a median.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

import msgspec

from interlace.fabric.bands import LEAST_SIZE
from interlace.verify.run import Half, Run

PLACES: Final = ("out-of-place", "in-place")
MIB: Final = 2**20
LARGE: Final = LEAST_SIZE
"""From here on bandwidth can be judged; below it latency decides."""
_ROUNDED: Final = 0.98
"""A size that was asked for is cut to whole elements of every rank."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One size of one placement."""

    size: int
    time_us: float
    busbw: float
    """GB/s."""
    samples: int = 1
    line: int = 0
    """Of the first row of that size; 0 if unknown."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The points of one placement."""

    place: str
    points: tuple[Point, ...] = ()

    def from_size(self, size: int) -> tuple[Point, ...]:
        """Points of at least that size, as it was asked for."""
        return tuple(point for point in self.points if reaches(point.size, size))

    def at(self, size: int) -> Point | None:
        """The point of that size, as it was asked for."""
        near = [each for each in self.points if reaches(each.size, size) and reaches(size, each.size)]
        return min(near, key=lambda each: abs(each.size - size), default=None)


def reaches(size: int, asked: int) -> bool:
    """Whether a printed size is at least the one asked for, which the program may have cut a little."""
    return size >= _ROUNDED * asked


def curve(run: Run, place: str = "out-of-place") -> Curve:
    """The run's curve of one placement; no points if it was not measured."""
    halves: dict[int, list[Half]] = defaultdict(list)
    lines: dict[int, int] = {}
    for row in run.rows:
        half = dict(row.halves()).get(place)
        if half is not None and row.size > 0 and half.time_us > 0:
            halves[row.size].append(half)
            lines.setdefault(row.size, row.line)
    return Curve(place=place, points=tuple(_point(size, halves[size], lines[size]) for size in sorted(halves)))


def main_curve(run: Run) -> Curve:
    """Out of place, as published tables are read; in place where nothing else was measured."""
    first = curve(run)
    return first if first.points else curve(run, "in-place")


def size_name(size: int) -> str:
    """``64 MiB``: binary, as sizes of messages are given."""
    value, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.4g} {units[0]}"


def time_name(us: float) -> str:
    """``4.65 ms``: in a unit that a person reads at once."""
    if us < 1000:
        return f"{us:.3g} us"
    return f"{us / 1000:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def spread(values: Sequence[float]) -> float:
    """Relative spread by the median absolute deviation, scaled to a standard deviation; 0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    middle = median(values)
    return 1.4826 * median([abs(value - middle) for value in values]) / middle if middle else 0.0


def _point(size: int, halves: Iterable[Half], line: int) -> Point:
    rows = list(halves)
    return Point(
        size=size,
        time_us=median([half.time_us for half in rows]),
        busbw=median([half.busbw for half in rows]),
        samples=len(rows),
        line=line,
    )

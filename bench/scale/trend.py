"""Whether something that must stay as it is grows over time. Pure.

Invariant: a trend is judged by medians of parts of the time, so that one spike is no growth; the slope is the least
squares line through all samples after the beginning, in which caches are filled.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

BEGINNING = 0.25
"""Part of the time that is left out: pools and caches are filled meanwhile."""


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of one figure over the time of a measurement."""

    what: str
    unit: str
    seconds: tuple[float, ...]
    """When each sample was taken, after the start."""
    values: tuple[float, ...]
    allowed: float
    """By how much the median of the last quarter may be above that of the second one."""

    @property
    def early(self) -> float:
        """Median of the second quarter."""
        return statistics.median(self._part(BEGINNING, 0.5))

    @property
    def late(self) -> float:
        """Median of the last quarter."""
        return statistics.median(self._part(0.75, 1.0))

    @property
    def growth(self) -> float:
        """From the second to the last quarter."""
        return self.late - self.early

    @property
    def flat(self) -> bool:
        """Whether it did not grow by more than is allowed."""
        return self.growth <= self.allowed

    @property
    def slope(self) -> float:
        """Units an hour, by least squares without the beginning; 0 where one sample is all there is."""
        begin = self._moment(BEGINNING)
        kept = [(at, value) for at, value in zip(self.seconds, self.values, strict=True) if at >= begin]
        return 3600 * slope(kept)

    def _moment(self, part: float) -> float:
        return self.seconds[0] + part * (self.seconds[-1] - self.seconds[0])

    def _part(self, begin: float, end: float) -> list[float]:
        low, high = self._moment(begin), self._moment(end)
        found = [value for at, value in zip(self.seconds, self.values, strict=True) if low <= at <= high]
        return found or [self.values[-1]]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the least squares line through ``points``; 0 without two different abscissas."""
    if len({x for x, _ in points}) < 2:
        return 0.0
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope

"""A printed number is an interval: what it may stand for, given its last printed place.

Invariant: nothing is compared with a tolerance of ours; two numbers contradict each other only if their intervals
do not touch.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_FORM = re.compile(r"(\d{1,20})(?:\.(\d{0,17}))?(?:[eE]([+-]?\d{1,2}))?", re.ASCII)
_SLACK = 1e-9
"""Relative: what binary fractions add to a decimal interval."""


def printed(token: str) -> tuple[float, float] | None:
    """Value of ``token`` and the worth of one in its last place; None if it is no number that C prints.

    ``inf`` and ``nan`` (a time of zero) have an infinite place: they contradict nothing.
    """
    match = _FORM.fullmatch(token)
    if match is None:
        return (float(token), math.inf) if token.lstrip("-").lower() in {"inf", "nan"} else None
    _, fraction, exponent = match.groups()
    place = (int(exponent) if exponent else 0) - (len(fraction) if fraction else 0)
    return float(token), 10.0**place


@dataclass(frozen=True, slots=True)
class Interval:
    """All values from ``low`` to ``high``, both included; empty if ``low`` is larger."""

    low: float
    high: float

    @classmethod
    def around(cls, value: float, unit: float) -> Interval:
        """What is printed as ``value`` when the last place is worth ``unit``."""
        if not math.isfinite(value) or not math.isfinite(unit):
            return cls(-math.inf, math.inf)
        slack = abs(value) * _SLACK
        return cls(value - unit / 2 - slack, value + unit / 2 + slack)

    def scaled(self, factor: float) -> Interval:
        """Times a factor that is not negative."""
        return Interval(self.low * factor, self.high * factor) if math.isfinite(self.high) else self

    def dividing(self, amount: float) -> Interval:
        """``amount`` divided by it; without bound where it reaches zero."""
        high = amount / self.low if self.low > 0 else math.inf
        low = amount / self.high if 0 < self.high < math.inf else -math.inf if self.high <= 0 else 0.0
        return Interval(low, high)

    def meet(self, other: Interval) -> Interval:
        """What both hold."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def integers(self) -> range:
        """The whole numbers in it, from 1; empty where it has no bounds."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return range(0)
        return range(max(1, math.ceil(self.low)), math.floor(self.high) + 1)

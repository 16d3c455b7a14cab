"""Which part of a pair's bandwidth is the nodes' and which the path's between them: a robust additive fit.

ln(busbw) of a pair = typical + effect of one node + effect of the other + residual, by median polish: a node that is
slow with everybody has an effect, a path that is slow alone has a residual. Pure. Invariant: a node with fewer than
``PARTNERS`` partners has no effect of its own, since nothing would tell it from its paths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

import msgspec

from interlace.verify.pairing import Match

PARTNERS: Final = 3
MAD: Final = 1.4826
"""From the median absolute deviation to the standard deviation of a normal distribution."""
_MEDIAN_ERROR: Final = 1.2533
"""Standard error of a median over that of a mean, for normal noise: sqrt(pi / 2)."""
_SWEEPS: Final = 20
_STILL: Final = 5e-4
"""Far below any noise."""
_FREE: Final = 40
"""Free values from which the noise is estimated well enough to stand alone."""
_SPREAD_FROM: Final = 5
"""Readings of one pair from which their spread means something."""
_MAD_FROM: Final = 8
"""Nodes from which the spread of their effects means something."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The parts, as natural logarithms of ratios, and how sure they are."""

    typical: float
    effects: Mapping[str, float]
    """Only of nodes with partners enough."""
    errors: Mapping[str, float]
    """Standard error of each effect."""
    residuals: Mapping[Match, float]
    noise: float
    """Standard deviation of one reading."""

    def residual_error(self, match: Match, *, readings: Sequence[float]) -> float:
        """Standard error of a residual whose pair gave these readings. Some pairs are noisier than most."""
        noise = max(self.noise, spread(readings)) if len(readings) >= _SPREAD_FROM else self.noise
        own = _MEDIAN_ERROR * noise / math.sqrt(len(readings)) if len(readings) > 1 else noise
        return math.hypot(own, *(self.errors.get(node, 0.0) for node in match.nodes))


def fit(
    values: Mapping[Match, float],
    *,
    blocks: Mapping[Match, float] | None = None,
    assumed_noise: float = 0.0,
) -> Fit:
    """Fit ``values``, the natural logarithm of each match's busbw; at least one.

    ``blocks``: what of a match belongs to neither node, and is taken off first. ``assumed_noise``: the least that the
    noise is taken for where too few pairs were read to estimate it.
    """
    taken = {match: value - (blocks or {}).get(match, 0.0) for match, value in values.items()}
    around: dict[str, list[tuple[float, str]]] = {}
    for match, value in taken.items():
        for node in match.nodes:
            around.setdefault(node, []).append((value, match.partner(node)))
    own = {
        node: median([value for value, _ in matches])
        for node, matches in sorted(around.items())
        if len(matches) >= PARTNERS
    }
    # Beginning at zero, few nodes can settle where one bad node's slowness is shared out among its partners, and no
    # step of one effect alone leads away from there. So a start at the nodes' own medians is tried too.
    middle, upper = median(taken.values()), median(own.values()) if own else 0.0
    starts = [(middle, dict.fromkeys(own, 0.0)), (upper, {node: value - upper for node, value in own.items()})]
    typical, effects = min(
        ((typical, _polished(effects, around, typical=typical)) for typical, effects in starts),
        key=lambda found: sum(abs(each) for each in _residuals(taken, found[1], typical=found[0]).values()),
    )
    if effects and len(effects) == len(around):  # a shift of all effects is twice that of what is typical
        shift = median(effects.values())
        effects = {node: effect - shift for node, effect in effects.items()}
        typical += 2 * shift
    residuals = _residuals(taken, effects, typical=typical)
    noise = _noise(residuals, free=len(taken) - len(effects), assumed=assumed_noise)
    least = MAD * median(abs(each) for each in effects.values()) if len(effects) >= _MAD_FROM else 0.0
    errors = {node: max(_MEDIAN_ERROR * noise / math.sqrt(len(around[node])), least) for node in effects}
    return Fit(typical=typical, effects=effects, errors=errors, residuals=residuals, noise=noise)


def _polished(
    effects: dict[str, float], around: Mapping[str, list[tuple[float, str]]], *, typical: float
) -> dict[str, float]:
    """The effects once each is the median of what the others leave for it; changes ``effects``."""
    for _ in range(_SWEEPS):
        moved = 0.0
        for node, before in effects.items():
            own = median([value - typical - effects.get(other, 0.0) for value, other in around[node]])
            moved = max(moved, abs(own - before))
            effects[node] = own
        if moved < _STILL:
            break
    return effects


def _residuals(values: Mapping[Match, float], effects: Mapping[str, float], *, typical: float) -> dict[Match, float]:
    return {
        match: value - typical - sum(effects.get(node, 0.0) for node in match.nodes) for match, value in values.items()
    }


def spread(values: Sequence[float]) -> float:
    """Standard deviation of normal values, from the median of their distances to the median."""
    middle = median(values)
    return MAD * median([abs(each - middle) for each in values])


def _noise(residuals: Mapping[Match, float], *, free: int, assumed: float) -> float:
    """Of one reading. A fit with few free values follows them, so that their residuals are too small."""
    if free < 1:
        return assumed
    found = spread(list(residuals.values())) * math.sqrt(len(residuals) / free)
    return found if free >= _FREE else max(found, assumed)

"""Two measurements side by side: the change at each size, and whether it is more than noise.

Invariant: only equal things are compared (collective, ranks, placement, size); averages over a sweep never are. A
change counts when it exceeds the noise of repeats, measured where there are repeats, else assumed and said so.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, Literal

import msgspec

from interlace.verify.curve import size_name, spread
from interlace.verify.run import Run

Meaning = Literal["faster", "slower", "same"]

ASSUMED_NOISE: Final = 0.10
"""Of one measurement on an unknown fabric: TCPX and TCPXO vary so much."""
FLOOR: Final = 0.03
"""No smaller change means anything, however little repeats vary."""
_SIGMAS: Final = 3.0
_REPEATS: Final = 3
"""From so many samples on the spread is measured."""
_TESTED: Final = 5
"""From so many samples on both sides on a change must also pass a rank test."""
_SIGNIFICANT: Final = 0.01
_EXACT: Final = 24
"""Values up to which all ways to share them out are counted."""


class Key(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What is compared: the same in both measurements."""

    collective: str
    ranks: int
    place: str
    size: int


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One size in both measurements; bandwidths are medians of busbw in GB/s."""

    collective: str
    ranks: int
    place: str
    size: int
    before: float
    after: float
    change: float
    """(after - before) / before, from the times where there are any."""
    noise: float
    """Relative spread of one measurement."""
    noise_measured: bool
    samples_before: int
    samples_after: int
    p: float | None
    """Of a Mann-Whitney test; None with fewer than five samples on a side."""
    meaning: Meaning

    @property
    def tolerance(self) -> float:
        """The relative change that noise explains."""
        return tolerance(self.noise)


class Sample(msgspec.Struct, frozen=True):
    """One measurement of a size."""

    busbw: float
    """GB/s, as printed: few digits where it is small."""
    speed: float | None
    """1/time: the same but for a factor, with all digits of the time; None where the time is of the CPU."""


Samples = dict[Key, list[Sample]]


def samples(runs: Iterable[Run]) -> Samples:
    """All measurements of runs whose collective and ranks are known, by what they can be compared with."""
    found: Samples = defaultdict(list)
    for run in runs:
        if run.collective is None or run.ranks is None or run.ranks < 2:
            continue
        for row in run.rows:
            for place, half in row.halves():
                if row.size > 0 and half.busbw > 0 and half.time_us > 0:
                    key = Key(collective=run.collective, ranks=run.ranks, place=place, size=row.size)
                    found[key].append(Sample(half.busbw, None if run.cpu_time else 1 / half.time_us))
    return dict(found)


def compare(before: Iterable[Run], after: Iterable[Run], *, assumed: float = ASSUMED_NOISE) -> tuple[Change, ...]:
    """The change at every size that both have, by collective, ranks, placement and size.

    ``assumed``: relative noise where neither side repeats a size three times.
    """
    old, new = samples(before), samples(after)
    return tuple(_change(key, old[key], new[key], assumed) for key in sorted(old.keys() & new.keys()))


def tolerance(noise: float) -> float:
    """The relative change that is no news: three times the noise, at least 3 %."""
    return max(FLOOR, _SIGMAS * noise)


def outcome(changes: Sequence[Change]) -> Literal["faster", "slower", "mixed", "same", "cannot tell"]:
    """One word for all sizes: a direction counts when some sizes took it and none the other."""
    if not changes:
        return "cannot tell"
    slower = any(change.meaning == "slower" for change in changes)
    faster = any(change.meaning == "faster" for change in changes)
    return "mixed" if slower and faster else "slower" if slower else "faster" if faster else "same"


def describe(change: Change) -> str:
    """``all_gather over 16 ranks at 1 GiB, in-place: 182 to 122 GB/s (-33 %, noise 10 % assumed): slower``."""
    how = "measured" if change.noise_measured else "assumed"
    return (
        f"{change.collective} over {change.ranks} ranks at {size_name(change.size)}, {change.place}:"
        f" {change.before:.4g} to {change.after:.4g} GB/s"
        f" ({change.change:+.1%}, noise {change.noise:.1%} {how}): {change.meaning}"
    )


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p of the rank test: exact for up to 24 values, else by the normal approximation.

    The approximation is not fit for few values: five against five that lie apart would not be significant at 0.01.
    """
    pool = sorted([(value, 0) for value in first] + [(value, 1) for value in second])
    total, m, n = len(pool), len(first), len(second)
    doubled: list[int] = []
    """Twice the rank of each value, which is whole where values are tied."""
    ties, at = 0.0, 0
    while at < total:
        end = at
        while end < total and pool[end][0] == pool[at][0]:
            end += 1
        doubled += [at + 1 + end] * (end - at)
        ties += (end - at) ** 3 - (end - at)
        at = end
    seen = sum(rank for rank, (_, side) in zip(doubled, pool, strict=True) if side == 0)
    if total <= _EXACT:
        return _exact(doubled, m, seen)
    variance = m * n / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(abs(seen - m * (total + 1)) / 2 - 0.5, 0.0) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def _exact(doubled: Sequence[int], m: int, seen: int) -> float:
    """The share of all ways to choose ``m`` of the ranks whose sum is as far from its mean as ``seen``, or farther."""
    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter() for _ in range(m))]
    for number, rank in enumerate(doubled, 1):
        for chosen in range(min(m, number), 0, -1):
            for old, count in ways[chosen - 1].items():
                ways[chosen][old + rank] += count
    mean = m * (len(doubled) + 1)
    far = sum(count for at, count in ways[m].items() if abs(at - mean) >= abs(seen - mean))
    return far / ways[m].total()


def _change(key: Key, before: Sequence[Sample], after: Sequence[Sample], assumed: float) -> Change:
    old, new = _speeds(before, after)
    spreads = [spread(side) for side in (old, new) if len(side) >= _REPEATS]
    noise = max(spreads, default=assumed)
    change = median(new) / median(old) - 1
    p = mann_whitney(old, new) if min(len(old), len(new)) >= _TESTED else None
    real = abs(change) > tolerance(noise) and (p is None or p < _SIGNIFICANT)
    return Change(
        collective=key.collective,
        ranks=key.ranks,
        place=key.place,
        size=key.size,
        before=median(each.busbw for each in before),
        after=median(each.busbw for each in after),
        change=change,
        noise=noise,
        noise_measured=bool(spreads),
        samples_before=len(old),
        samples_after=len(new),
        p=p,
        meaning="same" if not real else "faster" if change > 0 else "slower",
    )


def _speeds(before: Sequence[Sample], after: Sequence[Sample]) -> tuple[list[float], list[float]]:
    """What is compared: times where both sides have them, else bandwidths."""
    sides = [[each.speed for each in side if each.speed is not None] for side in (before, after)]
    if [len(side) for side in sides] == [len(before), len(after)]:
        return sides[0], sides[1]
    return [each.busbw for each in before], [each.busbw for each in after]

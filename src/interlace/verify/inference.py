"""How many ranks and which collective a table shows when the log does not say: from its numbers alone.

Invariant: where the numbers fit more than one answer there is none. One damaged row does not change an answer,
since the rows vote. Formulas: nccl-tests doc/PERFORMANCE.md; with S the printed size, t the time, n the ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlace.verify.layout import SIZES
from interlace.verify.number import Interval
from interlace.verify.run import Half, Row

DIVIDING = frozenset(
    {"all_gather", "reduce_scatter", "alltoall", "alltoallv", "gather", "scatter", "hypercube"}
)  # fmt: skip
"""Their count is one rank's part of the size."""
UNVARYING = frozenset({"all_reduce", "alltoall", "broadcast", "reduce", "sendrecv", "gather", "scatter", "hypercube"})
"""Their formula was the same in all builds."""
_THREE_RANKS = 4 / 3
"""Of all_reduce, the smallest ratio busbw/algbw beside that of two ranks, 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """algbw = S/t x ``algbw``, busbw = algbw x ``busbw``; None where that cannot be known."""

    algbw: float
    busbw: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """What the numbers say; None where they fit more than one answer."""

    collective: str | None = None
    ranks: int | None = None
    ranks_from: str | None = None
    old_formula: bool = False


def formula(collective: str | None, ranks: int | None, *, parts: int | None, old: bool = False) -> Formula:
    """The formula of a collective; without a name, of all those that have ``parts`` parts in a size.

    ``old``: all_gather and reduce_scatter of builds before June 2020 leave a rank's own part out of algbw.
    """
    n = ranks or (parts if parts and parts > 1 else None)
    if collective in {"broadcast", "reduce", "sendrecv"}:
        return Formula(algbw=1.0, busbw=1.0)
    if n is None:
        return Formula(algbw=1.0, busbw=None)
    if collective == "all_reduce":
        return Formula(algbw=1.0, busbw=2 * (n - 1) / n)
    if collective == "hypercube" or old:
        return Formula(algbw=(n - 1) / n, busbw=1.0)
    if collective in DIVIDING or (collective is None and parts is not None and parts > 1):
        return Formula(algbw=1.0, busbw=(n - 1) / n)
    return Formula(algbw=1.0, busbw=None)


def parts(rows: Sequence[Row]) -> int | None:
    """Into how many parts the size is divided, as most rows have it: size / (count x bytes of an element)."""
    votes: Counter[int] = Counter()
    exact = {row.size / amount for row in rows if (amount := row.count * SIZES[row.type]) and row.size}
    if len(exact) <= 1:
        value = exact.pop() if exact else 0.0
        return int(value) if value and value == int(value) else None
    for row in rows:
        amount = row.count * SIZES[row.type]
        if amount and row.size:
            votes[row.size // amount if row.size % amount == 0 else 0] += 1
    if not votes:
        return None
    winner, number = votes.most_common(1)[0]
    return winner if winner and number * 2 > votes.total() else None


def rate(row: Row, half: Half) -> Interval:
    """GB/s that size and time give."""
    return Interval.around(half.time_us, half.units[0]).dividing(row.size / 1e3)


def ratios(rows: Sequence[Row]) -> list[Interval]:
    """The ratio busbw / algbw of each half that says something about it."""
    found = []
    for row, half in _halves(rows):
        algbw = Interval.around(half.algbw, half.units[1])
        exact = algbw.meet(rate(row, half)) or algbw
        busbw = Interval.around(half.busbw, half.units[2])
        if exact.low > 0:
            found.append(Interval(max(0.0, busbw.low) / exact.high, busbw.high / exact.low))
    return found


def ring_ranks(rows: Sequence[Row]) -> Interval:
    """Ranks that busbw/algbw of all_reduce = 2(n-1)/n allows, where most halves agree."""
    spans = [
        Interval(2 / (2 - one.low), 2 / (2 - one.high) if one.high < 2 else float("inf"))
        for one in ratios(rows)
        if one.low < 2
    ]
    return _agreed(spans)


def is_single(rows: Sequence[Row]) -> bool:
    """One rank has no peer: busbw is zero by formula while algbw is that of a copy."""
    telling = [half for _, half in _halves(rows) if half.algbw >= 1]
    return bool(telling) and all(half.busbw == 0 for half in telling)


def infer(
    rows: Sequence[Row],
    *,
    ranks: int | None,
    unchecked: tuple[bool, bool],
    has_redop: bool,
    rccl: bool = False,
) -> Inference:
    """Collective and ranks of ``rows``; ``ranks`` are those that are known otherwise.

    ``unchecked``: whether all out-of-place and all in-place halves say N/A. ``has_redop``: the layout has that column.
    """
    in_place_unchecked = unchecked == (False, True)
    if is_single(rows):
        return Inference(ranks=1, ranks_from="ratio")
    number = parts(rows)
    reduces = any(row.redop not in {None, "none"} for row in rows)
    rooted = any(row.root is not None and row.root >= 0 for row in rows)
    if number is not None and number > 1:
        old = _is_old(rows, number)
        name = None
        if reduces:
            name = "reduce_scatter"
        elif not rooted and in_place_unchecked:
            name = "alltoall"
        elif not rooted and (rccl or old != has_redop):  # else alltoall before v2.13, or hypercube since then
            name = "all_gather"
        if unchecked == (True, True) and not reduces:  # alltoall looks the same
            name = None
        return Inference(collective=name, ranks=number, ranks_from="size/count", old_formula=old)
    if number is None:
        return Inference()
    return _undivided(rows, ranks=ranks, reduces=reduces, rooted=rooted, in_place_unchecked=in_place_unchecked)


def _undivided(
    rows: Sequence[Row], *, ranks: int | None, reduces: bool, rooted: bool, in_place_unchecked: bool
) -> Inference:
    if rooted:
        return Inference(collective="reduce" if reduces else "broadcast")
    if not reduces:
        return Inference()
    if in_place_unchecked:
        return Inference(collective="sendrecv")
    found = [one for one in ratios(rows) if not (1.0 in one and _THREE_RANKS in one)]  # the others fit anything
    if not found:
        return Inference()
    if sum(1.0 in one for one in found) * 2 > len(found):  # two ranks of all_reduce look like sendrecv
        return Inference(collective={None: None, 2: "all_reduce"}.get(ranks, "sendrecv"))
    whole = ring_ranks(rows).integers()
    sure = len(whole) == 1
    return Inference(collective="all_reduce", ranks=whole[0] if sure else None, ranks_from="ratio" if sure else None)


def _halves(rows: Sequence[Row]) -> Iterator[tuple[Row, Half]]:
    for row in rows:
        if row.oop is not None:
            yield row, row.oop
        if row.ip is not None:
            yield row, row.ip


def _is_old(rows: Sequence[Row], number: int) -> bool:
    """Whether algbw fits S/t x (n-1)/n, with busbw the same, better than S/t."""
    most = sum(half.algbw == half.busbw for _, half in _halves(rows))
    if not any(half.busbw and half.algbw == half.busbw for _, half in _halves(rows)):
        return False
    own = (number - 1) / number
    new = old = 0
    for row, half in _halves(rows):
        algbw, whole = Interval.around(half.algbw, half.units[1]), rate(row, half)
        new += bool(algbw.meet(whole)) and bool(algbw.scaled(own).meet(Interval.around(half.busbw, half.units[2])))
        old += half.algbw == half.busbw and bool(algbw.meet(whole.scaled(own)))
        if new >= most:  # as many as can ever be old
            return False
    return old > new


def _agreed(spans: Sequence[Interval]) -> Interval:
    """The stretch that most of the spans hold; everything if fewer than half of them agree."""
    edges = sorted([(span.low, 0) for span in spans] + [(span.high, 1) for span in spans])
    depth = best = 0
    low = high = 0.0
    open_at_best = False
    for at, closes in edges:
        if closes:
            if open_at_best:
                high, open_at_best = at, False
            depth -= 1
        else:
            depth += 1
            if depth > best:
                best, low, open_at_best = depth, at, True
    return Interval(low, high) if best * 2 > len(spans) else Interval(0.0, float("inf"))

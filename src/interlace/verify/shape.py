"""Shapes of a curve that name a cause: what the numbers alone say about why a run is slow.

Each test takes a curve and gives a sentence or None. Invariant: a shape never makes a verdict; it explains one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, Literal

import msgspec

from interlace.verify.curve import LARGE, MIB, Curve, Point, reaches, size_name, time_name

Kind = Literal["flat-time", "plateau", "socket-plateau", "nic-plateau", "dip", "row", "halves-differ", "falls", "scale"]

FLAT_FROM: Final = 128 * MIB
"""Healthy fabrics leave the flat part of the time curve long before."""
_FLAT_GROWTH: Final = 2.5
_FLAT_SPAN: Final = 16
_FLAT_SHARE: Final = 0.5
"""Beyond it the transfer itself, at the line rate, takes most of the time."""
_LEVEL: Final = 1.15
"""Two sizes are on one level if their bandwidths differ by less."""
_HALVES: Final = 0.15
_HALVES_FROM: Final = 512 * MIB
_DIP: Final = 5.0
_ROW: Final = 2.0
_FALL: Final = 0.85
_FALL_FROM: Final = 64 * MIB
_SCALE: Final = 0.6


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a curve looks like, in ``text`` (a clause with its figures), the likely cause and the next step."""

    kind: Kind
    text: str
    cause: str
    remedy: str
    line: int = 0


def shapes(main: Curve, *, other: Curve | None = None, rate: float | None = None) -> tuple[Shape, ...]:
    """All shapes of a run: ``main`` is its curve, ``other`` that of the other placement, ``rate`` the bound in GB/s."""
    tests = (
        flat_time(main, rate=rate) if rate else None,
        plateau(main, rate=rate) if rate else None,
        socket_plateau(main, rate=rate),
        dip(main) or slow_row(main),
        falls(main),
        halves_differ(main, other) if other is not None else None,
    )
    return tuple(shape for shape in tests if shape is not None)


def flat_time(curve: Curve, *, rate: float) -> Shape | None:
    """Time stays nearly the same up to 128 MiB or more: each step costs, not the data.

    ``rate`` in GB/s says how much of the time the transfer itself would need.
    """
    if len(curve.points) < 3:
        return None
    first = curve.points[0]
    flat = first
    for point in curve.points:
        transfer = point.time_us * point.busbw / rate
        if point.time_us > _FLAT_GROWTH * first.time_us or transfer > _FLAT_SHARE * point.time_us:
            break
        flat = point
    if not reaches(flat.size, FLAT_FROM) or flat.size < _FLAT_SPAN * first.size:
        return None
    times = [point.time_us for point in curve.points if point.size <= flat.size]
    return Shape(
        kind="flat-time",
        text=f"the time is flat from {size_name(first.size)} to {size_name(flat.size)}:"
        f" {time_name(min(times))} to {time_name(max(times))} for {flat.size // first.size} times the data",
        cause="each step has a high fixed cost: a daemon that polls, no tuner plugin, or CPU cores far from the NICs",
        remedy="Check that the tuner plugin is loaded, the CPU binding of ranks and interrupts, and the log of RxDM.",
        line=flat.line,
    )


def plateau(curve: Curve, *, rate: float) -> Shape | None:
    """The largest sizes stay at a whole fraction of the rate: NICs are unused."""
    top = _top(curve)
    if top is None:
        return None
    level = max(point.busbw for point in top)
    for parts in range(8, 1, -1):  # the most parts that the level does not exceed
        share = level * parts / rate
        if 0.80 <= share <= 1.02:
            return Shape(
                kind="plateau",
                text=f"bandwidth stays at {level:.4g} GB/s, {share:.0%} of 1/{parts} of the line rate",
                cause=f"only one in {parts} NICs carries data, or one flow a NIC",
                remedy="Count the devices in the `via NET/…` lines, and compare IFNAME with the Pod's interfaces.",
                line=top[-1].line,
            )
    return None


def socket_plateau(curve: Curve, *, rate: float | None) -> Shape | None:
    """The largest sizes stay where TCP over one interface ends: about 1.1, or 3 to 4 GB/s."""
    top = _top(curve)
    if top is None:
        return None
    level = max(point.busbw for point in top)
    if not (0.8 <= level <= 1.3 or 2.5 <= level <= 4.6) or (rate is not None and level > 0.05 * rate):
        return None
    return Shape(
        kind="socket-plateau",
        text=f"bandwidth stays at {level:.3g} GB/s from {size_name(top[0].size)} on",
        cause="this is what TCP sockets over one interface reach: the plugin was not used",
        remedy="Look for `Using network` in a log with NCCL_DEBUG=INFO, and for the plugin on LD_LIBRARY_PATH.",
        line=top[-1].line,
    )


def nic_plateau(curve: Curve, *, nic_rate: float) -> Shape | None:
    """On a family with NVLink across nodes: the largest sizes stay at what the node's NICs carry."""
    top = _top(curve)
    if top is None or max(point.busbw for point in top) > 1.1 * nic_rate:
        return None
    return Shape(
        kind="nic-plateau",
        text=f"bandwidth stays at {max(point.busbw for point in top):.4g} GB/s,"
        f" within the {nic_rate:.4g} GB/s of the node's NICs",
        cause="data went over the NICs and not over NVLink",
        remedy="Look for `MNNVL 1` in the log, at the ComputeDomain's status and at the fabric state of the GPUs.",
        line=top[-1].line,
    )


def dip(curve: Curve) -> Shape | None:
    """One or a few middle sizes are five times slower or more than smaller and larger ones."""
    points = curve.points
    best: tuple[float, Point, Point] | None = None
    for at in range(1, len(points) - 1):
        point = points[at]
        before = max(points[:at], key=lambda each: each.busbw)
        after = max(each.busbw for each in points[at + 1 :])
        depth = before.busbw / point.busbw if point.busbw > 0 else 0.0
        if depth >= _DIP and after >= before.busbw and (best is None or depth > best[0]):
            best = depth, point, before
    if best is None:
        return None
    depth, point, before = best
    return Shape(
        kind="dip",
        text=f"at {size_name(point.size)} bandwidth dips to {point.busbw:.4g} GB/s,"
        f" {depth:.2g} times below {size_name(before.size)}",
        cause="NCCL changes protocol or algorithm there, and the choice is wrong",
        remedy="Measure again with NCCL_PROTO and NCCL_ALGO fixed, and check the tuner plugin's version.",
        line=point.line,
    )


def slow_row(curve: Curve) -> Shape | None:
    """One size takes twice as long as the next larger one, or longer."""
    pairs = [pair for pair in pairwise(curve.points) if pair[0].time_us >= _ROW * pair[1].time_us]
    if not pairs:
        return None
    slow, next_one = max(pairs, key=lambda pair: pair[0].time_us / pair[1].time_us)
    return Shape(
        kind="row",
        text=f"{size_name(slow.size)} takes {time_name(slow.time_us)} where {size_name(next_one.size)}"
        f" takes {time_name(next_one.time_us)}",
        cause="a transient, another tenant, or first touch of buffers",
        remedy="Measure again, with -N 5 cycles.",
        line=slow.line,
    )


def falls(curve: Curve) -> Shape | None:
    """Bandwidth rises and falls again at the largest sizes."""
    large = curve.from_size(_FALL_FROM)
    if len(large) < 3:
        return None
    peak = max(large, key=lambda point: point.busbw)
    last = large[-1]
    if peak is last or last.busbw >= _FALL * peak.busbw:
        return None
    return Shape(
        kind="falls",
        text=f"bandwidth falls from {peak.busbw:.4g} GB/s at {size_name(peak.size)}"
        f" to {last.busbw:.4g} GB/s at {size_name(last.size)}",
        cause="registration of large buffers, a thermal or power limit of the GPUs, or another tenant",
        remedy="Look at the clocks and throttle reasons of the GPUs, and measure again.",
        line=last.line,
    )


def halves_differ(main: Curve, other: Curve) -> Shape | None:
    """Out of place and in place differ by more than 15 % at 512 MiB or more."""
    for point in reversed(main.from_size(_HALVES_FROM)):
        twin = other.at(point.size)
        if twin is None or min(point.busbw, twin.busbw) >= (1 - _HALVES) * max(point.busbw, twin.busbw):
            continue
        return Shape(
            kind="halves-differ",
            text=f"at {size_name(point.size)} {main.place} and {other.place} differ:"
            f" {point.busbw:.4g} and {twin.busbw:.4g} GB/s",
            cause="a transient, another tenant, or first touch of buffers",
            remedy="Measure again, with -N 5 cycles.",
            line=point.line,
        )
    return None


def scale(runs: Iterable[tuple[int, Curve]], *, rate: float | None) -> Shape | None:
    """The same collective on more nodes falls by nearly half or more: ``runs`` are (ranks, curve)."""
    tops = [(ranks, top[-1]) for ranks, curve in runs if (top := curve.from_size(LARGE))]
    for (few, small), (many, large) in pairwise(sorted(tops, key=lambda each: each[0])):
        reached = min(small.busbw, rate) if rate else small.busbw
        if many > few and large.size == small.size and large.busbw < _SCALE * reached:
            return Shape(
                kind="scale",
                text=f"{many} ranks reach {large.busbw:.4g} GB/s where {few} ranks reach {small.busbw:.4g} GB/s"
                f" at {size_name(large.size)}",
                cause="it shows only at scale: rails are crossed, or the network between the halves is oversubscribed",
                remedy="Set NCCL_CROSS_NIC=0, look at the placement's topology, and measure between the halves.",
                line=large.line,
            )
    return None


def _top(curve: Curve) -> tuple[Point, ...] | None:
    """The last points of at least 256 MiB that are on one level: two or more."""
    large = curve.from_size(LARGE)
    level = tuple(point for point in large if large[-1].busbw / _LEVEL <= point.busbw <= large[-1].busbw * _LEVEL)
    whole = len(level) >= 2 and level[-2:] == large[-2:]
    return level if whole else None

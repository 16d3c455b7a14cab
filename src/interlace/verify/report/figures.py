"""Curves of a group of runs: bus bandwidth over size with band and bound, and beside it the time.

Invariant: what is drawn stands in the table below it, and a value that was measured is never hidden by the axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from interlace.verify.curve import PLACES, Point, size_name, time_name
from interlace.verify.report.content import Group, lines
from interlace.verify.report.palette import stand_in
from interlace.verify.report.picture import MOST_ROWS, Picture, element
from interlace.verify.report.plotting import figure, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES: Final = {"out-of-place": ("first", "o", "-"), "in-place": ("second", "s", "--")}
_SIZE: Final = (5.2, 3.7)
"""Inches."""
_TICKS: Final = 7
_THIN: Final = 64
"""Runs that have a line of their own; more make a black area and a large file. The median is over all."""


def bandwidth(group: Group, *, id: str) -> Picture:
    """Bus bandwidth in GB/s over the size on an axis of powers of two. Raises PlottingError."""
    runs = [each.run for each in group.assessments]
    with figure(width=_SIZE[0], height=_SIZE[1]) as canvas:
        axes = canvas.subplots()
        _draw(axes, group, of=lambda point: point.busbw)
        _mark_wrong(axes, group)
        highest = max(point.busbw for place in PLACES for line in lines(runs, place) for point in line)
        highest = max(highest, *(point.busbw for line in _baselines(group) for point in line), 0.0)
        left, right = axes.get_xlim()
        if group.band is not None:
            _draw_band(axes, group, right=max(right, group.band.from_bytes * 1.6))
            if group.most is not None and highest > group.band.bound_gb_s:
                highest = max(highest, group.most)
                told = f"most of any algorithm, {group.most:.4g} GB/s"
                axes.axhline(group.most, color=stand_in("bound"), linewidth=1.0, linestyle="-.", label=told)
            highest = max(highest, group.band.bound_gb_s)
            right = max(right, group.band.from_bytes * 1.6)
        axes.set_xlim(left, right)
        axes.set_ylim(0, 1.08 * highest or 1.0)
        _name_sizes(axes)
        axes.set_ylabel("bus bandwidth, GB/s")
        _legend(axes)
        svg = svg_of(canvas)
    title = f"Bus bandwidth of {group.name} over the size of the message"
    description = _describe(group)
    return Picture(
        id=id,
        title=title,
        description=description,
        svg=element(svg, id=id, title=title, description=description),
        head=("size", "bytes", *_columns(group, "GB/s"), *(("share of bound",) if group.band is not None else ())),
        rows=_bandwidth_rows(group)[:MOST_ROWS],
        left_out=max(0, len(_sizes(group)) - MOST_ROWS),
    )


def times(group: Group, *, id: str) -> Picture:
    """Time over size, both on logarithmic axes: it shows the floor that a bandwidth hides. Raises PlottingError."""
    with figure(width=_SIZE[0], height=_SIZE[1]) as canvas:
        axes = canvas.subplots()
        _draw(axes, group, of=lambda point: point.time_us)
        floor = group.floor
        if floor is not None:
            left, right = axes.get_xlim()
            style = {"marker": "v", "linestyle": "none", "markersize": 9}
            axes.plot([floor.bytes], [floor.most_ms * 1000], color=stand_in("bound"), label=_most(group), **style)  # type: ignore[arg-type]
            axes.set_xlim(min(left, floor.bytes / 1.6), max(right, floor.bytes * 1.6))
        axes.set_yscale("log")
        _name_sizes(axes)
        _name_times(axes)
        axes.set_ylabel("time")
        _legend(axes)
        svg = svg_of(canvas)
    title = f"Time of {group.name} over the size of the message"
    description = _describe_times(group)
    return Picture(
        id=id,
        title=title,
        description=description,
        svg=element(svg, id=id, title=title, description=description),
        head=("size", "bytes", *_columns(group, "us")),
        rows=_rows(group, of=lambda point: f"{point.time_us:.6g}")[:MOST_ROWS],
        left_out=max(0, len(_sizes(group)) - MOST_ROWS),
    )


def _draw(axes: Axes, group: Group, *, of: Callable[[Point], float]) -> None:
    runs = [each.run for each in group.assessments]
    axes.set_xscale("log", base=2)
    axes.grid(visible=True, color=stand_in("grid"), linewidth=0.6)
    axes.set_axisbelow(True)
    for line in _baselines(group)[:1]:
        x, y = [point.size for point in line], [of(point) for point in line]
        axes.plot(x, y, color=stand_in("before"), linestyle=":", marker="D", markersize=3.5, label="baseline, median")
    for place, (name, marker, dash) in _STYLES.items():
        found = lines(runs, place)
        style = {"color": stand_in(name), "linestyle": dash}
        if len(found) > 1:
            for line in found[:_THIN]:
                axes.plot([point.size for point in line], [of(point) for point in line], linewidth=0.6, **style)  # type: ignore[arg-type]
        middle = _middle(found)
        if middle:
            told = f"{place}, median of {len(found)} runs" if len(found) > 1 else place
            x, y = [point.size for point in middle], [of(point) for point in middle]
            face = "none" if place == "in-place" else style["color"]  # where both agree, both are seen
            axes.plot(x, y, marker=marker, markersize=5, markerfacecolor=face, linewidth=1.6, label=told, **style)  # type: ignore[arg-type]


def _draw_band(axes: Axes, group: Group, *, right: float) -> None:
    band = group.band
    if band is None:
        return
    bound, passes, degraded = band.bound_gb_s, band.pass_share * band.bound_gb_s, band.degraded_share * band.bound_gb_s
    x = [band.from_bytes, right]
    axes.fill_between(x, passes, bound, color=stand_in("good"), alpha=0.22, linewidth=0, label="pass")
    axes.fill_between(x, degraded, passes, color=stand_in("middling"), alpha=0.22, linewidth=0, label="degraded")
    for value, dash in ((passes, ":"), (degraded, ":"), (bound, "-")):
        label = f"bound, {bound:g} GB/s" if value == bound else None
        axes.axhline(
            value, color=stand_in("bound"), linewidth=1.4 if value == bound else 0.8, linestyle=dash, label=label
        )
    for value, text in ((passes, f"pass from {passes:.4g}"), (degraded, f"degraded from {degraded:.4g}")):
        axes.text(0.015, value, text, transform=axes.get_yaxis_transform(), fontsize=8, va="bottom")


def _mark_wrong(axes: Axes, group: Group) -> None:
    wrong = [
        (row.size, half.busbw)
        for each in group.assessments
        for row in each.run.rows
        for _, half in row.halves()
        if half.wrong and row.size > 0 and math.isfinite(half.busbw)
    ]
    if wrong:
        x, y = zip(*wrong, strict=True)
        axes.plot(x, y, linestyle="none", marker="x", markersize=11, color=stand_in("bad"), label="wrong data")


def _legend(axes: Axes) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize=8.5)


def _name_sizes(axes: Axes) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator  # noqa: PLC0415

    left, right = axes.get_xlim()
    first, last = math.ceil(math.log2(max(left, 1))), math.floor(math.log2(right))
    step = max(1, math.ceil((last - first) / _TICKS))
    sizes = [2**power for power in range(first, last + 1, step)]
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_major_formatter(FixedFormatter([size_name(size) for size in sizes]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("size of the message (binary units)")


def _name_times(axes: Axes) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator  # noqa: PLC0415

    low, high = axes.get_ylim()
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, math.ceil((last - first) / _TICKS))
    axes.set_ylim(min(low, 10.0**first), max(high, 10.0 ** (first + 1)))
    ticks = [10.0**power for power in range(first, last + 1, step)]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FixedFormatter([time_name(tick) for tick in ticks]))
    axes.yaxis.set_minor_locator(NullLocator())


def _middle(found: Iterable[Sequence[Point]]) -> tuple[Point, ...]:
    """The median of several curves, size by size."""
    at: dict[int, list[Point]] = {}
    for line in found:
        for point in line:
            at.setdefault(point.size, []).append(point)
    return tuple(
        Point(
            size=size,
            time_us=median(each.time_us for each in points),
            busbw=median(each.busbw for each in points),
            samples=len(points),
        )
        for size, points in sorted(at.items())
    )


def _baselines(group: Group) -> list[tuple[Point, ...]]:
    found = next((line for place in PLACES if (line := _middle(lines(group.baseline, place)))), None)
    return [found] if found is not None else []


def _by_place(group: Group) -> dict[str, dict[int, Point]]:
    runs = [each.run for each in group.assessments]
    return {place: {each.size: each for each in _middle(lines(runs, place))} for place in PLACES}


def _sizes(group: Group) -> list[int]:
    return sorted({size for points in _by_place(group).values() for size in points})


def _columns(group: Group, unit: str) -> tuple[str, ...]:
    return tuple(f"{place}, {unit}" for place, points in _by_place(group).items() if points)


def _rows(group: Group, *, of: Callable[[Point], str]) -> tuple[tuple[str, ...], ...]:
    places = [points for points in _by_place(group).values() if points]
    return tuple(
        (size_name(size), str(size), *(of(points[size]) if size in points else "-" for points in places))
        for size in _sizes(group)
    )


def _bandwidth_rows(group: Group) -> tuple[tuple[str, ...], ...]:
    rows = _rows(group, of=lambda point: f"{point.busbw:.6g}")
    if group.band is None:
        return rows
    band, first = group.band, next(points for points in _by_place(group).values() if points)
    shares = [
        f"{first[size].busbw / band.bound_gb_s:.0%}" if size in first and size >= 0.98 * band.from_bytes else "-"
        for size in _sizes(group)
    ]
    return tuple((*row, share) for row, share in zip(rows, shares, strict=True))


def _describe(group: Group) -> str:
    sizes, places = _sizes(group), {place: points for place, points in _by_place(group).items() if points}
    told = [
        (
            f"Bus bandwidth in GB/s (10^9 bytes) from {size_name(sizes[0])} to {size_name(sizes[-1])}, size on a"
            f" logarithmic axis."
        )
    ]
    for place, points in places.items():
        last = points[max(points)]
        told.append(f"The {place} curve ends at {last.busbw:.4g} GB/s at {size_name(last.size)}.")
    if len(group.assessments) > 1:
        shown = min(_THIN, len(group.assessments))
        which = f"The first {shown} of {len(group.assessments)}" if shown < len(group.assessments) else f"{shown}"
        told.append(f"{which} runs are thin lines, the median of all is a thick one.")
    band = group.band
    if band is not None:
        told.append(
            f"The bound is {band.bound_gb_s:g} GB/s; from {size_name(band.from_bytes)} on a run passes from"
            f" {band.pass_share * band.bound_gb_s:.4g} GB/s and is degraded from"
            f" {band.degraded_share * band.bound_gb_s:.4g} GB/s."
        )
        if group.most is not None:
            told.append(f"No algorithm exceeds {group.most:.4g} GB/s.")
    else:
        told.append("No band was used for these runs.")
    return " ".join(told)


def _describe_times(group: Group) -> str:
    sizes, places = _sizes(group), {place: points for place, points in _by_place(group).items() if points}
    told = [f"Time from {size_name(sizes[0])} to {size_name(sizes[-1])}, both axes logarithmic."]
    for place, points in places.items():
        first, last = points[min(points)], points[max(points)]
        told.append(f"The {place} curve goes from {time_name(first.time_us)} to {time_name(last.time_us)}.")
    if group.floor is not None:
        told.append(f"{_most(group)[0].upper()}{_most(group)[1:]}.")
    return " ".join(told)


def _most(group: Group) -> str:
    floor = group.floor
    return f"at most {time_name(floor.most_ms * 1000)} at {size_name(floor.bytes)}" if floor is not None else ""

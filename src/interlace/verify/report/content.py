"""What a report is about: a judgement, pairs of nodes, or both; and the numbers that are picked out of them.

Pure. Invariant: the verdict of the whole is the worst of its parts, and names the part that decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from interlace.fabric import bands
from interlace.fabric.bands import Band
from interlace.verify.bandwidth import Assessment
from interlace.verify.curve import MIB, Curve, Point, curve, main_curve
from interlace.verify.judgement import Judgement
from interlace.verify.report.matrix import Matrix
from interlace.verify.run import Run
from interlace.verify.verdict import Verdict, worst

_KNEE: Final = 0.5
_SIMULATED: Final = "simulated"
_DRAWN: Final = float(1 << 60)
"""Beyond it no size, time or bandwidth is one that was measured."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a report says."""

    judgement: Judgement | None = None
    matrix: Matrix | None = None
    baseline: tuple[Run, ...] = ()

    @property
    def simulated(self) -> bool:
        """No hardware was measured: the pairs say so, or a log by the version of its program."""
        logs = any(_SIMULATED in (each.run.program or "") for each in self.assessments)
        return logs or (self.matrix is not None and self.matrix.simulated)

    @property
    def verdict(self) -> Verdict:
        """The worst of the parts."""
        return worst(each[0] for each in self.parts())

    @property
    def cause(self) -> str:
        """Of the part that decided, without its full stop."""
        verdict = self.verdict
        return next((cause for each, cause in self.parts() if each == verdict), "there is nothing to report")

    @property
    def remedy(self) -> str:
        """Of the part that decided."""
        if self.judgement is not None and self.judgement.verdict == self.verdict:
            return self.judgement.remedy
        return self.matrix.remedy if self.matrix is not None else ""

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """Of the judgement's runs."""
        return self.judgement.assessments if self.judgement is not None else ()

    def parts(self) -> Iterator[tuple[Verdict, str]]:
        """Verdict and cause of the logs, then of the pairs."""
        if self.judgement is not None:
            yield self.judgement.verdict, self.judgement.cause
        if self.matrix is not None:
            yield self.matrix.conclusion()


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that share a picture: of one collective over the same number of ranks."""

    collective: str | None
    ranks: int | None
    assessments: tuple[Assessment, ...]
    band: Band | None = None
    floor: bands.Floor | None = None
    most: float | None = None
    """GB/s that no algorithm exceeds, where it is more than the bound."""
    baseline: tuple[Run, ...] = ()

    @property
    def name(self) -> str:
        """``all_gather over 16 ranks``."""
        return self.assessments[0].name


class Highlight(msgspec.Struct, frozen=True, kw_only=True):
    """One size that tells much about a run."""

    what: str
    """``latency``, ``knee`` or ``peak``."""
    point: Point
    bound: float | None = None
    """GB/s, where it holds for this size."""
    most_us: float | None = None
    """The most that the size should take."""


def groups(report: Report) -> tuple[Group, ...]:
    """Runs with something to draw, in the order of the log."""
    found: dict[tuple[str | None, int | None], list[Assessment]] = {}
    for each in report.assessments:
        if drawn(main_curve(each.run)):
            found.setdefault((each.run.collective, each.run.ranks), []).append(each)
    return tuple(
        Group(
            collective=collective,
            ranks=ranks,
            assessments=tuple(members),
            band=next((band for each in members if (band := band_of(report, each)) is not None), None),
            floor=next((floor for each in members if (floor := _floor(report, each)) is not None), None),
            most=next((most for each in members if (most := _most(report, each)) is not None), None),
            baseline=tuple(run for run in report.baseline if (run.collective, run.ranks) == (collective, ranks)),
        )
        for (collective, ranks), members in found.items()
    )


def band_of(report: Report, assessment: Assessment) -> Band | None:
    """The band that the run was held against; None where it was held against something else, or nothing."""
    if report.judgement is None or assessment.bound is None:
        return None
    for each in bands.table().bands:
        of_it = each.family == report.judgement.family and assessment.run.collective in each.collectives
        if of_it and each.bound_gb_s == assessment.bound:
            return each
    return None


def highlights(report: Report, assessment: Assessment) -> tuple[Highlight, ...]:
    """Latency, knee and peak of a run, as far as it has them; none of them twice."""
    points = drawn(main_curve(assessment.run))
    if not points:
        return ()
    peak = points[-1]
    small = Curve(place="", points=points).at(MIB)
    first = small if small is not None else points[0]
    knee = next(point for point in points if point.busbw >= _KNEE * max(each.busbw for each in points))
    band, floor = band_of(report, assessment), _floor(report, assessment)
    most = floor.most_ms * 1000 if floor is not None and small is not None else None
    bound = band.bound_gb_s if band is not None and peak.size >= 0.98 * band.from_bytes else None
    picked = [
        Highlight(what="latency", point=first, most_us=most),
        Highlight(what="knee", point=knee),
        Highlight(what="peak", point=peak, bound=bound),
    ]
    return tuple(each for each in picked if each.what == "peak" or (each.point is not peak and _own(each, picked)))


def drawn(line: Curve) -> tuple[Point, ...]:
    """Points that fit on an axis."""
    return tuple(
        point
        for point in line.points
        if all(math.isfinite(each) and each < _DRAWN for each in (float(point.size), point.time_us, point.busbw))
    )


def lines(runs: Sequence[Run], place: str) -> tuple[tuple[Point, ...], ...]:
    """The curves of one placement, those without points left out."""
    return tuple(points for run in runs if (points := drawn(curve(run, place))))


def _own(highlight: Highlight, picked: Sequence[Highlight]) -> bool:
    return highlight.what == "latency" or highlight.point is not picked[0].point


def _most(report: Report, assessment: Assessment) -> float | None:
    band, nodes, ranks = band_of(report, assessment), assessment.nodes, assessment.run.ranks
    if band is None or band.scope != "nodes" or nodes is None or nodes < 2 or not ranks:
        return None
    return bands.most_busbw(band.bound_gb_s, nodes=nodes, ranks=ranks)


def _floor(report: Report, assessment: Assessment) -> bands.Floor | None:
    """The floor that the run was held against: it is one of two nodes where traffic leaves them."""
    band = band_of(report, assessment)
    if band is None or (band.scope == "nodes" and assessment.nodes != 2):
        return None
    return bands.floor(band.family, scope=band.scope)

"""One run against what its hardware should reach: by the site's baseline, else by the table of bands.

Invariant: what was not measured (one rank, no data moved, results not checked, sizes too small, hardware without a
band) is never a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from interlace.fabric import bands
from interlace.fabric.bands import Band, Scope
from interlace.fabric.family import Family
from interlace.verify.arithmetic import contradictions
from interlace.verify.assertions import SELF_FAILING
from interlace.verify.baseline import stand
from interlace.verify.comparison import ASSUMED_NOISE, describe
from interlace.verify.curve import LARGE, Curve, curve, main_curve, reaches, size_name, time_name
from interlace.verify.run import Run, is_reversed
from interlace.verify.shape import Shape, nic_plateau, shapes
from interlace.verify.verdict import Evidence, Verdict, worst

_NOISE: Final = {"tcpx": 0.10, "tcpxo": 0.10, "rdma": 0.03, "nvlink": 0.01}
"""Relative spread of repeats on healthy nodes, by transport of the family."""
_SHOWN: Final = 16
"""Sizes that are named one by one."""
_IMPOSSIBLE: Final = 1.02
"""Above the bound by more than rounding and clocks explain."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run took place, as far as it matters for what it should reach."""

    family: Family | None = None
    nodes: int | None = None
    scope: Scope | None = "nodes"
    """None: beyond one NVLink domain, where both kinds of links carry data."""


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """What one run is worth."""

    run: Run
    verdict: Verdict
    cause: str
    """A clause."""
    remedy: str = ""
    judged: bool = True
    """False: there is no band, so that this run says nothing for or against the fabric."""
    nodes: int | None = None
    size: int | None = None
    """The size that decided."""
    busbw: float | None = None
    bound: float | None = None
    evidence: tuple[Evidence, ...] = ()
    shapes: tuple[Shape, ...] = ()

    @property
    def name(self) -> str:
        """``all_gather over 16 ranks``."""
        return run_name(self.run)


def run_name(run: Run) -> str:
    """How a run is called in sentences."""
    ranks = f" over {run.ranks} rank{'s' if run.ranks > 1 else ''}" if run.ranks else ""
    return f"{run.collective or 'unknown collective'}{ranks}"


def assumed_noise(family: Family | None) -> float:
    """Relative spread of repeats on healthy nodes of the family; of the noisiest if none is given."""
    if family is None:
        return ASSUMED_NOISE
    return _NOISE["nvlink" if family.node.mnnvl else family.node.transport]


def assess(run: Run, *, place: Place, baseline: Sequence[Run] | None = None) -> Assessment:
    """Judge one run by its own numbers."""
    draft = _Draft(run, place)
    unusable = _unusable(run)
    if unusable is not None:
        return draft.done("cannot tell", *unusable)
    if _wrong(run):
        return draft.wrong()
    wrong_numbers = contradictions(run)
    draft.say("numbers", *(each for each in run.warnings if each not in wrong_numbers))
    if wrong_numbers:
        draft.say("numbers", *wrong_numbers)
        return draft.done(
            "cannot tell",
            f"the numbers contradict each other: {wrong_numbers[0]}",
            "Judge the log as the program wrote it, not a copy made by hand.",
        )
    draft.look()
    if baseline is not None:
        return draft.by_baseline(baseline)
    return draft.by_band()


def _unusable(run: Run) -> tuple[str, str] | None:
    """Why the run measures nothing, and what to do; None if it does."""
    if not run.rows:
        return "no row of the table is complete", "Run the test again and keep the whole log."
    if is_reversed(run.rows):
        return (
            "the lines of the log come newest first",
            "Give it oldest first: gcloud logging read --order=asc, or tac.",
        )
    if run.ranks == 1:
        return "one rank ran, and a collective of one rank moves nothing", "Run at least two ranks, on two nodes."
    if not main_curve(run).points:
        return "all sizes are zero: no data was moved", "Begin with a larger size: -b 1M."
    if run.ranks is None:
        return "the number of ranks is not known", "Judge the whole log, with its lines of ranks."
    return None


def _wrong(run: Run) -> bool:
    return bool(run.wrong_total or run.out_of_bounds)


class _Draft:
    """An assessment in the making."""

    def __init__(self, run: Run, place: Place) -> None:
        self.run, self.family, self.nodes, self.scope = run, place.family, place.nodes, place.scope
        self.curve: Curve = main_curve(run)
        self.evidence: list[Evidence] = []
        self.shapes: tuple[Shape, ...] = ()
        self.size: int | None = None
        self.busbw: float | None = None
        self.bound: float | None = None
        self.slow_start = ""

    def say(self, kind: str, *texts: str, line: int = 0) -> None:
        """Add evidence."""
        for text in texts:
            self.evidence.append(Evidence(kind=kind, text=text, source=self.run.source, line=line or None))

    def look(self) -> None:
        """The shapes of the curve, where the fabric between nodes carried it."""
        if (self.nodes or 1) < 2:
            return
        band, rate = self.band(), None
        if self.family is not None and self.scope == "nodes":
            rate = band.bound_gb_s if band is not None else self.family.node.nics * self.family.node.nic_gbps / 8
        other = curve(self.run, "in-place") if self.curve.place == "out-of-place" else None
        self.shapes = shapes(self.curve, other=other, rate=rate)
        if self.family is not None and self.scope == "nvlink":
            nics = self.family.node.nics * self.family.node.nic_gbps / 8
            over_nics = nic_plateau(self.curve, nic_rate=nics)
            self.shapes = (over_nics, *self.shapes) if over_nics is not None else self.shapes

    def band(self) -> Band | None:
        """The band of the table, if there is one."""
        if self.family is None or self.scope is None or self.run.collective is None:
            return None
        return bands.band(self.family.id, scope=self.scope, collective=self.run.collective)

    def wrong(self) -> Assessment:
        """Data arrived wrong: no bandwidth is reported."""
        wrong = self.run.wrong_total or self.run.out_of_bounds
        what = "wrong elements" if self.run.wrong_total else "failed checks"
        self.say("data", f"{wrong} {what} in {run_name(self.run)}")
        if self.run.collective == SELF_FAILING:
            return self.done("cannot tell", "hypercube fails its own check on good hardware", "Measure all_gather.")
        return self.done("fail", f"data arrived wrong: {wrong} {what}", "Do not use these nodes until it is explained.")

    def by_baseline(self, baseline: Sequence[Run]) -> Assessment:
        """The site's own figures decide."""
        standing = stand(self.run, baseline, noise=assumed_noise(self.family))
        if standing is None:
            return self.done(
                "cannot tell",
                f"the baseline has no sound {run_name(self.run)} at these sizes",
                "Give a baseline of the same collective, number of ranks and sizes, with right data.",
                judged=False,
            )
        changed = [describe(change) for change in standing.changes if change.meaning != "same"]
        self.say("baseline", standing.text, *changed[:_SHOWN])
        if len(changed) > _SHOWN:
            self.say("baseline", f"{len(changed) - _SHOWN} more sizes changed")
        return self.finish(standing.verdict, standing.text)

    def by_band(self) -> Assessment:
        """The table of bands decides, at the largest size that it is for."""
        missing = self.why_no_band()
        if missing:
            return self.unbanded(*missing)
        band, last = self.band(), self.curve.points[-1]
        if band is None:  # why_no_band() has said so
            raise RuntimeError("a band was expected")
        share = last.busbw / band.bound_gb_s
        figures = (
            f"{last.busbw:.4g} GB/s at {size_name(last.size)}, {share:.0%} of the bound of {band.bound_gb_s:g} GB/s"
        )
        self.size, self.busbw, self.bound = last.size, last.busbw, band.bound_gb_s
        if not reaches(last.size, LARGE) or (share < band.pass_share and not reaches(last.size, band.from_bytes)):
            return self.too_small(band, figures, share)
        most = self.most()
        if most is not None and last.busbw > most * _IMPOSSIBLE:
            self.say("bandwidth", f"{figures}; no algorithm can exceed {most:.4g} GB/s", line=last.line)
            return self.done(
                "cannot tell",
                f"{last.busbw:.4g} GB/s is more than the NICs can carry, so that the measurement is wrong",
                "Check that the ranks ran on different nodes, and that --family and --nodes are right.",
            )
        verdict = _grade(band, share)
        limits = f"pass from {band.pass_share:.0%}, degraded from {band.degraded_share:.0%}"
        self.say("bandwidth", f"{figures} ({limits})", line=last.line)
        if most is not None and self.run.collective == "all_reduce" and self.nodes == 2:
            room = f"{last.busbw / most:.0%} of the {most:.4g} GB/s that a tree could reach over two nodes"
            self.say("bandwidth", f"{room}; NCCL_ALGO=Ring shows the NICs alone")
        verdict = self.lesser_half(band, verdict)
        return self.finish(self.latency(verdict), figures)

    def why_no_band(self) -> tuple[str, str] | None:
        """Why the table cannot judge this run, and what to do."""
        family, nodes, ranks = self.family, self.nodes, self.run.ranks or 0
        if family is None:
            return "the hardware is not known", "Name it with --family, or give a baseline."
        if nodes is None:
            return "the number of nodes is not known", "Give --nodes."
        if nodes < 2:
            return (
                "one node does not use the fabric between nodes, and no band for one node is known",
                "Measure over two nodes, or give a baseline.",
            )
        if ranks != nodes * family.node.gpus:
            return (
                f"bands are for whole nodes of {family.node.gpus} GPUs, and {ranks} ranks ran on {nodes} nodes",
                "Use all GPUs of each node, or give a baseline.",
            )
        if self.scope is None:
            most = family.node.domain_nodes
            return f"no band is known beyond the {most} nodes of one NVLink domain", "Give a baseline."
        if self.run.collective is None:
            return "the collective is not known", "Judge the whole log, or a run of all_gather."
        if self.band() is None:
            where = "over NVLink between nodes" if self.scope == "nvlink" else f"between nodes of {family.id}"
            return f"no band is known for {self.run.collective} {where}", "Measure all_reduce, or give a baseline."
        return None

    def unbanded(self, why: str, remedy: str) -> Assessment:
        """Nothing to hold it against; but what cannot be fast is said all the same."""
        last = self.curve.points[-1]
        self.size, self.busbw = last.size, last.busbw
        self.say("bandwidth", f"{last.busbw:.4g} GB/s at {size_name(last.size)}", line=last.line)
        fallen = next((shape for shape in self.shapes if shape.kind in ("nic-plateau", "socket-plateau")), None)
        if fallen is not None and self.scope == "nvlink" and reaches(last.size, LARGE):
            return self.done("fail", f"{fallen.text}: {fallen.cause}", fallen.remedy)
        return self.done("cannot tell", why, remedy, judged=False)

    def too_small(self, band: Band, figures: str, share: float) -> Assessment:
        """The sweep ends before bandwidth can be judged; what is plainly latency still is."""
        self.say("bandwidth", f"{figures}, and bandwidth is judged from {size_name(band.from_bytes)} on")
        fallen = next((shape for shape in self.shapes if shape.kind == "nic-plateau"), None)
        if fallen is not None and share < band.degraded_share:
            return self.done("fail", f"{fallen.text}: {fallen.cause}", fallen.remedy)
        verdict = self.latency("cannot tell")
        if verdict == "degraded":
            return self.finish(verdict, figures)
        largest = size_name(self.curve.points[-1].size)
        if self.run.unfinished:
            return self.done(
                "cannot tell",
                f"the log ends at {largest}, before the test does, and that is too small to judge bandwidth",
                "See what ended the test (killed, evicted, hung, out of time), and run it again.",
            )
        return self.done(
            "cannot tell",
            f"the largest size is {largest}, too small to judge bandwidth",
            f"Measure up to {size_name(band.from_bytes)} or more.",
        )

    def lesser_half(self, band: Band, verdict: Verdict) -> Verdict:
        """A pass becomes degraded where the other placement falls below the band and differs by more than 15 %."""
        differ = any(shape.kind == "halves-differ" for shape in self.shapes)
        other = curve(self.run, "in-place").points if self.curve.place == "out-of-place" else ()
        if verdict == "pass" and differ and other and other[-1].size == self.curve.points[-1].size:
            return worst((verdict, "degraded" if _grade(band, other[-1].busbw / band.bound_gb_s) != "pass" else "pass"))
        return verdict

    def latency(self, verdict: Verdict) -> Verdict:
        """The floor of time: above it a pass is only degraded."""
        family = self.family
        floor = bands.floor(family.id, scope=self.scope) if family is not None and self.scope is not None else None
        point = self.curve.at(floor.bytes) if floor is not None else None
        if floor is None or point is None or (self.scope == "nodes" and self.nodes != 2):
            return verdict
        most = floor.most_ms * 1000
        high = point.time_us > most
        text = f"{size_name(floor.bytes)} takes {time_name(point.time_us)}, at most {time_name(most)} is expected"
        self.say("latency", text, line=point.line)
        self.slow_start = text if high else ""
        return "degraded" if high and verdict in ("pass", "cannot tell") else verdict

    def most(self) -> float | None:
        """The bound that no algorithm exceeds, in GB/s."""
        if self.family is None or self.scope != "nodes" or self.nodes is None or self.run.ranks is None:
            return None
        rate = self.family.node.nics * self.family.node.nic_gbps / 8
        return bands.most_busbw(rate, nodes=self.nodes, ranks=self.run.ranks)

    def finish(self, verdict: Verdict, figures: str) -> Assessment:
        """Name the cause that the shape of the curve tells, and refuse a pass of unchecked data."""
        if verdict == "pass" and (self.run.checked is False or not _was_checked(self.run)):
            self.say("data", "no count of wrong elements was made")
            return self.done("cannot tell", f"{figures}, but the data were not checked", "Measure again with -c 1.")
        if verdict == "pass" and self.run.unfinished:
            why = f"{figures}, but the log ends before the test does"
            return self.done(
                "cannot tell", why, "Judge the whole log; if this is all of it, the test hung or was ended."
            )
        if verdict == "pass":
            return self.done(verdict, figures)
        shape = self.shapes[0] if self.shapes else None
        told = [figures, self.slow_start if verdict == "degraded" else "", shape.text if shape is not None else ""]
        remedy = f"{shape.cause[0].upper()}{shape.cause[1:]}. {shape.remedy}" if shape is not None else ""
        return self.done(verdict, "; ".join(each for each in told if each), remedy)

    def done(self, verdict: Verdict, cause: str, remedy: str = "", *, judged: bool = True) -> Assessment:
        """The assessment; shapes are named behind the figures."""
        for shape in self.shapes:
            self.say("shape", shape.text, line=shape.line)
        return Assessment(
            run=self.run,
            verdict=verdict,
            cause=cause,
            remedy=remedy,
            judged=judged,
            nodes=self.nodes,
            evidence=tuple(self.evidence),
            shapes=self.shapes,
            size=self.size,
            busbw=self.busbw,
            bound=self.bound,
        )


def _was_checked(run: Run) -> bool:
    """Whether any result was compared, with a count or with a deviation."""
    counted = any(half.wrong is not None for row in run.rows for _, half in row.halves())
    return counted or bool(run.checked)


def _grade(band: Band, share: float) -> Verdict:
    if share >= band.pass_share:
        return "pass"
    return "degraded" if share >= band.degraded_share else "fail"

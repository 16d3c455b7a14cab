"""What a report says in words, in the order in which it is read, whatever form it takes.

Pure; plain text that each form escapes in its own way. Invariant: no form leaves out a section that has something.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from interlace.verify.curve import size_name, time_name
from interlace.verify.report.content import Highlight, Report, highlights
from interlace.verify.run import Run
from interlace.verify.verdict import Evidence

SIMULATED = "Simulated: no hardware was measured. Bandwidths come from a model."


class Section(msgspec.Struct, frozen=True):
    """A heading with its items."""

    title: str
    items: tuple[str, ...]


def facts(report: Report) -> tuple[tuple[str, str], ...]:
    """Name and value of what was measured."""
    judgement, matrix = report.judgement, report.matrix
    told: list[tuple[str, str]] = []
    if judgement is not None:
        told.append(("family", judgement.family or "not given, so that no band applies"))
        told.append(("nodes", str(judgement.nodes) if judgement.nodes is not None else "not known"))
        told.append(("transport", judgement.transport or "not known: the log has no lines of NCCL about it"))
        sources = tuple(dict.fromkeys(each.run.source for each in judgement.assessments))
        told += [("logs", ", ".join("stdin" if each == "-" else each for each in sources))] if sources else []
    if matrix is not None:
        rails = [rail for rail in matrix.rails() if rail is not None]
        on = f" on {len(rails)} rails" if rails else ""
        told.append(("pairs", f"{len(matrix.pairs)} of {len(matrix.nodes)} nodes{on}"))
    return tuple(told)


def sections(report: Report) -> Iterator[Section]:
    """Evidence first, then what the verdict does not rest on."""
    judgement, matrix = report.judgement, report.matrix
    if matrix is not None and matrix.findings:
        yield Section("Named as bad", tuple(each.text for each in matrix.findings))
    if judgement is None:
        return
    parts = (
        Section("Evidence", tuple(_evidence(each) for each in judgement.evidence)),
        Section("Not tested", judgement.not_tested),
        Section("Runs that disagree", judgement.disagreements),
        Section(
            "Seen, without consequence here",
            tuple(f"{each.signature.id}: {each.signature.cause}" for each in judgement.noted),
        ),
    )
    yield from (each for each in parts if each.items)


def measured(report: Report) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Head and rows of expected against measured, at the sizes that tell most."""
    rows = []
    for each in report.assessments:
        for number, one in enumerate(highlights(report, each)):
            first = (each.name, each.verdict) if number == 0 else ("", "")
            rows.append((*first, one.what, size_name(one.point.size), f"{one.point.busbw:.4g} GB/s",
                         time_name(one.point.time_us), _expected(one)))  # fmt: skip
    return ("run", "verdict", "where", "size", "bus bandwidth", "time", "expected"), tuple(rows)


def wrong_data(run: Run) -> str:
    """What is known of a run's data, in a clause."""
    if run.wrong_total:
        return f"{run.wrong_total} wrong elements"
    if run.out_of_bounds:
        return f"{run.out_of_bounds} failed checks"
    return "not checked" if run.checked is False or run.wrong_total is None else "all right"


def _expected(highlight: Highlight) -> str:
    if highlight.bound is not None:
        return f"bound {highlight.bound:g} GB/s: {highlight.point.busbw / highlight.bound:.0%} of it"
    return f"at most {time_name(highlight.most_us)}" if highlight.most_us is not None else "-"


def _evidence(evidence: Evidence) -> str:
    place = [f"{evidence.log} log"] if evidence.log is not None else []
    if evidence.source not in {None, "-"}:
        place.append(f"{evidence.source}" if evidence.line is None else f"{evidence.source}:{evidence.line}")
    elif evidence.line is not None:
        place.append(f"line {evidence.line}")
    place += [f"rank {evidence.rank}"] if evidence.rank is not None else []
    place += [f"host {evidence.host}"] if evidence.host is not None else []
    return f"{evidence.kind}: {evidence.text}" + (f" [{', '.join(place)}]" if place else "")

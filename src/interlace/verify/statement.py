"""A judgement as people and programs read it: lines of text with the verdict first, and the documented JSON.

Invariant: both say the same, and neither holds anything of a log but what was quoted as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlace.verify.bandwidth import Assessment
from interlace.verify.causes import Finding
from interlace.verify.comparison import Change, outcome
from interlace.verify.judgement import Judgement
from interlace.verify.verdict import Evidence


def lines(judgement: Judgement) -> Iterator[str]:
    """The verdict with its cause, the remedy, then evidence and what was not tested."""
    yield f"{judgement.verdict}: {judgement.cause}."
    if judgement.remedy:
        yield f"Remedy: {judgement.remedy}"
    yield from _section("Evidence", [_evidence(each) for each in judgement.evidence])
    yield from _section("Not tested", judgement.not_tested)
    yield from _section("Runs that disagree", judgement.disagreements)
    yield from _section("Seen, without consequence here", [_noted(each) for each in judgement.noted])
    if len(judgement.assessments) > 1:
        runs = [f"{each.verdict}: {each.name}: {each.cause}" for each in judgement.assessments]
        yield from _section("Runs", runs)


def document(judgement: Judgement) -> dict[str, Any]:
    """The documented JSON (docs/verdicts.md)."""
    return {
        "verdict": judgement.verdict,
        "cause": judgement.cause,
        "remedy": judgement.remedy,
        "family": judgement.family,
        "nodes": judgement.nodes,
        "transport": judgement.transport,
        "evidence": [
            {
                "kind": each.kind,
                "text": each.text,
                "log": each.log,
                "source": each.source,
                "line": each.line,
                "rank": each.rank,
                "host": each.host,
            }
            for each in judgement.evidence
        ],
        "causes": [_finding(each) for each in judgement.causes],
        "noted": [_finding(each) for each in judgement.noted],
        "not_tested": list(judgement.not_tested),
        "disagreements": list(judgement.disagreements),
        "runs": [_run(each) for each in judgement.assessments],
    }


def comparison_document(changes: tuple[Change, ...]) -> dict[str, Any]:
    """The documented JSON of a comparison."""
    return {
        "outcome": outcome(changes),
        "changes": [
            {
                "collective": each.collective,
                "ranks": each.ranks,
                "place": each.place,
                "size": each.size,
                "before": each.before,
                "after": each.after,
                "change": each.change,
                "noise": each.noise,
                "noise_measured": each.noise_measured,
                "samples_before": each.samples_before,
                "samples_after": each.samples_after,
                "p": each.p,
                "meaning": each.meaning,
            }
            for each in changes
        ],
    }


def _section(title: str, items: tuple[str, ...] | list[str]) -> Iterator[str]:
    if items:
        yield ""
        yield f"{title}:"
        yield from (f"  - {item}" for item in items)


def _evidence(evidence: Evidence) -> str:
    place = [f"{evidence.log} log"] if evidence.log is not None else []
    if evidence.source not in (None, "-"):
        place.append(f"{evidence.source}" if evidence.line is None else f"{evidence.source}:{evidence.line}")
    elif evidence.line is not None:
        place.append(f"line {evidence.line}")
    if evidence.rank is not None:
        place.append(f"rank {evidence.rank}")
    if evidence.host is not None:
        place.append(f"host {evidence.host}")
    shown = f"{evidence.kind}: {evidence.text}" + (f" [{', '.join(place)}]" if place else "")
    return "".join(character if character.isprintable() else "?" for character in shown)


def _noted(finding: Finding) -> str:
    where = f" (line {finding.event.line})" if finding.event is not None else ""
    return f"{finding.signature.id}: {finding.signature.cause}{where}"


def _finding(finding: Finding) -> dict[str, Any]:
    event, sign = finding.event, finding.signature
    return {
        "signature": sign.id,
        "cause": sign.cause,
        "remedy": sign.remedy,
        "effect": sign.effect,
        "stage": sign.stage,
        "detail": finding.detail,
        "log": sign.log,
        "source": event.source if event is not None else None,
        "line": event.line if event is not None else None,
        "time": event.time if event is not None else None,
        "count": finding.count,
        "ranks": list(finding.ranks),
        "hosts": list(finding.hosts),
        "consequences": [each.signature.id for each in finding.consequences],
    }


def _run(assessment: Assessment) -> dict[str, Any]:
    run = assessment.run
    return {
        "verdict": assessment.verdict,
        "judged": assessment.judged,
        "cause": assessment.cause,
        "remedy": assessment.remedy,
        "collective": run.collective,
        "ranks": run.ranks,
        "nodes": assessment.nodes,
        "size": assessment.size,
        "busbw": assessment.busbw,
        "bound": assessment.bound,
        "shapes": [each.kind for each in assessment.shapes],
        "source": run.source,
        "line": run.line,
    }

"""What a tournament is worth: verdict, cause, findings, and the document that reports are made of. Pure.

Invariant: ``pass`` needs every pair measured, nothing named, and a band that says how fast a pair should be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from interlace.fabric.bands import Band
from interlace.verify.attribution import Attribution, Finding
from interlace.verify.measurement import Reading
from interlace.verify.pairing import Level
from interlace.verify.schedule import Plan
from interlace.verify.tournament import Played
from interlace.verify.verdict import Verdict

_SEVERE: Final = 0.8125
"""Share of what is expected below which slow is a failure: the bands' lower edge over their upper one."""
_REMEDY: Final = {
    "node": "Take the node out (cordon it) and run `interlace verify run` with it and a good one, to see its logs.",
    "link": "Look at the path between the two nodes: cable, switch ports, routes; both nodes are well with others.",
    "pair": "Measure both nodes with others: one pair alone does not tell a node from its link.",
    "uplink": "Look at the links between these two racks or blocks.",
    "all": "Look at what all nodes share: plugin, driver, environment, fabric; `interlace verify run` says which.",
}


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    verdict: Verdict
    cause: str
    """A sentence without its full stop."""
    remedy: str = ""
    findings: tuple[Finding, ...] = ()


def stand(found: Attribution, played: Played, readings: Sequence[Reading], *, bands: Mapping[Level, Band]) -> Standing:
    """Judge a tournament."""
    findings = tuple(_explained(each, readings) for each in found.findings)
    pairs = len({each.match for each in readings})
    left = played.left + len(played.not_measured)
    if findings:
        severe = any(each.fault != "slow" or (each.share or 0.0) < _SEVERE for each in findings)
        told = "; ".join(each.text for each in findings)
        return Standing(
            verdict="fail" if severe else "degraded",
            cause=told,
            remedy=_REMEDY[findings[0].kind],
            findings=findings,
        )
    if not readings:
        return Standing(verdict="cannot tell", cause="no pair was measured")
    if left:
        reason = "the budget is used up" if played.stopped else played.not_measured[0][1]
        cause = f"nothing is wrong with the {pairs} pairs that were measured; {left} measurements are missing: {reason}"
        return Standing(verdict="cannot tell", cause=cause, remedy="Go on with --resume.")
    without = sorted({each.match.level for each in readings} - set(bands))
    if without:
        cause = f"no node or link stands out among {pairs} pairs, and how fast they should be is not known"
        return Standing(verdict="cannot tell", cause=cause)
    return Standing(
        verdict="pass", cause=f"no node or link stands out among {pairs} pairs, which reach what they should"
    )


def document(
    standing: Standing,
    found: Attribution,
    plan: Plan,
    readings: Sequence[Reading],
    *,
    bands: Mapping[Level, Band],
    racks: Mapping[str, str],
    simulated: bool,
    gpu_hours: float,
) -> dict[str, Any]:
    """The documented JSON of ``verify pairs`` (docs/measuring.md), which ``verify report --pairs`` reads."""
    latest = {each.match: each for each in sorted(readings, key=lambda reading: reading.key)}
    pairs = [
        {
            "a": match.a,
            "b": match.b,
            "rail": match.rail,
            "level": match.level,
            "outcome": "measured" if match in found.pairs else reading.outcome,
            "busbw": round(found.pairs[match], 4) if match in found.pairs else None,
            "readings": sum(each.match == match for each in readings),
            "note": reading.note,
        }
        for match, reading in latest.items()
    ]
    return {
        "verdict": standing.verdict,
        "cause": standing.cause,
        "remedy": standing.remedy,
        "simulated": simulated,
        "nodes": [
            {
                "name": node,
                "rack": racks.get(node, ""),
                "clique": plan.cliques.get(node, ""),
                "share": round(found.effects[node], 4) if node in found.effects else None,
            }
            for node in plan.nodes
        ],
        "pairs": pairs,
        "findings": [_finding(each) for each in standing.findings],
        "expected": {
            level: {
                "bound": band.bound_gb_s,
                "pass": round(band.pass_share * band.bound_gb_s, 3),
                "degraded": round(band.degraded_share * band.bound_gb_s, 3),
                "source": band.why,
            }
            for level, band in bands.items()
        },
        "typical": [
            {"level": level, "rail": rail, "busbw": round(value, 4), "noise": round(found.noise[level, rail], 5)}
            for (level, rail), value in found.typical.items()
        ],
        "measurements": len(readings),
        "gpu_hours": round(gpu_hours, 4),
    }


def _finding(each: Finding) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "names": list(each.names),
        "fault": each.fault,
        "level": each.level,
        "rail": each.rail,
        "share": round(each.share, 4) if each.share is not None else None,
        "busbw": round(each.busbw, 4) if each.busbw is not None else None,
        "readings": each.readings,
        "text": each.text,
    }


def _explained(finding: Finding, readings: Iterable[Reading]) -> Finding:
    """With what most of its measurements say about themselves, and most others do not."""
    if finding.note or finding.fault != "slow" or finding.kind not in {"node", "link", "pair"}:
        return finding
    own = [each for each in readings if set(finding.names) <= set(each.match.nodes)]
    notes = Counter(each.note for each in own if each.note)
    for note, count in notes.most_common(1):
        others = [each for each in readings if each not in own]
        if 2 * count > len(own) and 2 * sum(each.note == note for each in others) < max(1, len(others)):
            return msgspec.structs.replace(finding, note=note)
    return finding

"""From a launched test of two nodes to its one reading. Pure."""

from __future__ import annotations

from interlace.fabric.family import Family
from interlace.verify.curve import main_curve
from interlace.verify.judgement import judge
from interlace.verify.launch import Launched
from interlace.verify.measurement import Outcome, Reading
from interlace.verify.schedule import Task
from interlace.verify.tournament import NotMeasuredError


def reading_of(task: Task, launched: Launched, *, family: Family) -> Reading:
    """Bandwidth at the largest size, or why there is none. Raises NotMeasuredError if no node is to blame."""
    if launched.end == "not placed":
        raise NotMeasuredError(launched.why)
    logs = launched.logs
    judgement = judge(logs.runs, logs.events, family=family, nodes=2)
    points = [point for run in logs.runs for point in main_curve(run).points]
    cause = judgement.causes[0].signature.cause if judgement.causes else ""
    outcome: Outcome
    busbw: float | None = None
    if any(run.wrong_total for run in logs.runs):
        outcome, note = "wrong data", "results differ from what they should be"
    elif points:
        outcome, note, busbw = "measured", cause, max(points, key=lambda point: point.size).busbw
    else:
        outcome, note = "failed", cause or launched.why or "no table of nccl-tests was read"
    return Reading(
        match=task.match,
        stage=task.stage,
        attempt=task.attempt,
        outcome=outcome,
        busbw=busbw,
        size=max((point.size for point in points), default=None),
        seconds=round(launched.seconds, 3),
        note=note,
    )

"""Requests of a run by phase, component and kind, from the API server's own audit log.

Nothing is counted by those who cause it. Pure: records in, tables out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from bench.domains.record import Requests
from interlace.sim.audit import READS
from interlace.sim.plane import AuditRecord

BENCH = "bench"
"""The harness itself."""


def kind(record: AuditRecord) -> str:
    """Name of the field of `Requests` that a request counts in."""
    if record.resource == "leases":
        return "lease"
    if record.verb in READS:
        return record.verb
    if record.code == 409 and record.reason == "Conflict":
        return "conflicts"
    return "refused" if record.code >= 400 else "writes"


def describe(record: AuditRecord) -> str:
    """``verb resource/subresource``, with what became of a refused write."""
    what = f"{record.verb} {record.resource}" + (f"/{record.subresource}" if record.subresource else "")
    found = kind(record)
    return f"{what} ({found})" if found in {"conflicts", "refused"} else what


def tabulate(
    records: Iterable[AuditRecord],
    *,
    component: Callable[[str], str],
    phases: Mapping[str, tuple[float, float]],
) -> tuple[dict[str, dict[str, Requests]], dict[str, dict[str, dict[str, int]]]]:
    """Counts and details by phase, for requests received within [begin, end) of it."""
    counts: dict[str, dict[str, Requests]] = {phase: {} for phase in phases}
    details: dict[str, dict[str, Counter[str]]] = {phase: {} for phase in phases}
    for record in records:
        for phase, (begin, end) in phases.items():
            if begin <= record.time < end:
                who, what = component(record.user), kind(record)
                entry = counts[phase].setdefault(who, Requests())
                setattr(entry, what, getattr(entry, what) + 1)
                details[phase].setdefault(who, Counter())[describe(record)] += 1
    return counts, {
        phase: {who: dict(counter.most_common()) for who, counter in table.items()} for phase, table in details.items()
    }


def steps(
    records: Iterable[AuditRecord], *, component: Callable[[str], str], who: Iterable[str], begin: float, end: float
) -> dict[str, float]:
    """When each write of ``who`` came first and last, seconds after ``begin``: where the time goes inside a driver."""
    wanted = set(who)
    found: dict[str, list[float]] = {}
    for record in records:
        name = component(record.user)
        if name in wanted and begin <= record.time < end and kind(record) not in {*READS, "lease"}:
            found.setdefault(f"{name}: {describe(record)}", []).append(record.time - begin)
    return {
        f"{what}, {which}": round(moment, 3)
        for what, moments in found.items()
        for which, moment in (("first", min(moments)), ("last", max(moments)))
    }

"""From what was seen in logs to the first cause, with its consequences folded under it.

Rank by time and by rank: the earliest sign that is not a consequence wins, wherever it stands; lines such as "closed
by remote peer" come after the death that they report. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from interlace.verify.assertions import Scene, asserted
from interlace.verify.events import LogEvent
from interlace.verify.signatures import Signature, named, said, sight, signatures

_NCCL: Final = frozenset({"INFO", "WARN", "TRACE", "ABORT", "CALL"})
UNKNOWN: Final = "unknown-warning"
"""Stands for the first warning that no signature knows."""
_ANY: Final = "*"
_NO_RANK: Final = 2**31
"""Logs of daemons and launchers stand behind those of ranks where nothing has a time."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A signature that was seen, or asserted, in the logs of a run."""

    signature: Signature
    event: LogEvent | None = None
    """The first line that shows it; None where numbers show it."""
    order: int = 0
    count: int = 1
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    detail: str = ""
    consequences: tuple[Finding, ...] = ()

    @property
    def serious(self) -> bool:
        """Whether a run with it cannot be trusted or did not end."""
        return self.signature.effect in ("corrupts", "stops", "breaks", "diverts")

    @property
    def ends(self) -> bool:
        """Whether other signs may be its consequences: it is serious, and more than another way for the data."""
        return self.serious and self.signature.effect != "diverts"


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Findings without those folded under another, the first cause first."""

    causes: tuple[Finding, ...] = ()
    """Serious ones, in the order in which they happened."""
    slow: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    """Harmless by themselves, or overcome."""
    began: bool = False
    """Whether any line of NCCL is there."""


def in_order(events: Iterable[LogEvent]) -> list[LogEvent]:
    """Events of one or several logs in the order in which they happened, as far as their times tell.

    Lines without a time keep their place behind the last timed line of their log. Where a log has no times at all
    the logs stand one behind the other, those of low ranks first.
    """
    items = list(events)
    sources = {event.source for event in items}
    last: dict[str, datetime] = {}
    ranks: dict[str, int] = {}
    stamped: list[tuple[datetime, LogEvent]] = []
    for event in items:
        if event.rank is not None:
            ranks[event.source] = min(event.rank, ranks.get(event.source, _NO_RANK))
        stamp = moment(event.time)
        if stamp is not None:
            last[event.source] = stamp
        stamped.append((last.get(event.source, datetime.min.replace(tzinfo=UTC)), event))
    if len(sources) < 2:
        return items
    if set(last) != sources:
        return sorted(items, key=lambda event: ranks.get(event.source, _NO_RANK))
    return [event for _, event in sorted(stamped, key=lambda each: each[0])]


def moment(stamp: str | None) -> datetime | None:
    """A time as a log gives it; None if it cannot be placed (no date, no known form)."""
    if not stamp:
        return None
    try:
        found = datetime.fromisoformat(stamp.strip("[] "))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def diagnose(scene: Scene, events: Sequence[LogEvent]) -> Diagnosis:
    """All that the events and the scene show, ordered and folded."""
    events = in_order(events)
    places = {id(event): at for at, event in enumerate(events)}
    found = [
        Finding(
            signature=each.signature,
            event=each.first,
            order=each.order,
            count=each.count,
            ranks=each.ranks,
            hosts=each.hosts,
        )
        for each in sight(events)
        if all(scene.holds(circumstance) for circumstance in each.signature.when)
    ]
    for assertion in asserted(scene, events):
        event = assertion.event
        order = len(events) if event is None else places.get(id(event), len(events))
        found.append(Finding(signature=named(assertion.id), event=event, order=order, detail=assertion.detail))
    found += _unknown(found, events)
    began = next((at for at, event in enumerate(events) if event.level in _NCCL), None)
    overcome = [each for each in found if _overcome(each, began)]
    folded = fold(each for each in found if each not in overcome)
    return Diagnosis(
        causes=tuple(each for each in folded if each.serious),
        slow=tuple(each for each in folded if each.signature.effect == "slows"),
        notes=(*overcome, *(each for each in folded if each.signature.effect == "notes")),
        began=began is not None,
    )


def _overcome(finding: Finding, began: int | None) -> bool:
    """Whether the launcher tried again with success: NCCL began after it."""
    return finding.signature.stage == "launch" and began is not None and finding.order < began


def fold(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put each consequence under the earliest of its causes; what is left is in order, wrong data before all."""
    items = sorted(findings, key=_rank)
    independent = [each for each in items if each.ends and _ANY not in each.signature.follows]
    under: dict[str, str] = {}
    for item in items:
        others = [each for each in items if each is not item]
        if _ANY in item.signature.follows:
            # Where all are consequences, the earliest stands for what nobody wrote down.
            causes = independent or [each for each in others if each.ends and _rank(each) < _rank(item)]
        else:
            causes = [each for each in others if each.signature.id in item.signature.follows]
        if causes:
            under[item.signature.id] = causes[0].signature.id
    roots = {each.signature.id: _root(each.signature.id, under) for each in items}
    return tuple(
        msgspec.structs.replace(
            each,
            consequences=tuple(
                other for other in items if other is not each and roots[other.signature.id] == each.signature.id
            ),
        )
        for each in items
        if roots[each.signature.id] == each.signature.id
    )


def _root(name: str, under: dict[str, str]) -> str:
    seen = {name}
    while name in under and under[name] not in seen:
        name = under[name]
        seen.add(name)
    return name


def _rank(finding: Finding) -> tuple[int, int, int]:
    """Wrong data first, what only diverts behind what ends a run; then by time, then by rank."""
    effect = finding.signature.effect
    weight = 0 if effect == "corrupts" else 2 if effect == "diverts" else 1
    return weight, finding.order, min(finding.ranks, default=0)


def _unknown(found: Sequence[Finding], events: Sequence[LogEvent]) -> list[Finding]:
    """The first warning of NCCL, if no signature knows it and no independent cause comes before it."""
    known = [each.order for each in found if each.ends and _ANY not in each.signature.follows]
    for at, event in enumerate(events):
        if known and at >= min(known):
            return []
        if event.level == "WARN" and event.text.strip() and not any(each.matches(said(event)) for each in signatures()):
            ranks = () if event.rank is None else (event.rank,)
            return [Finding(signature=named(UNKNOWN), event=event, order=at, ranks=ranks)]
    return []

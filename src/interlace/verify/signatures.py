"""Known signatures: what a line of a log means, with cause and remedy.

They are data, one table a subject under ``known/``. Invariant: a signature is recognised by a fixed group of words
(a pattern only narrows it), never by a line number; those that no message announces are ``derived``: they are
asserted from facts in `causes`, and have no words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from itertools import islice
from typing import Final, Literal

import msgspec

from interlace.verify.events import LogEvent

Log = Literal["rank", "launcher", "sidecar", "daemon", "driver", "kernel", "kubernetes", "table"]
Effect = Literal["corrupts", "stops", "breaks", "diverts", "slows", "notes"]
Stage = Literal["scheduling", "image", "launch", "program", "nccl"]

_BATCH: Final = 500


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the table."""

    id: str
    log: Log
    """Whose log says it."""
    effect: Effect
    """``corrupts`` data; ``stops`` the run; ``breaks``: it goes on and is not to be trusted; ``diverts``: it goes on
    over another transport, and ends nothing; ``slows``; ``notes``."""
    cause: str
    """A clause without a full stop."""
    remedy: str
    """Sentences."""
    example: tuple[str, ...]
    """Lines that have it, as they look in a log."""
    words: tuple[str, ...] = ()
    """Any of them must be in the line."""
    pattern: str = ""
    without: str = ""
    when: tuple[str, ...] = ()
    """Circumstances that must hold too, by their names in `causes`: without them the line is harmless."""
    follows: tuple[str, ...] = ()
    """Signatures of which this is a consequence when they are seen; ``*``: of any other that is none itself."""
    stage: Stage = "nccl"
    """What was going on; all but ``nccl`` is before NCCL starts, and says nothing about the fabric."""
    derived: bool = False
    context: tuple[str, ...] = ()
    """Lines that must stand elsewhere in the log for the example to mean it."""

    def matches(self, text: str) -> bool:
        """Whether the line has it, circumstances apart."""
        return (
            any(words in text for words in self.words)
            and (not self.pattern or _compiled(self.pattern).search(text) is not None)
            and (not self.without or _compiled(self.without).search(text) is None)
        )


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """A signature in a log: where it was seen first, and how often."""

    signature: Signature
    first: LogEvent
    order: int
    """Position of the first event among all."""
    count: int
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()


@cache
def signatures() -> tuple[Signature, ...]:
    """The whole table, in its order."""
    found: list[Signature] = []
    folder = resources.files(__package__) / "known"
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".toml"):
            table = tomllib.loads(file.read_text(encoding="utf-8"))
            found += msgspec.convert(table["signature"], list[Signature])
    return tuple(found)


def named(id: str) -> Signature:
    """The signature of that id. Raises KeyError."""
    return _by_id()[id]


def sight(events: Iterable[LogEvent]) -> tuple[Sighting, ...]:
    """All signatures that have words in these events, in order of their first event.

    The order is that of the events: who mixes logs sorts them by time before.
    """
    seen: dict[str, list[tuple[int, LogEvent]]] = {}
    stream, start = iter(events), 0
    while batch := list(islice(stream, _BATCH)):
        lines = [said(event) for event in batch]
        text = "\n".join(lines)
        for signature in signatures():
            if any(words in text for words in signature.words):  # most are in no line of a batch
                hits = [(start + at, event) for at, event in enumerate(batch) if signature.matches(lines[at])]
                seen.setdefault(signature.id, []).extend(hits)
        start += len(batch)
    found = (_sighting(named(name), hits) for name, hits in seen.items() if hits)
    return tuple(sorted(found, key=lambda each: each.order))


def said(event: LogEvent) -> str:
    """What a signature is looked for in: the text, and the place in NCCL's source where the line names one."""
    return f"{event.where} {event.text}" if event.where else event.text


def _sighting(signature: Signature, hits: Sequence[tuple[int, LogEvent]]) -> Sighting:
    order, first = hits[0]
    return Sighting(
        signature=signature,
        first=first,
        order=order,
        count=len(hits),
        ranks=tuple(sorted({event.rank for _, event in hits if event.rank is not None})),
        hosts=tuple(sorted({event.host for _, event in hits if event.host})),
    )


@cache
def _by_id() -> dict[str, Signature]:
    return {each.id: each for each in signatures()}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)

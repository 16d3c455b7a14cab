"""What one measurement of two nodes gave.

Invariant: a reading without a bandwidth says why; a bandwidth with wrong data behind it is never used as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from interlace.verify.pairing import Match

Outcome = Literal["measured", "failed", "wrong data"]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of a match."""

    match: Match
    stage: int = 0
    """0 is the schedule; later stages look again at what was suspicious before them."""
    attempt: int = 0
    """Of this match in this stage, from 0."""
    outcome: Outcome = "measured"
    busbw: float | None = None
    """GB/s at the largest size; None if nothing was measured."""
    size: int | None = None
    """Bytes of that size."""
    seconds: float = 0.0
    """For which both nodes were held."""
    note: str = ""
    """Why it failed, or what else is worth knowing; a clause."""

    @property
    def key(self) -> tuple[Match, int, int]:
        """What makes it that measurement and no other."""
        return (self.match, self.stage, self.attempt)


def by_match(readings: Iterable[Reading]) -> Mapping[Match, list[Reading]]:
    """Readings of each match, in the order of stages and attempts, whatever order they came in."""
    found: dict[Match, list[Reading]] = {}
    for each in sorted(readings, key=lambda reading: reading.key):
        found.setdefault(each.match, []).append(each)
    return found

"""The four answers, and the evidence for one.

Invariant: ``pass`` is said only of what was measured; everything that could not be is ``cannot tell``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

Verdict = Literal["pass", "degraded", "fail", "cannot tell"]

_WORST_FIRST: Final[tuple[Verdict, ...]] = ("fail", "degraded", "cannot tell", "pass")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One fact that the verdict rests on."""

    kind: str
    """From the table: ``bandwidth``, ``latency``, ``shape``, ``data``, ``numbers``, ``baseline``; from other lines:
    ``transport``, ``log``; ``assumed`` is what nobody said."""
    text: str
    """A sentence without its full stop."""
    log: str | None = None
    """Whose log: ``rank``, ``sidecar``, ``daemon``, ``driver``, ``launcher``, ``kernel``, ``kubernetes``."""
    source: str | None = None
    """File or Pod."""
    line: int | None = None
    rank: int | None = None
    host: str | None = None


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """A failure outweighs all; then what is degraded; ``pass`` only if every run passes. None: cannot tell."""
    given = set(verdicts)
    return next((verdict for verdict in _WORST_FIRST if verdict in given), "cannot tell")

"""One row of the fault table: what is broken, when, and what must hold in the end.

Invariant: a row needs nobody. Where the fault itself lasts until a human ends it (a service of the host, say), the
row says so in ``human``, and its ``act`` checks that a condition tells the human what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from bench.faults.stage import Stage

Bed = Literal["real", "embedded"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """``act`` makes the fault and returns when the end state is reached; it raises if that does not come."""

    name: str
    """Unique, in words joined by hyphens."""
    fault: str
    when: str
    made: str
    """How the fault is made here."""
    holds: str
    """What must hold at the end."""
    act: Callable[[Stage], Awaitable[None]]
    bed: Bed = "real"
    limit: float = 120.0
    """Seconds for the whole row on a busy machine."""
    cheap: bool = False
    """Whether it is one of the tests that always run."""
    human: str = ""
    """Why a human has to end the fault, if one has to."""
    root: bool = False
    """Whether it can be made by root alone."""

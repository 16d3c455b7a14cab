"""When a changed node map is written, and when a changed status.

IMEX reloads a map at most every 5 s, so a map that is written while claims still come in costs the
late ones seconds. A change is therefore written as soon as no claim of the domain waits for
allocation and nothing more has changed for ``SETTLE``. While claims wait, it is written when the
scheduler has placed none for ``STALL``, and in any case ``LIMIT`` after the first change. Nodes that
only leave are in no hurry: they wait for a stall, so that a job that ends costs few writes. Status
follows at most once in ``STATUS_INTERVAL``, but that a domain is formed is said at once: people wait for it.
"""

from __future__ import annotations

from typing import Any

import msgspec

SETTLE = 0.03
"""Seconds without a further change."""
STALL = 0.3
"""Seconds without a further change while claims still wait: about what kubelet takes from binding to Prepare."""
LIMIT = 1.0
"""Seconds from the first change to the write, at the latest."""
STATUS_INTERVAL = 1.0
"""Seconds between two writes of one status; `status_due_in` knows the exception."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is not written yet."""

    what: Any
    """The state to be written, compared by ``==``."""
    since: float
    """When what is written stopped being what is wanted."""
    last: float
    """When what is wanted changed last."""


def observe(pending: Pending | None, *, wanted: Any, now: float) -> Pending:
    """Note at ``now`` that ``wanted`` differs from what is written."""
    if pending is None:
        return Pending(what=wanted, since=now, last=now)
    if pending.what == wanted:
        return pending
    return Pending(what=wanted, since=pending.since, last=now)


def map_due_in(pending: Pending, *, waiting: bool, grows: bool, now: float) -> float:
    """Seconds until the node map is written, 0 for now.

    ``waiting``: a claim of the domain is not allocated. ``grows``: a node comes or an address changes.
    """
    quiet = STALL if waiting or not grows else SETTLE
    return max(0.0, min(pending.since + LIMIT, pending.last + quiet) - now)


def status_due_in(*, written_at: float | None, formed: bool, now: float) -> float:
    """Seconds until a changed status may be written, 0 for now.

    ``written_at`` is the last write, if any; ``formed``: the domain is, and the status that was written says
    otherwise. That it is no longer formed waits its turn, so there are at most two writes in an interval.
    """
    return 0.0 if written_at is None or formed else max(0.0, written_at + STATUS_INTERVAL - now)

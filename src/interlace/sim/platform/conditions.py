"""Conditions as dicts: set one, keep the others, and notice when nothing changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any


def timestamp() -> str:
    """Now, as ``metav1.Time``: RFC 3339 in whole seconds."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_since(text: str | None, *, now: dt.datetime | None = None) -> float:
    """Age of an RFC 3339 time in seconds; 0 where there is none."""
    if not text:
        return 0.0
    moment = dt.datetime.fromisoformat(text)
    return ((now or dt.datetime.now(dt.UTC)) - moment).total_seconds()


def with_condition(
    conditions: Sequence[Mapping[str, Any]], *, type: str, status: str, reason: str, message: str
) -> list[dict[str, Any]] | None:
    """The whole list with one condition set; None if it says just that already.

    ``lastTransitionTime`` moves only when ``status`` does.
    """
    wanted = {"type": type, "status": status, "reason": reason, "message": message}
    before = next((condition for condition in conditions if condition.get("type") == type), None)
    if before is not None and all(before.get(key, "") == value for key, value in wanted.items()):
        return None
    moved = before is None or before.get("status") != status
    entry = dict(before or {}) | wanted
    if moved or not entry.get("lastTransitionTime"):
        entry["lastTransitionTime"] = timestamp()
    if before is None:
        return [*(dict(condition) for condition in conditions), entry]
    return [entry if condition is before else dict(condition) for condition in conditions]

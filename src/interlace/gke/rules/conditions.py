"""What conditions of objects say in words."""

from __future__ import annotations

from collections.abc import Iterable

from interlace.gke.observed.kubernetes import Condition


def refused(conditions: Iterable[Condition], type: str, reason: str) -> str | None:
    """What the controller says beside that reason; None if it does not give it."""
    for each in conditions:
        if each.type == type and each.status != "True" and each.reason == reason:
            return f" ({each.message})" if each.message else ""
    return None


def says(condition: Condition) -> str:
    """Reason and message, to go behind what is said of the object."""
    said = ": ".join(each for each in (condition.reason, condition.message) if each)
    return f": {said}" if said else ""

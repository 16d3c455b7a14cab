"""Fields of a body that are taken one by one, so that none can be forgotten.

Invariant: an export says everything that the body says, or ends with the field that the other tool has no word for.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from interlace.gke.errors import Refused

LONGEST_HOLD: Final = timedelta(days=180)
"""How long a hold is where the other tool has no word for "as long as the version is supported"."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """``notes``: what the other tool says otherwise, one sentence each."""

    text: str
    notes: tuple[str, ...] = ()


class Fields:
    """A copy of a body that gets emptier."""

    def __init__(self, body: dict[str, Any], *, of: str) -> None:
        self._body = copy.deepcopy(body)
        self._of = of

    def take(self, *path: str) -> Any:
        """The value of a field, which is then done with; None if it is not there."""
        parts = [self._body]
        for step in path[:-1]:
            inner = parts[-1].get(step)
            if not isinstance(inner, dict):
                return None
            parts.append(inner)
        found = parts[-1].pop(path[-1], None)
        for above, step in zip(reversed(parts[:-1]), reversed(path[:-1]), strict=True):
            if not above[step]:
                del above[step]
        return found

    def done(self, tool: str) -> None:
        """Raises Refused if something is left that ``tool`` cannot say."""
        left = next(_leaves(self._body), "")
        if left:
            raise Refused(
                f"{self._of} has {left}, which {tool} cannot say",
                cause=f"{tool} has no word for this field",
                remedy="export it as requests, or use interlace gke apply",
            )


def _leaves(value: Any, at: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{at}[{index}]")
    else:
        yield at


def end_of_hold(window: dict[str, Any]) -> tuple[str, bool]:
    """End of a maintenance exclusion, and whether it is ours because the body leaves it open."""
    if "endTime" in window:
        return window["endTime"], False
    start = datetime.fromisoformat(window["startTime"]).astimezone(UTC)
    return (start + LONGEST_HOLD).strftime("%Y-%m-%dT%H:%M:%SZ"), True


def last(reference: str) -> str:
    """Name at the end of a URL or path."""
    return reference.rpartition("/")[2]

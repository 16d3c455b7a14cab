"""JSON pointers (RFC 6901): where in a document a finding is.

Invariant: every pointer made here is valid, whatever the names of members are; a pointer may name a member that is
absent, which is how a finding says that something is missing.
"""

from __future__ import annotations

from collections.abc import Mapping


def pointer(*steps: str | int) -> str:
    """The pointer to a member, one step a level; no step is the whole document."""
    return "".join(f"/{_escape(str(step))}" for step in steps)


def moved(where: str, *, origins: Mapping[str, str]) -> str:
    """The same place in the document that a value came from.

    ``origins``: pointer in the value to pointer in that document; the longest one that is at or above ``where``
    counts. A place that no origin covers stays as it is.
    """
    upper = where
    while True:
        if upper in origins:
            return origins[upper] + where[len(upper) :]
        if not upper:
            return where
        upper = upper.rpartition("/")[0]


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")

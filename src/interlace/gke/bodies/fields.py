"""How bodies are put together: what was not said is not there.

Invariant: a field whose value is ``None`` never appears in a body, and neither does an object without fields; false,
zero and empty lists do appear, because they were said.
"""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]


def given(**values: Any) -> Body:
    """The fields that were said. A trailing underscore, for words of Python, is no part of a field's name."""
    return {name.rstrip("_"): value for name, value in values.items() if value is not None}


def nested(**values: Any) -> Body | None:
    """As ``given``, and nothing at all where nothing was said."""
    return given(**values) or None


def listed(values: Any) -> list[Any] | None:
    """A list of the values; nothing where there is none."""
    return list(values) or None

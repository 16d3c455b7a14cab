"""Why a value was refused, in the words of the real API server.

A ``Cause`` is one entry of ``status.details.causes``. Its message must equal the real server's to
the letter, because users and tests read it; every other rule module builds its findings here.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec


class Omit(enum.Enum):
    """Says that a message names no value."""

    OMIT = "omit"


OMIT: Final = Omit.OMIT


class Cause(msgspec.Struct, frozen=True):
    """One finding: ``field`` is a path such as ``spec.channel``, ``message`` the text without the path."""

    field: str
    message: str
    reason: str
    """``metav1.CauseType``, for example ``FieldValueInvalid``."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def wire(self) -> dict[str, str]:
        """The cause as it stands in a ``Status``."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class InOrder(dict[str, Any]):
    """A value that the server holds as a struct: shown in the order of its fields, where maps are sorted."""


def quote(text: str) -> str:
    """A string in double quotes, as the server prints it."""
    return json.dumps(text, ensure_ascii=False)


def show(value: Any) -> str:
    """A refused value as the server prints it: strings quoted, the rest as compact JSON."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    ordered = isinstance(value, InOrder)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=not ordered)


def _with_value(head: str, value: Any, detail: str) -> str:
    parts = [head]
    if value is not OMIT:
        parts.append(show(value))
    if detail:
        parts.append(detail)
    return ": ".join(parts)


def invalid(field: str, value: Any, detail: str) -> Cause:
    """A malformed value."""
    return Cause(field, _with_value("Invalid value", value, detail), "FieldValueInvalid")


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    """A value of another type than the schema asks for."""
    return Cause(field, _with_value("Invalid value", value, detail), "FieldValueTypeInvalid")


def required(field: str, detail: str = "") -> Cause:
    """A missing value."""
    return Cause(field, _with_value("Required value", OMIT, detail), "FieldValueRequired")


def forbidden(field: str, detail: str) -> Cause:
    """A well-formed value that is not allowed here, now, or for this user."""
    return Cause(field, _with_value("Forbidden", OMIT, detail), "FieldValueForbidden")


def duplicate(field: str, value: Any) -> Cause:
    """A value or key that must be unique and is not."""
    return Cause(field, _with_value("Duplicate value", value, ""), "FieldValueDuplicate")


def not_supported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    """A value outside an enumeration."""
    detail = "supported values: " + ", ".join(quote(s) for s in supported) if supported else ""
    return Cause(field, _with_value("Unsupported value", value, detail), "FieldValueNotSupported")


def too_long(field: str, limit: int) -> Cause:
    """A string above its limit in bytes."""
    detail = f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}"
    return Cause(field, _with_value("Too long", OMIT, detail), "FieldValueTooLong")


def too_many(field: str, count: int, limit: int) -> Cause:
    """A list or map above its limit."""
    noun = "item" if limit == 1 else "items"
    return Cause(field, _with_value("Too many", count, f"must have at most {limit} {noun}"), "FieldValueTooMany")


def summary(causes: Iterable[Cause]) -> str:
    """The causes in one line: alone as it is, several in brackets, equal ones once."""
    texts = list(dict.fromkeys(str(c) for c in causes))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"

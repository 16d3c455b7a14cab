"""What goes wrong between a cluster file and a cluster: one small tree.

Invariant: every error says what is wrong, why, and what to do, one sentence each. ``Refused`` and its children were
raised before anything was sent, and are ValueErrors, which end a verb with exit code 2; all others happened later.
"""

from __future__ import annotations


class GkeError(Exception):
    """``what`` is wrong (object, path and value), its ``cause`` and its ``remedy``; the last two may be empty."""

    def __init__(self, what: str, *, cause: str = "", remedy: str = "") -> None:
        super().__init__(what, cause, remedy)
        self.what = what
        self.cause = cause
        self.remedy = remedy

    def __str__(self) -> str:
        rest = (_capital(each) for each in (self.cause, self.remedy) if each)
        return " ".join(_stop(each) for each in (self.what, *rest))


class Refused(GkeError, ValueError):
    """Bad input; nothing was done."""


class SpecError(Refused):
    """One thing wrong in a cluster file: where it stands, counted from 1, and its JSON ``pointer``."""

    def __init__(
        self,
        what: str,
        *,
        file: str = "",
        line: int = 0,
        column: int = 0,
        pointer: str = "",
        value: str = "",
        cause: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(what, cause=cause, remedy=remedy)
        self.file = file
        self.line = line
        self.column = column
        self.pointer = pointer
        self.value = value

    def __str__(self) -> str:
        place = ":".join(str(each) for each in (self.file, self.line, self.column) if each)
        subject = f"{self.pointer} ({self.value})" if self.pointer and self.value else self.pointer
        parts = [part for part in (place, subject) if part]
        return ": ".join([*parts, super().__str__()])


class SpecErrors(Refused):
    """All that is wrong in a cluster file, in the order of the file."""

    def __init__(self, errors: tuple[SpecError, ...]) -> None:
        super().__init__("\n".join(str(each) for each in errors))
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self.errors)


def _stop(text: str) -> str:
    """With a stop at its end."""
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def _capital(text: str) -> str:
    """As a sentence begins; a command, and a word that is spelled in a way of its own, stay so."""
    word = text.partition(" ")[0]
    return text[0].upper() + text[1:] if word.isalpha() and word.islower() and word != "interlace" else text

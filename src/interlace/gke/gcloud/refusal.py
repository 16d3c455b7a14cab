"""What is refused in a page of commands, with the line where it stands.

Invariant: a page is refused whole, before anything is printed; nothing in it is ever guessed or left out in silence.
"""

from __future__ import annotations

from interlace.gke.errors import Refused


class PageError(Refused):
    """One thing in a page that is not taken. ``line``: counted from 1, of the page; 0 if it is about no line."""

    def __init__(self, what: str, *, line: int = 0, cause: str = "", remedy: str = "") -> None:
        super().__init__(what, cause=cause, remedy=remedy)
        self.line = line

    def __str__(self) -> str:
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{super().__str__()}"

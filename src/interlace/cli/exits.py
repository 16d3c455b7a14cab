"""Exit codes of every verb, and how an error ends one.

A verb raises ``Exit``; nothing else decides about exit codes. Bad input never shows a traceback.
"""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """What the shell gets."""

    GOOD = 0
    """Done and good."""
    BAD = 1
    """Done, and the answer is bad: findings, degraded, something left behind."""
    REFUSED = 2
    """Bad input, or refused before anything was done."""
    UNKNOWN = 3
    """Cannot tell; nothing was read."""
    FAILED = 4
    """Failed while doing: server unreachable, time-out."""
    INTERRUPTED = 130
    """Interrupted, after cleaning up."""


class Exit(Exception):
    """End the verb with ``code``; ``message``, if any, goes to stderr."""

    def __init__(self, code: Code, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message

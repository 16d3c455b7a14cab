"""What a person sees while programs are built: a line a program, live on a terminal.

Writes to stderr only, so that stdout stays for results.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator
from typing import TextIO

QUIET = 60.0
"""Seconds after which a step without a terminal says that it is still at work."""


class Progress:
    """Steps that take a while; one at a time."""

    def __init__(self, *, stream: TextIO = sys.stderr, quiet: bool = False) -> None:
        self._stream = stream
        self._silent = quiet
        self._live = not quiet and stream.isatty()
        self._name = ""
        self._started = 0.0
        self._spoken = 0.0
        self._count = 0
        self._waiting_since: float | None = None

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Progress]:
        """Announce ``name`` and, at the end, how long it took."""
        self._name, self._count = name, 0
        self._started = self._spoken = time.monotonic()
        self._draw("")
        try:
            yield self
        except BaseException:
            self._line(f"{name}: failed after {self._elapsed():.1f} s")
            raise
        packages = f", {self._count} packages compiled" if self._count else ""
        self._line(f"{name}: {self._elapsed():.1f} s{packages}")

    def advance(self, detail: str, *, count: int = 0) -> None:
        """Something happened within the step: show it live, or once a minute in a log."""
        self._count += count
        if self._live:
            self._draw(detail)
        elif time.monotonic() - self._spoken > QUIET:
            self._spoken = time.monotonic()
            self._line(f"{self._name}: {self._elapsed():.0f} s, {self._count} packages compiled, still building")

    def waiting(self, reason: str) -> None:
        """Say once that, and why, nothing happens."""
        if self._waiting_since is None:
            self._waiting_since = time.monotonic()
            self._line(f"waiting: {reason}")

    def waited(self) -> None:
        """Say how long the wait was, if there was one."""
        if self._waiting_since is not None:
            self._line(f"waited {time.monotonic() - self._waiting_since:.1f} s")
            self._waiting_since = None

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _draw(self, detail: str) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            text = f"{self._name}: {self._elapsed():.0f} s, {self._count} packages  {detail}"
            self._stream.write(f"\r\x1b[K{text[:width]}")
            self._stream.flush()

    def _line(self, text: str) -> None:
        if not self._silent:
            self._stream.write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")
            self._stream.flush()

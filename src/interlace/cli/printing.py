"""How answers reach a terminal or a file: rich on the one, plain text of full width in the other.

Invariant: what is not a terminal gets neither colour nor cursor movements nor lines broken to a width
that nobody has, whatever the environment says about colour.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TextIO

from rich.console import Console, RenderableType
from rich.table import Table

_FULL_WIDTH = 1000


def console_on(stream: TextIO) -> Console:
    """For people: ``is_terminal`` says whether the stream is one that a picture can be drawn on."""
    terminal = stream.isatty()
    console = Console(file=stream, highlight=False, force_terminal=terminal, width=None if terminal else _FULL_WIDTH)
    if console.is_dumb_terminal:
        return Console(file=stream, highlight=False, force_terminal=False)
    return console


def echo(renderable: RenderableType, *, stream: TextIO | None = None) -> None:
    """Print to stdout (or ``stream``); in a file no line ends with blanks."""
    stream = stream or sys.stdout
    if stream is None:  # closed by the caller, who wants the exit code alone
        return
    console = console_on(stream)
    if console.is_terminal:
        console.print(renderable)
        return
    with console.capture() as captured:
        console.print(renderable)
    stream.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def columns(*names: str) -> Table:
    """A table without lines, as kubectl prints it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def age(stamp: str | None, *, now: datetime | None = None) -> str:
    """Since an RFC 3339 time, as kubectl writes it: ``90s``, ``5m``, ``3d``; ``-`` for no time."""
    if not stamp:
        return "-"
    seconds = int(((now or datetime.now(UTC)) - datetime.fromisoformat(stamp)).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"

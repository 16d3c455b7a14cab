"""A run while it runs: bars on a terminal, a line for each change in a file. All of it on stderr.

Invariant: what is shown comes from `gke.progress` alone; nothing of it is needed to understand the result.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

    from interlace.gke.plan import Task
    from interlace.gke.progress import Progress
    from interlace.gke.scheduling import Ending

_ROWS = 12
"""Running tasks that are shown at once."""


@contextmanager
def shown(work: Mapping[Task, AbstractSet[Task]]) -> Iterator[Progress]:
    """A watcher for ``work`` that shows what it is told."""
    from interlace.cli.printing import console_on
    from interlace.gke.progress import Progress

    console = console_on(sys.stderr)
    if not console.is_terminal:
        plain = Progress(work, clock=time.monotonic, changed=lambda change: _tell(plain, change))
        yield plain
        return
    from rich.live import Live

    progress = Progress(work, clock=time.monotonic)
    with Live(get_renderable=lambda: _picture(progress), console=console, refresh_per_second=4, transient=True):
        yield progress


def _tell(progress: Progress, change: Ending[Task] | Task) -> None:
    from interlace.gke.plan import Task

    if isinstance(change, Task):
        click.echo(f"interlace: {change}", err=True)
        return
    why = f": {change.reason}" if change.reason else f" by {change.because}" if change.because else ""
    counted = f"{len(progress.endings)} of {progress.total}"
    click.echo(f"interlace: {change.key} {change.state}{why} ({counted})", err=True)


def _picture(progress: Progress) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    rows = Table.grid(padding=(0, 2, 0, 0))
    running = progress.running()
    for each in running[:_ROWS]:
        bar = ProgressBar(total=1.0, completed=each.share, width=24)
        rows.add_row(Text(str(each.task)), bar, Text(_minutes(each.seconds)), Text(each.detail[:40], style="dim"))
    left = progress.seconds_left()
    more = f", {len(running) - _ROWS} more running" if len(running) > _ROWS else ""
    bad = sum(ending.state != "done" for ending in progress.endings.values())
    head = f"{progress.done} of {progress.total} done{f', {bad} not well' if bad else ''}{more}"
    eta = f", about {_minutes(left)} left (an estimate)" if left else ""
    whole = ProgressBar(total=max(progress.total, 1), completed=len(progress.endings), width=50)
    return Group(Text(head + eta), whole, rows)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"

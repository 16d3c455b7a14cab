"""Plays rows and keeps what came of them, one file a row, so that a run that was ended goes on where it was.

Invariant: a result says what was measured, or why there is no figure; a row never changes the result of another.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from bench.faults.beds import Ground, run_ground
from bench.faults.row import Row
from bench.faults.stage import Stage
from interlace.api.core import Event

RESULTS: Final = Path(__file__).with_name("results")
_numbers = itertools.count()


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one play of a row showed."""

    row: str
    date: str
    good: bool
    failure: str = ""
    seconds: float | None = None
    """From the fault, or from its end if it lasts, to the end state."""
    lasted: float | None = None
    """How long the fault lasted, for those that do."""
    conditions: list[str] = []
    """Of the domains, in order, from the fault on."""
    events: list[str] = []
    """Type, reason and message, each once; those of our components."""
    notes: list[str] = []
    bed: str = ""
    server: str = ""
    cores: int = 0
    load: float = 0.0
    """Runnable processes over one minute when the row began."""


async def play(row: Row, ground: Ground, *, outage: float, many: int) -> Result:
    """Play a row in a namespace of its own. What it raises is in the result, and then its ground is of no more use."""
    stage = Stage(
        ground.cluster,
        wire=ground.wire,
        namespace=f"fault-{next(_numbers)}",
        limit=row.limit,
        outage=outage,
        many=many,
    )
    load, failure, events = os.getloadavg()[0], "", list[Event]()
    try:
        await stage.open()
        async with asyncio.timeout(2 * row.limit + outage):
            await row.act(stage)
        stage.end()
        events = await stage.events()
        await stage.clear()
    except Exception as error:  # noqa: BLE001  whatever a row shows is its result
        failure = f"{type(error).__name__}: {error}"
    since, ended = stage.mended or stage.struck, stage.ended
    return Result(
        row=row.name,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        good=not failure,
        failure=failure,
        seconds=round(max(ended - since, 0.0), 2) if since is not None and ended is not None and not failure else None,
        lasted=round(stage.mended - stage.struck, 1) if stage.mended and stage.struck else None,
        conditions=ground.conditions(stage.namespace, since=stage.struck or 0.0),
        events=list(dict.fromkeys(f"{event.type} {event.reason}: {event.message}" for event in events)),
        notes=stage.notes,
        bed=row.bed,
        server=ground.cluster.plane.version,
        cores=os.cpu_count() or 0,
        load=round(load, 1),
    )


def load(folder: Path = RESULTS) -> dict[str, Result]:
    """Results by row. Raises ``ValueError`` that names the file for one that cannot be read."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            result = msgspec.json.decode(path.read_bytes(), type=Result)
        except msgspec.MsgspecError as error:
            raise ValueError(f"{path}: not a result of the fault table: {error}; delete it and measure again") from None
        found[result.row] = result
    return found


def save(result: Result, folder: Path = RESULTS) -> None:
    """Replace the result of this row."""
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".{result.row}.new"
    new.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    new.replace(folder / f"{result.row}.json")


async def run(
    rows: Iterable[Row], *, outage: float, many: int, tell: Callable[[str], None], folder: Path = RESULTS
) -> bool:
    """Play rows, each bed once, a fresh cluster after a row that failed; whether all were good."""
    good = True
    waiting = list(rows)
    while waiting:
        bed = waiting[0].bed
        async with run_ground(bed) as ground:
            for row in [row for row in waiting if row.bed == bed]:
                waiting.remove(row)
                if row.root and os.geteuid() != 0:
                    tell(f"{row.name}: not played, it needs root")
                    continue
                began = time.monotonic()
                result = await play(row, ground, outage=outage, many=many)
                save(result, folder)
                shown = f"{result.seconds:.2f} s to the end state" if result.seconds is not None else "no figure"
                tell(f"{row.name}: {result.failure or shown} ({time.monotonic() - began:.0f} s in all)")
                good = good and result.good
                if not result.good:  # what it left must not be seen by the next one
                    break
    return good


def machine() -> str:
    """Where it is measured, for people."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"

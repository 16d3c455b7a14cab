"""What was measured, as it is kept: one file a subject and kind of API server in ``bench/results``.

Invariant: a file says on which machine and under which load it was measured; reading it gives what was written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from bench.domains.load import LoadSampler, describe_machine
from bench.domains.record import Machine
from bench.scale.ground import Server

RESULTS: Final = Path(__file__).parents[1] / "results"
T = TypeVar("T")


class Kept(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A result with its circumstances."""

    subject: str
    server: Server
    date: str
    machine: Machine
    busy: float
    """Share of all cores that was busy, over the whole time, with whatever ran on the machine."""
    found: list[T]


class Circumstances:
    """Filled while something is measured."""

    def __init__(self) -> None:
        self.machine = describe_machine()
        self.busy = 0.0


@asynccontextmanager
async def measuring() -> AsyncIterator[Circumstances]:
    """Sample the load of the machine until the block ends."""
    about, sampler, began = Circumstances(), LoadSampler(), time.time()
    async with asyncio.TaskGroup() as group:
        sampling = group.create_task(sampler.run())
        try:
            yield about
        finally:
            sampling.cancel()
            about.busy = sampler.between(began, time.time(), stalled=0.0, own=0.0).mean


def path(subject: str, server: Server, *, folder: Path = RESULTS) -> Path:
    """Where it is kept; the real control plane is what the name says nothing of."""
    suffix = "" if server == "real" else f"-{server}"
    return folder / f"scale-{subject}{suffix}.json"


def save(subject: str, server: Server, found: list[T], *, about: Circumstances, folder: Path = RESULTS) -> Path:
    """Replace what was kept; returns the file."""
    target = path(subject, server, folder=folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    kept = Kept(
        subject=subject,
        server=server,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=about.machine,
        busy=about.busy,
        found=found,
    )
    new = target.with_name(f".{target.name}.new")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
    new.replace(target)
    return target


def load(subject: str, server: Server, kind: type[T], *, folder: Path = RESULTS) -> Kept[T] | None:
    """What was kept, None for nothing. Raises ``ValueError`` that names the file for one that cannot be read."""
    source = path(subject, server, folder=folder)
    try:
        return msgspec.json.decode(source.read_bytes(), type=Kept[kind])  # type: ignore[valid-type]
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise ValueError(f"{source}: not a result of bench.scale: {error}; delete it and measure again") from None

"""How busy the machine is, sampled all the time, so that a run can say what it had to share.

The kernel's own counters: ``/proc/stat`` for the share of busy cores, ``/proc/pressure/cpu`` for waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

from bench.domains.record import Load, Machine

EVERY = 0.25


class LoadSampler:
    """Samples until cancelled; asked for a span afterwards."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []

    async def run(self) -> None:
        """Take a sample every quarter of a second."""
        last = _ticks()
        while True:
            await asyncio.sleep(EVERY)
            now = _ticks()
            if now[0] > last[0]:
                self._samples.append((time.time(), 1 - (now[1] - last[1]) / (now[0] - last[0])))
            last = now

    def between(self, begin: float, end: float, *, stalled: float, own: float) -> Load:
        """The span between two moments; ``stalled`` and ``own`` are seconds in it."""
        busy = [share for moment, share in self._samples if begin <= moment <= end + EVERY]
        length, cores = max(end - begin, 1e-6), os.cpu_count() or 1
        return Load(
            mean=round(sum(busy) / len(busy), 3) if busy else 0.0,
            over90=round(sum(share > 0.9 for share in busy) / len(busy), 3) if busy else 0.0,
            stalled=round(stalled / length, 3),
            own=round(own / length / cores, 3),
        )


def stalled_seconds() -> float:
    """Seconds since boot in which some task waited for a core; 0 where the kernel does not say."""
    try:
        first = Path("/proc/pressure/cpu").read_text().partition("\n")[0]
    except OSError:
        return 0.0
    return int(first.rpartition("total=")[2]) / 1e6


NODES_YIELD = 10
"""How much nicer the programs of nodes are than the control plane: in a cluster they have cores of their own."""


def share_niceness(pids: Iterable[int], *, more: int = 0, proc: Path = Path("/proc")) -> None:
    """Give processes that are in sessions of their own the niceness of this one, and ``more``, towards other sessions.

    Where the kernel groups by session (autogroup), a niceness only holds inside one, and sixty small sessions of
    nodes would starve the one of the API server. What the kernel refuses stays as it is.
    """
    niceness = min(19, os.nice(0) + more)
    for pid in pids:
        with contextlib.suppress(OSError):
            (proc / str(pid) / "autogroup").write_text(str(niceness))


def measure_loop() -> float:
    """CPU milliseconds of a hundred thousand multiplications and additions, the best of five."""
    best = float("inf")
    for _ in range(5):
        begin, total = time.process_time(), 0
        for number in range(100_000):
            total += number * number
        best = min(best, time.process_time() - begin)
    return best * 1000


def describe_machine() -> Machine:
    """What everything ran on, how fast and how busy it was; takes up to a tenth of a second."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = next((line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")), "")
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        cores=os.cpu_count() or 1,
        cpu=model or platform.machine(),
        memory_gib=round(pages / 2**30, 1),
        kernel=platform.release(),
        python=platform.python_version(),
        nice=os.nice(0),
        load_before=round(os.getloadavg()[0], 2),
        loop_ms=round(measure_loop(), 2),
    )


def _ticks() -> tuple[int, int]:
    """(all, idle) ticks of all cores since boot."""
    with Path("/proc/stat").open() as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return sum(fields), fields[3] + fields[4]

"""What processes use, from ``/proc``: CPU time, memory. Linux only.

A process that is gone has no figures; it is left out, never an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from bench.domains.record import Memory, Process

_TICK = os.sysconf("SC_CLK_TCK")
_UTIME = 11
"""Field 14 of ``/proc/PID/stat``, counted from the one after the command's name."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One process at one moment."""

    cpu: float
    """Seconds since its start, user and system."""
    helpers: float
    """The same of its children that have ended and were waited for."""
    peak: float
    """Largest resident set so far, MiB."""


Usage = Mapping[str, Mapping[int, Sample]]
"""By kind of process and process id."""


def read_sample(pid: int, *, proc: Path = Path("/proc")) -> Sample | None:
    """The process ``pid`` now; None if it is gone."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
        peak = _kib((proc / str(pid) / "status").read_text(), "VmHWM:")
    except (OSError, IndexError):
        return None
    user, system, waited_user, waited_system = (int(fields[_UTIME + i]) / _TICK for i in range(4))
    return Sample(cpu=user + system, helpers=waited_user + waited_system, peak=peak)


def read_usage(groups: Mapping[str, Iterable[int]]) -> Usage:
    """All processes of all kinds now."""
    return {
        kind: {pid: sample for pid in pids if (sample := read_sample(pid)) is not None} for kind, pids in groups.items()
    }


def difference(before: Usage, after: Usage) -> dict[str, Process]:
    """What each kind used between two readings; a process that came meanwhile counts from its start."""
    nothing = Sample(cpu=0.0, helpers=0.0, peak=0.0)
    found = {}
    for kind, samples in after.items():
        old = before.get(kind, {})
        found[kind] = Process(
            n=len(samples),
            cpu_s=round(sum(s.cpu - old.get(pid, nothing).cpu for pid, s in samples.items()), 2),
            helpers_cpu_s=round(sum(s.helpers - old.get(pid, nothing).helpers for pid, s in samples.items()), 2),
            peak_rss_mib=round(max((s.peak for s in samples.values()), default=0.0), 1),
        )
    return found


def total_cpu(used: Mapping[str, Process]) -> float:
    """Seconds of all kinds together, helpers included."""
    return sum(process.cpu_s + process.helpers_cpu_s for process in used.values())


def read_memory(pids: Iterable[int], *, proc: Path = Path("/proc")) -> Memory | None:
    """Memory of the processes now; None if none is left."""
    found = []
    for pid in pids:
        try:
            text = (proc / str(pid) / "smaps_rollup").read_text()
        except OSError:
            continue
        found.append((_kib(text, "Rss:"), _kib(text, "Pss:")))
    if not found:
        return None
    return Memory(
        rss=round(max(rss for rss, _ in found), 1),
        pss=round(max(pss for _, pss in found), 1),
        pss_sum=round(sum(pss for _, pss in found), 1),
    )


def _kib(text: str, label: str) -> float:
    """The figure after ``label`` (KiB) in MiB."""
    return int(text.partition(label)[2].split(maxsplit=1)[0]) / 1024

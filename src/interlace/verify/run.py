"""A run of nccl-tests as it was read: the values that judging, comparing and reporting work on.

The fields that ``document`` writes are the documented JSON; the others help whoever judges the run. A value that
the log does not hold is None, never a guess or a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec


class Half(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One placement (out of place or in place) of one row."""

    time_us: float
    """Microseconds, also where the log gives milliseconds."""
    algbw: float
    """GB/s (1e9 bytes)."""
    busbw: float
    """GB/s."""
    wrong: int | None
    """Elements that were wrong; None if they were not counted (``-c 0``, ``N/A``, or builds that print a deviation)."""
    units: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Worth of one in the last printed place of time (in microseconds), algbw and busbw: what rounding may hide."""


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One size, complete."""

    size: int
    """Bytes, as printed."""
    count: int
    """Elements: of one rank where a collective divides its data, in all otherwise."""
    type: str
    redop: str | None = None
    """As printed (``none`` where nothing is reduced); None where the layout has no such column."""
    root: int | None = None
    """None where the layout has no such column; -1 where the collective has no root."""
    oop: Half | None = None
    ip: Half | None = None
    line: int = 0
    """Where the row begins in its source, from 1; 0 in JSON."""

    def halves(self) -> tuple[tuple[str, Half], ...]:
        """The halves that are there, with their names."""
        pairs = (("out-of-place", self.oop), ("in-place", self.ip))
        return tuple((name, half) for name, half in pairs if half is not None)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One table of nccl-tests with what stands around it."""

    collective: str | None = None
    """``all_gather``, ``all_reduce``, ``alltoall``, ``broadcast``, ...: the program's name without ``_perf``."""
    collective_from: str | None = None
    """``name`` (the log says it), ``args`` (the recorded command line) or ``inferred`` (from the numbers)."""
    ranks: int | None = None
    ranks_from: str | None = None
    """``rank lines``, ``size/count``, ``ratio`` (busbw/algbw), ``devices`` or ``NCCL``."""
    nodes: int | None = None
    """Distinct hosts of the rank lines (Pods count as hosts), or what NCCL says."""
    rows: tuple[Row, ...] = ()
    """Complete rows only."""
    partial_rows: int = 0
    """Rows that the end of the paste, or a crash, cut."""
    avg_busbw_printed: float | None = None
    """GB/s, from the footer."""
    avg_busbw_mean: float | None = None
    """GB/s, mean over all halves, from size/time where that agrees with what is printed, else from busbw."""
    out_of_bounds: int | None = None
    """Failed checks, from the footer; None if nothing was checked or the footer is missing."""
    wrong_total: int | None = None
    """Sum of wrong elements; None if none were counted."""
    transport: str | None = None
    """Network as NCCL names it (``IB``, ``Socket``, ``FasTrak``, ...), ``P2P`` or ``SHM`` if no network was used."""
    warnings: tuple[str, ...] = ()
    """What the reader doubts, contradictions of the numbers among them; each is one sentence."""

    source: str = "-"
    """Name of the file."""
    line: int = 0
    """Where the run begins in its source, from 1."""
    hosts: tuple[str, ...] = ()
    """Of the rank lines, in their order."""
    checked: bool | None = None
    """Whether results were compared with what they should be (``-c``); None if the log does not tell."""
    cpu_time: bool = False
    """The time column holds CPU time (``-C 1``): size/time is then not algbw."""
    old_formula: bool = False
    """Algbw leaves out a rank's own part: an old or forked build (or hypercube, where the log does not name it)."""
    below_minimum: bool = False
    """``NCCL_TESTS_MIN_BW`` was set and not reached: the footer's average says nothing about the data."""
    unfinished: bool = False
    """The log ends before the sweep that the program was asked for, or before its JSON does."""
    gaps: bool = False
    """``...`` stands for rows that somebody took out."""
    left_out: int = 0
    """Complete rows beyond those that a run keeps."""
    program: str | None = None
    """Version as printed, for instance ``nccl-tests 2.19.6``."""
    device: str | None = None
    """GPU product of the first rank line."""
    environment: tuple[str, ...] = ()
    """``NAME=value`` of NCCL, CUDA, UCX, libfabric and Open MPI, where a JSON file recorded it."""
    errors: tuple[str, ...] = ()
    """What nccl-tests itself said went wrong (``Test NCCL failure ...``, ``# error: ...``), first lines."""


def is_reversed(rows: Sequence[Row]) -> bool:
    """Whether the log was read from its end: nccl-tests measures rising sizes, from the first to the last."""
    return len(rows) > 2 and all(before.size > after.size for before, after in pairwise(rows))


def document(run: Run) -> dict[str, Any]:
    """The run as the documented JSON: keys in their order, nothing else."""
    return {
        "collective": run.collective,
        "collective_from": run.collective_from,
        "ranks": run.ranks,
        "ranks_from": run.ranks_from,
        "nodes": run.nodes,
        "rows": [_row(row) for row in run.rows],
        "partial_rows": run.partial_rows,
        "avg_busbw_printed": run.avg_busbw_printed,
        "avg_busbw_mean": run.avg_busbw_mean,
        "out_of_bounds": run.out_of_bounds,
        "wrong_total": run.wrong_total,
        "transport": run.transport,
        "warnings": list(run.warnings),
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "size": row.size,
        "count": row.count,
        "type": row.type,
        "redop": row.redop,
        "root": row.root,
        "oop": _half(row.oop),
        "ip": _half(row.ip),
    }


def _half(half: Half | None) -> dict[str, Any] | None:
    if half is None:
        return None
    return {"time_us": half.time_us, "algbw": half.algbw, "busbw": half.busbw, "wrong": half.wrong}

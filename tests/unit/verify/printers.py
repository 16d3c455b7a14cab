"""nccl-tests of every era, as far as its output goes: makes a log and says what must be read out of it.

Each era is a row of the table of versions; numbers are computed unrounded and printed as the era printed them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlace.verify.layout import SIZES

DIVIDING = ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter", "hypercube")
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
ROOTED = ("broadcast", "reduce", "gather", "scatter")


def old_time(value: float) -> str:
    """Up to v2.17.2."""
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 10000 else f"{value:.0f}"


def old_bandwidth(value: float) -> str:
    return f"{value:.2f}"


def fitted(value: float, width: int) -> str:
    """Since v2.17.3: as many decimals as fit."""
    for places in (2, 1, 0):
        text = f"{value:.{places}f}"
        if len(text) <= width:
            return text
    return f"{value:.1e}" if width > 6 else f"{value:.0e}"


def milliseconds(value: float) -> str:
    return f"{value / 1000:.3f}"


@dataclass(frozen=True, kw_only=True)
class Era:
    """How one generation of the program prints."""

    name: str
    uniform: bool = True
    """redop and root always there."""
    time: Callable[[float], str] = old_time
    bandwidth: Callable[[float], str] = old_bandwidth
    deviation: bool = False
    v1: bool = False
    titled: bool = False
    version: str | None = None
    group: str = ""
    device: str = "0x07"
    after_config: str = ""
    in_place_na: bool = True
    old_formula: bool = False
    timestamp: bool = False
    per_iteration: bool = False
    memory: bool = False
    padded_footer: bool = False
    last_line: str = ""
    cycles: int = 1
    types: tuple[str, ...] = ("float", "half", "int8", "int32", "uint64", "double")
    collectives: tuple[str, ...] = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")


def _newer(width: int) -> Callable[[float], str]:
    return lambda value: fitted(value, width)


_P2P = ("alltoall", "sendrecv", "gather", "scatter", "hypercube")
_ALL = Era(name="").collectives + _P2P
_NEW: dict[str, Any] = {"time": _newer(7), "bandwidth": _newer(6), "titled": True, "collectives": _ALL}
_PCI: dict[str, Any] = {"group": "Group  0 ", "device": "0000:07:00"}
_FP8 = (*Era(name="").types, "bfloat16", "f8e4m3", "f8e5m2")

ERAS = (
    Era(name="v1.0.0", uniform=False, v1=True, deviation=True, time=milliseconds, old_formula=True),
    Era(name="v2.0.0", uniform=False, deviation=True, old_formula=True),
    Era(name="2020-06-19", uniform=False, deviation=True),
    Era(name="v2.10", uniform=False, deviation=True, types=(*Era(name="").types, "bfloat16"), collectives=_ALL[:5]),
    Era(name="v2.13.0", after_config=" agg iters: 1 validation: 1 graph: 0", in_place_na=False),
    Era(name="v2.13.1", after_config=" agg iters: 1 validation: 1 graph: 0", collectives=_ALL),
    Era(name="v2.13.4", group="Group  0 ", last_line="\n", collectives=_ALL),
    Era(name="v2.13.7", group="Group  0 ", after_config=" agg iters: 1 validation: 3 graph: 0", collectives=_ALL),
    Era(name="v2.13.10", group="Group  0 ", cycles=3, collectives=_ALL),
    Era(name="v2.14.0", group="Group  1 ", collectives=_ALL),
    Era(name="v2.14.1", collectives=_ALL, **_PCI),
    Era(name="v2.15.0", types=_FP8, collectives=_ALL, **_PCI),
    Era(name="v2.16.7", titled=True, types=_FP8, collectives=_ALL, **_PCI),
    Era(name="v2.17.3", types=_FP8, **_NEW, **_PCI),
    Era(name="v2.17.4", version="2.17.4", types=_FP8, **_NEW, **_PCI),
    Era(name="v2.17.6", version="2.17.6", timestamp=True, types=_FP8, **_NEW, **_PCI),
    Era(name="v2.17.7", version="2.17.7", memory=True, padded_footer=True, types=_FP8, **_NEW, **_PCI),
    Era(name="v2.18.0", version="2.18.0", after_config=" graph: 0 unalign: 0", types=_FP8, **_NEW, **_PCI),
    Era(name="v2.19.2", version="2.19.2", per_iteration=True, types=_FP8, **_NEW, **_PCI),
    Era(name="v2.19.6", version="2.19.6", per_iteration=True, timestamp=True, types=_FP8, **_NEW, **_PCI),
    Era(name="2.20.0", version="2.20.0 (b4d5bee)", types=_FP8, **_NEW, **_PCI),
)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What is measured."""

    collective: str = "all_reduce"
    ranks: int = 16
    type: str = "float"
    counts: Sequence[int] = (16384, 262144, 4194304, 67108864)
    times: Sequence[float] = (101.234, 512.7, 3456.789, 23456.7, 98.76, 530.2, 3333.3, 22222.2)
    """Microseconds: all out-of-place halves, then all in-place ones."""


@dataclass(kw_only=True)
class Printed:
    """A log, and the rows that it holds."""

    lines: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    average: float = 0.0

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def bandwidths(sweep: Sweep, size: int, time: float, *, old: bool) -> tuple[float, float]:
    """algbw and busbw, unrounded; 0 for no time."""
    n, base = sweep.ranks, size / 1e3 / time
    if sweep.collective == "all_reduce":
        return base, base * 2 * (n - 1) / n
    if sweep.collective == "hypercube" or (old and sweep.collective in {"all_gather", "reduce_scatter"}):
        return base * (n - 1) / n, base * (n - 1) / n
    if sweep.collective in DIVIDING:
        return base, base * (n - 1) / n
    return base, base


def show(era: Era, sweep: Sweep) -> Printed:
    """Print ``sweep`` as ``era`` did."""
    log = Printed(lines=_titles(era, sweep))
    redop = era.uniform or sweep.collective in REDUCING
    root = era.uniform or sweep.collective in ROOTED
    log.lines += _headers(era, redop=redop, root=root)
    values: list[float] = []
    for _ in range(era.cycles):
        for i, count in enumerate(sweep.counts):
            parts = sweep.ranks if sweep.collective in DIVIDING else 1
            size = count * SIZES[sweep.type] * parts
            op = "sum" if sweep.collective in (*REDUCING, "sendrecv") else "none"
            at = 0 if sweep.collective in ROOTED else -1
            cells = [f"{size:>12}", f"{count:>12}", f"{sweep.type:>8}"]
            cells += [f"{op:>6}"] * redop + [f"{at:>6}"] * root
            row: dict[str, Any] = {"size": size, "count": count, "type": sweep.type}
            row |= {"redop": op if redop else None, "root": at if root else None}
            for place, time in (("oop", sweep.times[i]), ("ip", sweep.times[i + len(sweep.counts)])):
                algbw, busbw = bandwidths(sweep, size, time, old=era.old_formula)
                values.append(busbw)
                unchecked = place == "ip" and era.in_place_na and sweep.collective in {"alltoall", "sendrecv"}
                wrong = "N/A" if unchecked else "0e+00" if era.deviation else "0"
                told = [era.time(time), era.bandwidth(algbw), era.bandwidth(busbw), wrong]
                cells += ["", f"{told[0]:>7}", f"{told[1]:>6}", f"{told[2]:>6}", f"{told[3]:>5}"]
                cells += ["   12.3", "   45.6", "   44.0", "   3.10"] * era.per_iteration
                row[place] = {
                    "time_us": float(told[0]) * (1000 if era.v1 else 1),
                    "algbw": float(told[1]),
                    "busbw": float(told[2]),
                    "wrong": None if unchecked or era.deviation else 0,
                }
            cells += ["2026-11-30 08:46:49"] * era.timestamp
            log.lines.append("  ".join(cells))
            log.rows.append(row)
    log.average = sum(values) / len(values)
    log.lines += _footer(era, sweep, log.average)
    return log


def _titles(era: Era, sweep: Sweep) -> list[str]:
    lines = []
    if era.version:
        lines.append(f"# nccl-tests version {era.version} nccl-headers=22809 nccl-library=22809")
    if era.titled:
        lines.append(f"# Collective test starting: {sweep.collective}_perf")
    if not era.v1:
        lines.append(
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20"
            + (era.after_config or " validation: 1")
        )
        lines.append("#")
    lines.append("# Using devices")
    pid = "" if era.v1 else "Pid   1197 "
    tail = f"[{era.device}] NVIDIA H100"
    lines += [
        f"#  Rank {rank:2d} {era.group}{pid}on {f'host-{rank // 8}':>10} device {rank % 8:2d} {tail}"
        for rank in range(sweep.ranks)
    ]
    return [*lines, "#"]


def _headers(era: Era, *, redop: bool, root: bool) -> list[str]:
    long = "   i_min   i_max   i_p99   i_cv%" * era.per_iteration
    last = "res" if era.v1 else "error" if era.deviation else "#wrong"
    half = f"     time   algbw   busbw  {last}{long}"
    columns = ["bytes             N" if era.v1 else "size         count", "     type"]
    columns += ["    op" if era.v1 else "   redop"] * redop + ["    root"] * root
    return [
        "#                                               out-of-place                       in-place          ",
        f"#       {''.join(columns)}{half}{half}{'   timestamp' * era.timestamp} ",
        "#        (B)    (elements)                    (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       ",
    ]


def _footer(era: Era, sweep: Sweep, average: float) -> list[str]:
    mark = " " if era.v1 else "# "
    bounds, mean = "Out of bounds values", "Avg bus bandwidth"
    lines = []
    if era.memory:
        lines.append(
            "# GPU memory usage     : Initialization 1.2 GB | User-Allocated 2.0 GB | Collective 0.1 GB | Total 3.3 GB"
        )
    width = 21 if era.padded_footer else 0
    lines += [f"{mark}{bounds:<{width}} : 0 OK", f"{mark}{mean:<{width or 20}} : {average:g} ", "#"]
    if era.titled:
        lines += ["", f"# Collective test concluded: {sweep.collective}_perf", "#"]
    return [*lines, era.last_line] if era.last_line else lines

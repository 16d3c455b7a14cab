"""Logs for tests of judging, made by generators: a table whose numbers agree, and the lines of NCCL around it.

Layouts and wordings are those of nccl-tests 2.19 and NCCL 2.28; the machines in them do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from interlace.fabric.family import find
from interlace.verify.events import LogEvent
from interlace.verify.judgement import Judgement, judge
from interlace.verify.reader import read_text
from interlace.verify.run import Run

MIB = 2**20
GIB = 2**30
_COLUMNS = "     time   algbw   busbw  #wrong"
SWEEP = tuple(MIB << step for step in range(11))
"""1 MiB to 1 GiB."""
H100 = "NVIDIA H100 80GB HBM3"
FACTORS: dict[str, Callable[[int], float]] = {
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "broadcast": lambda _: 1.0,
    "sendrecv": lambda _: 1.0,
    "hypercube": lambda _: 1.0,
}
"""busbw over algbw, for n ranks."""
DIVIDED = frozenset({"all_gather", "reduce_scatter", "alltoall"})


def times(*, rate: float, floor_us: float, collective: str = "all_gather", ranks: int = 16) -> Callable[[int], float]:
    """Microseconds for a size: a fixed cost, and the data at ``rate`` GB/s of bus bandwidth."""
    return lambda size: floor_us + size * FACTORS[collective](ranks) / rate / 1e3


def table(
    time_us: Callable[[int], float],
    *,
    collective: str = "all_gather",
    ranks: int = 16,
    nodes: int = 2,
    sizes: Sequence[int] = SWEEP,
    wrong: int | str = 0,
    device: str = H100,
    in_place: float = 1.0,
    kind: str = "float",
    footer: bool = True,
    cut: int = 0,
) -> list[str]:
    """The output of one program. ``in_place``: its time over that out of place; ``cut``: rows that are missing."""
    gpus = max(ranks // nodes, 1)
    lines = [
        "# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809",
        f"# Collective test starting: {collective}_perf",
        (
            f"# nThread 1 nGpus 1 minBytes {sizes[0]} maxBytes {sizes[-1]} step: 2(factor) warmup iters: 5 iters: 20"
            f" agg iters: 1 validation: {int(wrong != 'N/A')} graph: 0 unalign: 0"
        ),
        "#",
        "# Using devices",
        *(
            f"#  Rank {rank:2d} Group  0 Pid {100 + rank:6d} on   worker-{rank // gpus} device {rank % gpus:2d}"
            f" [0000:{rank % gpus + 4:02x}:00] {device}"
            for rank in range(ranks)
        ),
        "#",
        f"#{'out-of-place':>74}{'in-place':>31}",
        f"#{'size':>11}{'count':>14}{'type':>7}{'redop':>8}{'root':>8}{_COLUMNS}{_COLUMNS}",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)",
    ]
    busbws: list[float] = []
    width = 1 if kind.startswith("f8") else 4
    parts = ranks if collective in DIVIDED else 1
    for asked in sizes[: len(sizes) - cut]:
        count = asked // width // parts // 16 * 16 if parts > 1 else asked // width
        size = count * width * parts
        halves = ""
        for share in (1.0, in_place):
            time = round(time_us(size) * share, 2)
            algbw = size / time / 1e3
            busbw = algbw * FACTORS[collective](ranks)
            busbws.append(busbw)
            halves += f"  {time:10.2f}  {algbw:8.2f}  {busbw:8.2f}  {wrong:>6}"
        redop = "sum" if collective in ("all_reduce", "reduce_scatter") else "none"
        lines.append(f"{size:12d}  {count:12d}  {kind:>8}  {redop:>6}      -1{halves}")
    if footer:
        mean = sum(busbws) / len(busbws)
        bad = wrong if isinstance(wrong, int) else 0
        lines.append(f"# Out of bounds values : {bad} {'FAILED' if bad else 'OK'}")
        lines.append(f"# Avg bus bandwidth    : {mean:g} ")
        lines += ["#", f"# Collective test concluded: {collective}_perf", "#"]
    return lines


def said(
    *,
    network: str = "FasTrak",
    ranks: int = 16,
    nodes: int = 2,
    nics: int = 8,
    direct: bool = True,
    mnnvl: bool = False,
    version: str = "2.28.9",
    settings: dict[str, str] | None = None,
    channels: bool = True,
) -> list[str]:
    """Lines of NCCL_DEBUG=INFO of all ranks of a healthy start."""
    gpus = ranks // nodes
    lines = [line(0, gpus, f"NCCL INFO NCCL version {version}+cuda13.0")]
    lines += [
        line(0, gpus, f"NCCL INFO {name} set by environment to {value}.") for name, value in (settings or {}).items()
    ]
    for rank in range(ranks):
        start = (
            f"NCCL INFO ncclCommInitRankConfig comm 0x55f6{rank:04x} rank {rank} nranks {ranks} cudaDev {rank % gpus}"
        )
        lines += [
            line(rank, gpus, f"NCCL INFO Using network {network}"),
            line(rank, gpus, f"{start} nvmlDev {rank % gpus} busId {rank % gpus}0 commId 0xd3 - Init START"),
            line(
                rank,
                gpus,
                f"NCCL INFO comm 0x55f6{rank:04x} rank {rank} nRanks {ranks} nNodes {nodes}"
                f" localRanks {gpus} localRank {rank % gpus} MNNVL {int(mnnvl)}",
            ),
        ]
        if channels and not mnnvl and nodes > 1:
            via = f"NET/{network}/{rank % nics}" + ("/GDRDMA" if direct else "")
            peer = (rank + gpus) % ranks
            lines.append(line(rank, gpus, f"NCCL INFO Channel {rank:02d}/0 : {rank}[0] -> {peer}[0] [send] via {via}"))
        elif channels:
            lines.append(line(rank, gpus, f"NCCL INFO Channel 00/0 : {rank}[0] -> 0[0] via P2P/CUMEM"))
        lines.append(line(rank, gpus, f"{start} nvmlDev 0 busId 0 commId 0xd3 - Init COMPLETE"))
    return lines


def line(rank: int, gpus: int, text: str) -> str:
    """A line as NCCL prints it, with host, process and device."""
    return f"worker-{rank // gpus}:{100 + rank}:{200 + rank} [{rank % gpus}] {text}"


def with_lines(output: Sequence[str], extra: Iterable[str], *, behind: str = "# Using devices") -> list[str]:
    """``extra`` put behind the rank lines of a program's output."""
    at = max(number for number, each in enumerate(output) if each.startswith((behind, "#  Rank")))
    return [*output[: at + 1], *extra, *output[at + 1 :]]


def read(lines: Iterable[str]) -> tuple[list[Run], list[LogEvent]]:
    """What the reader makes of a log."""
    events: list[LogEvent] = []
    return read_text("\n".join(lines) + "\n", events=events.append, begun=True), events


def judged(
    lines: Iterable[str],
    *,
    family: str | None = "a3-mega",
    nodes: int | None = None,
    baseline: Sequence[Run] | None = None,
) -> Judgement:
    """The judgement of a log."""
    runs, events = read(lines)
    known = find(family) if family is not None else None
    return judge(runs, events, family=known, nodes=nodes, baseline=baseline)


def seen(judgement: Judgement) -> set[str]:
    """Ids of all signatures that a judgement names, consequences included."""
    found = (*judgement.causes, *judgement.noted)
    return {each.signature.id for each in found} | {sub.signature.id for each in found for sub in each.consequences}


HEALTHY = times(rate=190, floor_us=130)
"""A3 Mega as it should be."""

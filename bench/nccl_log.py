"""How long a log of 100 MB takes to be read, and how much memory: ``python -m bench.nccl_log``.

Each log is made here and read by ``interlace verify parse --format json`` in a process of its own, its output
thrown away. CPU time is given beside wall time, since on a busy machine only the first says what the reading costs.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from bench.figures import Figure, table, verdict

RESULT = Path(__file__).parent / "results" / "nccl_log.json"
SIZE = 100_000_000
SECONDS = 2.0
MEGABYTES = 80.0
TURNS = 5
_RANKS = 1024
_CHANNELS = 128
_START = (
    "Bootstrap: Using eth0:192.0.2.2<0>",
    "NET/FasTrak : Using [RO]; OOB eth0:192.0.2.2<0>",
    "Using network FasTrak",
    "ncclCommInitRankConfig comm {comm} rank {rank} nranks 1024 cudaDev {device} busId 60 - Init START",
    "comm {comm} rank {rank} nRanks 1024 nNodes 128 localRanks 8 localRank {device} MNNVL 0",
    "Trees [0] {rank}/-1/-1->0->-1 [1] {rank}/-1/-1->0->-1 [2] {rank}/-1/-1->0->-1 [3] {rank}/-1/-1->0->-1",
    "P2P Chunksize set to 524288",
    "{rank} coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer",
    "ncclCommInitRankConfig comm {comm} rank {rank} nranks 1024 cudaDev {device} busId 60 - Init COMPLETE",
)
_HALF = "     time   algbw   busbw  #wrong"


class Readings(msgspec.Struct, kw_only=True):
    """Result file."""

    python: str
    cores: int
    load_before: float
    wall: dict[str, list[float]]
    """Seconds, by log."""
    cpu: dict[str, list[float]]
    memory: dict[str, list[float]]
    """Largest RSS, MB."""


def lines(prefix: Callable[[int], str], chance: random.Random, *, ranks: int = _RANKS) -> Iterator[str]:
    """What ``ranks`` ranks say with NCCL_DEBUG=INFO, and the table of one run of 1,024."""
    for rank in range(ranks):
        process, device = chance.randrange(1000, 4_000_000), rank % 8
        own = f"gke-a3-mega-pool-{rank // 8:04d}:{process}:{process + 40} [{device}] NCCL INFO "
        comm = f"0x55f{chance.getrandbits(36):09x}"
        for text in _START:
            yield f"{prefix(rank)}{own}{text.format(comm=comm, rank=rank, device=device)}"
        for channel in range(_CHANNELS):
            way = f"Channel {channel:02d}/0 : {rank}[{device}] -> {(rank + 1) % _RANKS}[{(rank + 1) % 8}]"
            carrier = f"[send] via NET/FasTrak/{channel % 8}/GDRDMA" if device == 7 else "via P2P/CUMEM/read"
            yield f"{prefix(rank)}{own}{way} {carrier}"
    yield f"{prefix(0)}#       size         count      type   redop    root{_HALF}{_HALF}"
    for step in range(14):
        size = 2**20 << step
        time_us = 50 + size * 1023 / 1024 / 188e3
        half = f"  {time_us:7.2f}  {size / time_us / 1e3:6.2f}  {size / time_us / 1e3 * 1023 / 1024:6.2f}      0"
        yield f"{prefix(0)}{size:12d}  {size // 4096:12d}     float    none      -1{half}{half}"


def training() -> Iterator[str]:
    """A training log in which nothing is a measurement."""
    chance = random.Random(1)
    for step in range(2**31):
        loss = chance.random()
        yield f"2026-11-30 08:46:49 | iteration {step:8d}/ 500000 | lm loss: {loss:.6E} | grad norm: {loss * 3:.3f}"


def plain() -> Iterator[str]:
    """As processes print it."""
    chance = random.Random(1)
    while True:
        yield from lines(lambda _: "", chance)


def tagged() -> Iterator[str]:
    """Behind a launcher's tag and a time."""
    chance = random.Random(1)
    clock = iter(range(2**31))
    while True:
        yield from lines(lambda rank: f"[1,{rank}]<stdout>:2026-11-30T08:46:49.{next(clock):09d}Z ", chance)


LOGS: dict[str, Callable[[], Iterator[str]]] = {
    "NCCL_DEBUG=INFO of 1,024 ranks": plain,
    "the same behind tags and times": tagged,
    "a training log": training,
}


def write(log: Iterator[str], path: Path) -> None:
    """The first 100 MB of a log."""
    left = SIZE
    with path.open("w") as file:
        while left > 0:
            left -= file.write(f"{next(log)}\n")


def read(path: Path) -> tuple[float, float, float]:
    """Seconds of wall and CPU time, and MB of RSS. Raises CalledProcessError if the command fails."""
    command = [str(Path(sys.executable).with_name("interlace")), "verify", "parse", str(path), "--format", "json"]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, 3}:
        raise subprocess.CalledProcessError(process.returncode, command)
    return taken, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def measure() -> Readings:
    """All logs in turn, so that a busy moment of the machine strikes them alike."""
    found = Readings(
        python=sys.version.split()[0],
        cores=os.cpu_count() or 1,
        load_before=round(os.getloadavg()[0], 2),
        wall={name: [] for name in LOGS},
        cpu={name: [] for name in LOGS},
        memory={name: [] for name in LOGS},
    )
    with tempfile.TemporaryDirectory(prefix="interlace-bench-") as folder:
        paths = {name: Path(folder) / f"{number}.log" for number, name in enumerate(LOGS)}
        for name, path in paths.items():
            write(LOGS[name](), path)
        for _ in range(TURNS):
            for name, path in paths.items():
                for kept, value in zip((found.wall, found.cpu, found.memory), read(path), strict=True):
                    kept[name].append(round(value, 2))
    return found


def render(found: Readings) -> str:
    """A table of the logs beside their budgets."""
    rows = []
    for name in LOGS:
        wall, cpu, memory = (Figure.of(kept[name]) for kept in (found.wall, found.cpu, found.memory))
        row = [name, wall.text(2), cpu.text(2), f"{SECONDS:.0f}", verdict(wall, SECONDS)]
        rows.append([*row, memory.text(1), f"{MEGABYTES:.0f}", verdict(memory, MEGABYTES)])
    head = ["100 MB of", "wall, s, median (range)", "CPU, s", "budget", "", "RSS, MB", "budget", ""]
    return table(head, rows)


def main() -> int:
    """Exit code 0 if every budget is met, else 1."""
    found = measure()
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    print(render(found))
    print(f"load before: {found.load_before} on {found.cores} cores")
    slow = any(Figure.of(times).median > SECONDS for times in found.wall.values())
    large = any(Figure.of(sizes).median > MEGABYTES for sizes in found.memory.values())
    return 1 if slow or large else 0


if __name__ == "__main__":
    sys.exit(main())

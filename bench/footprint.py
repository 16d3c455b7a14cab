"""How much memory the components take when nothing happens: ``python -m bench.footprint``.

Each runs as a process of its own, as in a cluster, on hollow nodes beside the embedded (simulated) API server,
and is read after a rest without any domain. RSS is what counts on a node that runs one of each.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bench.domains.launch import SEPARATE, Launcher
from bench.domains.natives import compile_nvml
from bench.domains.record import Memory
from bench.domains.usage import read_memory
from bench.figures import NONE, Figure, table, verdict
from interlace.kube.log import configure
from interlace.sim.cluster import ClusterSettings, run_cluster
from interlace.sim.kubelet.programs import Programs

RESULT = Path(__file__).parent / "results" / "footprint.json"
NODES = 4
REST = 10.0
"""Seconds between readiness and reading."""
BUDGETS = {"agent": 45.0, "imex-host": 30.0}
"""MB of RSS; the controller's budget is set for 1,000 nodes, which is not measured here."""
_MB_PER_MIB = 2**20 / 1e6


class Footprint(msgspec.Struct, kw_only=True):
    """Result file."""

    python: str
    nodes: int
    memory: dict[str, list[Memory]]
    """By component, each of its processes."""


async def measure() -> Footprint:
    """Raises what `run_cluster` and `compile_nvml` raise."""
    with tempfile.TemporaryDirectory(prefix="interlace-bench-") as folder:
        nvml = await compile_nvml(Path(folder))
        programs = Programs(separate=SEPARATE, launch=Launcher(nvml=nvml))
        async with run_cluster(ClusterSettings(nodes=NODES, replicas=1), programs=programs) as cluster:
            await asyncio.sleep(REST)
            memory: dict[str, list[Memory]] = {}
            for component in sorted(SEPARATE):
                pids = [programs.processes[pod.metadata.name] for pod in cluster.our_pods(component)]
                memory[component] = [found for pid in pids if (found := read_memory([pid])) is not None]
    return Footprint(python=sys.version.split()[0], nodes=NODES, memory=memory)


def resident(memory: Iterable[Memory]) -> Figure:
    """RSS of each process, MB."""
    return Figure.of(one.rss * _MB_PER_MIB for one in memory)


def render(footprint: Footprint) -> str:
    """A table of the components beside their budgets."""
    rows = []
    for component, memory in footprint.memory.items():
        rss, pss = resident(memory), Figure.of(one.pss * _MB_PER_MIB for one in memory)
        budget = BUDGETS.get(component)
        rows.append(
            [
                component,
                len(memory),
                rss.text(1),
                NONE if budget is None else f"{budget:.0f}",
                NONE if budget is None else verdict(rss, budget),
                pss.text(1),
            ]
        )
    head = ["idle", "processes", "RSS, MB, median (range)", "budget", "", "PSS, MB (shared pages divided)"]
    return table(head, rows)


def main() -> int:
    """Exit code 0 if every budget is met, else 1."""
    configure("error", json=False)
    footprint = asyncio.run(measure())
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_bytes(msgspec.json.format(msgspec.json.encode(footprint), indent=1) + b"\n")
    print(render(footprint))
    over = [component for component, limit in BUDGETS.items() if resident(footprint.memory[component]).median > limit]
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())

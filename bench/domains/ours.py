"""Interlace under test: everything that ``deploy/`` installs, on hollow nodes, as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from bench.domains.launch import SEPARATE, Launcher
from bench.domains.natives import compile_nvml
from bench.domains.series import Series
from bench.domains.usage import read_usage
from bench.domains.world import World
from interlace.manifests.components import HTTP_PORT
from interlace.sim import audit
from interlace.sim.cluster import NAMESPACE, Cluster, ClusterSettings, run_cluster
from interlace.sim.kubelet.process import find_processes
from interlace.sim.kubelet.programs import Programs
from interlace.sim.kubelet.settings import KubeletSettings

IMEX = "nvidia-imex (simulated)"
NODE_GRACE = 50.0
EVICTION = 300
"""The platform's own times: no node is lost in a measurement."""
SYNC_BACKOFF = 0.05
"""Without the wait for volumes a hollow kubelet may ask for a claim before the node authorizer knows of it."""


NVML_PERIOD = 30.0
"""Seconds between two readings of an agent."""
_METRICS_LIMIT = 5.0
_LOOK = 0.2
_QUIET = 3.0
"""Longer than the gaps within a round."""


class _Running:
    """A cluster with Interlace in it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def component(self, user: str) -> str:
        return audit.component(user, namespace=NAMESPACE)

    async def calm(self) -> None:
        """Wait for the end of a round of NVML readings.

        Agents that were started together read NVML at about the same time. On separate machines that is no
        matter; here it fills all cores for seconds, so a run begins when a round has just ended.
        """
        if not self.cluster.fleet.programs.separate:
            return  # facts of simulated GPUs are read without a process
        before = self._helpers()
        quiet, last = 0.0, before
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.5 * NVML_PERIOD):
                while last == before or quiet < _QUIET:
                    await asyncio.sleep(_LOOK)  # only the counters of /proc tell
                    now = self._helpers()
                    quiet = quiet + _LOOK if now == last else 0.0
                    last = now

    async def imex_starts(self) -> list[float]:
        """From the metrics of the imex-hosts."""
        limit = aiohttp.ClientTimeout(total=_METRICS_LIMIT)
        async with aiohttp.ClientSession(timeout=limit, raise_for_status=True) as session:

            async def read(address: str) -> float:
                async with session.get(f"http://{address}:{HTTP_PORT}/metrics") as answer:
                    return parse_start(await answer.text())

            async with asyncio.TaskGroup() as group:
                reads = [group.create_task(read(pod.status.pod_ip)) for pod in self.cluster.our_pods("imex-host")]
        return sorted(seconds for task in reads if (seconds := task.result()) > 0)

    def _helpers(self) -> float:
        agents = {"agent": self.processes()["agent"]}
        return sum(sample.helpers for sample in read_usage(agents)["agent"].values())

    def processes(self) -> dict[str, list[int]]:
        pids = self.cluster.fleet.programs.processes
        found = {
            component: [
                pids[pod.metadata.name] for pod in self.cluster.our_pods(component) if pod.metadata.name in pids
            ]
            for component in sorted(SEPARATE)
        }
        return found | {IMEX: find_processes(self.cluster.folder, program="interlace-simulated/daemon")}


def parse_start(metrics: str) -> float:
    """Seconds from the start of ``nvidia-imex`` to READY, from an imex-host's metrics; 0 if it never was."""
    found = re.search(r"^interlace_imex_start_seconds(?:\{\})? (\S+)$", metrics, re.MULTILINE)
    return float(found[1]) if found else 0.0


class Interlace:
    """The driver of this project."""

    name = "interlace"
    components = ("controller", "agent", "imex-host")

    def __init__(self, *, tell: Callable[[str], None] = lambda _line: None) -> None:
        self._tell = tell

    @asynccontextmanager
    async def start(self, series: Series, *, nodes: int) -> AsyncIterator[World]:
        """Raises NativeError without a compiler, and what `run_cluster` raises."""
        settings = ClusterSettings(
            server="real",
            nodes=nodes,
            per_clique=series.per_clique,
            replicas=1,
            node_grace=NODE_GRACE,
            eviction=EVICTION,
            platform_rate=series.platform_rate,
            kubelet=KubeletSettings(volume_wait=series.volume_wait, sync_backoff=SYNC_BACKOFF),
        )
        with tempfile.TemporaryDirectory(prefix="interlace-bench-") as folder:
            launch = Launcher(nvml=await compile_nvml(Path(folder)))
            separate = frozenset() if series.together else SEPARATE
            programs = Programs(imex_start=series.imex_start, separate=separate, launch=launch)
            async with run_cluster(settings, programs=programs, tell=self._tell) as cluster:
                yield _Running(cluster)

"""The clusters on which scale is measured, and what is read of them: memory, tasks, files.

The controller is a process of its own, so that its memory is its own. Agents and imex-hosts run as they do in a
cluster, each with its own connections, sockets and files, but inside the process of the hollow (simulated) nodes:
a thousand Pythons do not fit into one machine.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

from bench.domains.load import share_niceness
from bench.domains.usage import read_memory
from bench.domains.world import plane_processes
from bench.scale.counted import SUFFIX
from bench.scale.trend import Trend
from interlace.sim.cluster import Cluster, ClusterSettings, run_cluster
from interlace.sim.kubelet.container import ContainerRecord
from interlace.sim.kubelet.node import HollowNode
from interlace.sim.kubelet.programs import Command, Programs, launch_child
from interlace.sim.kubelet.settings import KubeletSettings
from testbed.plane import ControlPlane

Server = Literal["embedded", "real"]
SEPARATE: Final = frozenset({"controller"})
NODE_GRACE: Final = 120.0
"""Seconds until a node without Lease counts as lost: a slow machine loses none."""
IMEX_START: Final = 0.05
"""Seconds to READY, as set; what it takes on a busy machine is measured."""
_MB: Final = 2**20 / 1e6


@asynccontextmanager
async def run_ground(
    server: Server,
    *,
    nodes: int,
    per_clique: int = 18,
    lease: float = 10.0,
    imex_start: float = IMEX_START,
    tell: Callable[[str], None] = lambda _line: None,
) -> AsyncIterator[Cluster]:
    """A fresh cluster with everything installed. Raises what ``run_cluster`` raises."""
    settings = ClusterSettings(
        server=server,
        nodes=nodes,
        per_clique=per_clique,
        replicas=1,
        node_grace=NODE_GRACE,
        imex_start=imex_start,
        kubelet=KubeletSettings(lease=lease, volume_wait=0.05, sandbox=0.05, plugin_scan=min(5.0, 0.1 + nodes / 100)),
        separate=SEPARATE,
    )
    programs = Programs(imex_start=imex_start, separate=SEPARATE, launch=_launch)
    async with run_cluster(settings, programs=programs, tell=tell) as cluster:
        _share(cluster)
        yield cluster


def _share(cluster: Cluster) -> None:
    """Control plane, controller and nodes get the niceness of this program; each ``nvidia-imex`` (simulated) is a
    session of its own, and fifty of them would starve everything else where the kernel groups by session.
    """
    plane = cluster.plane
    platform = plane_processes(plane.state_dir) if isinstance(plane, ControlPlane) else {}
    share_niceness([os.getpid(), *_pids(cluster), *(pid for pids in platform.values() for pid in pids)])


def _launch(record: ContainerRecord, node: HollowNode) -> Command:
    plain = launch_child(record, node)
    return Command(argv=(sys.executable, "-m", "bench.scale.counted", plain.argv[-1]), env=plain.env)


def controller_memory(cluster: Cluster) -> float:
    """RSS of the controller, MB; 0 while it does not run."""
    memory = read_memory(_pids(cluster))
    return round(memory.rss * _MB, 1) if memory is not None else 0.0


def files(cluster: Cluster) -> set[str]:
    """Files on all machines, ``node/path``; logs apart."""
    return {
        f"{name}/{(Path(folder) / file).relative_to(node.tray.root)}"
        for name, node in cluster.fleet.nodes.items()
        for folder, _, found in os.walk(node.tray.root)
        if "/var/log" not in folder
        for file in found
    }


def _pids(cluster: Cluster) -> list[int]:
    pods = [pod.metadata.name for pod in cluster.our_pods("controller")]
    return [pid for pod in pods if (pid := cluster.fleet.programs.processes.get(pod)) is not None]


class Gauges:
    """Samples of what must not grow. ``run`` reads until cancelled."""

    def __init__(self, cluster: Cluster, *, every: float) -> None:
        self._cluster = cluster
        self._every = every
        self._began = time.monotonic()
        self._seconds: list[float] = []
        self._values: dict[str, list[float]] = {name: [] for name in _ALLOWED}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.read()
            await asyncio.sleep(self._every)

    def read(self) -> None:
        """One sample of each."""
        own = read_memory([os.getpid()])
        pids = _pids(self._cluster)
        found = {
            "controller: memory": controller_memory(self._cluster),
            "controller: tasks": _tasks(self._cluster),
            "controller: open files": sum(_descriptors(pid) for pid in pids),
            "agents, imex-hosts and hollow nodes: memory": own.rss * _MB if own is not None else 0.0,
            "agents, imex-hosts and hollow nodes: tasks": len(asyncio.all_tasks()),
            "agents, imex-hosts and hollow nodes: open files": _descriptors(os.getpid()),
            "files on the nodes": len(files(self._cluster)),
        }
        self._seconds.append(time.monotonic() - self._began)
        for name, value in found.items():
            self._values[name].append(round(float(value), 1))

    def trends(self) -> list[Trend]:
        """What was read so far."""
        moments = tuple(round(at, 1) for at in self._seconds)
        return [
            Trend(what=what, unit=unit, seconds=moments, values=tuple(self._values[what]), allowed=allowed)
            for what, (unit, allowed) in _ALLOWED.items()
        ]


_ALLOWED: Final = {
    "controller: memory": ("MB", 3.0),
    "controller: tasks": ("tasks", 5.0),
    "controller: open files": ("files", 5.0),
    "agents, imex-hosts and hollow nodes: memory": ("MB", 15.0),
    "agents, imex-hosts and hollow nodes: tasks": ("tasks", 150.0),
    "agents, imex-hosts and hollow nodes: open files": ("files", 60.0),
    "files on the nodes": ("files", 150.0),
}
"""Unit, and by how much each may be higher at the end: what runs differs from moment to moment of a churn."""


def _tasks(cluster: Cluster) -> int:
    found = 0
    for node in cluster.fleet.nodes.values():
        for file in (node.tray.root / "run").glob(f"*{SUFFIX}"):
            found += _number(file)
    return found


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def _descriptors(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0

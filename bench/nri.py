"""How long the device injector takes for one container: ``python -m bench.nri [--first] [CALLS]``.

The installed ``interlace serve agent`` as a process of its own, on a hollow node beside the embedded (simulated) API
server, and a container runtime's NRI side (simulated) that asks it about one container after another: daemons of A3
Mega Pods with their eleven devices (stand-ins), each in turn with a container that asks for nothing. The time is what
the runtime sees, from the request written to the answer read: the plugin's own, the socket and this program's part.
On a machine with other work ``--first`` gives agent and runtime their cores whenever they ask (SCHED_FIFO, needs
root), as an idle machine would.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench.domains.launch import SEPARATE, Launcher
from bench.domains.natives import compile_nvml
from bench.domains.usage import read_memory
from bench.figures import table
from bench.webhook import percentile
from interlace.fabric.devices import PREFIX
from interlace.fabric.family import find
from interlace.kube.log import configure
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.sim.cluster import ClusterSettings, run_cluster
from interlace.sim.kubelet.container import ContainerRecord
from interlace.sim.kubelet.node import HollowNode
from interlace.sim.kubelet.programs import Command, Programs
from interlace.sim.nri import RuntimeSettings, Session, run_runtime

RESULT = Path(__file__).parent / "results" / "nri.json"
BUDGET = 2.0
"""Milliseconds, p99."""
MEMORY = 45.0
"""MB of RSS of the agent afterwards."""
CALLS = 1000
WARM = 20
"""Calls before the count begins."""
START_LIMIT = 60.0
_MB_PER_MIB = 2**20 / 1e6


class Creations(msgspec.Struct, kw_only=True):
    """Result file; milliseconds each, in the order in which they happened."""

    python: str
    cores: int
    load_before: float
    first: bool
    """Agent and runtime were never made to wait for a core by other programs."""
    job: list[float]
    """Containers that ask with the same text, as those of a job do."""
    own: list[float]
    """Containers that ask with a text that was not seen before."""
    plain: list[float]
    """Containers that do not ask."""
    rss: float
    """Of the agent afterwards, MB."""


def render(found: Creations) -> str:
    """A table of what was measured beside the budgets."""
    rows: list[list[object]] = []
    for name, values, judged in (
        ("daemon of a job", found.job, True),
        ("daemon with a text of its own", found.own, False),
        ("asks for nothing", found.plain, True),
    ):
        p99 = percentile(values, 0.99)
        figures = [f"{figure:.2f}" for figure in (percentile(values, 0.5), p99, max(values))]
        verdict = "met" if p99 <= BUDGET else "**missed**"
        rows.append([name, len(values), *figures, f"{BUDGET:.0f}" if judged else "–", verdict if judged else "–"])
    head = ["CreateContainer, milliseconds", "calls", "median", "p99", "longest", "budget of p99", ""]
    memory = "met" if found.rss <= MEMORY else "**missed**"
    return (
        table(head, rows)
        + "\n"
        + table(["after that", "RSS, MB", "budget", ""], [["agent", f"{found.rss:.1f}", f"{MEMORY:.0f}", memory]])
    )


async def measure(calls: int = CALLS, *, first: bool = False) -> Creations:
    """Raises what `run_cluster` and `compile_nvml` raise, ``TimeoutError`` if the agent does not register."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="interlace-bench-") as name:
        folder = Path(name)
        dev = folder / "dev"
        dev.mkdir()
        for path in _devices():
            os.mkfifo(dev / path.removeprefix("/dev/"))
        programs = Programs(
            separate=SEPARATE, launch=_Launch(Launcher(nvml=await compile_nvml(folder)), folder=folder, dev=dev)
        )
        async with (
            run_runtime(folder / "nri.sock", RuntimeSettings(limit=START_LIMIT)) as runtime,
            run_cluster(ClusterSettings(nodes=1, replicas=1), programs=programs) as cluster,
        ):
            session = await runtime.next(within=START_LIMIT)
            (agent,) = (programs.processes[pod.metadata.name] for pod in cluster.our_pods("agent"))
            if first:
                for pid in (agent, 0):
                    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
            for number in range(WARM):
                await _create(session, number, _text())
            job: list[float] = []
            plain: list[float] = []
            for number in range(calls):
                job.append(await _create(session, number, _text()))
                plain.append(await _create(session, number, ""))
            own = [await _create(session, number, f"# {number}\n{_text()}") for number in range(calls)]
            memory = read_memory([agent])
            assert memory is not None
        return Creations(
            python=sys.version.split()[0],
            cores=os.cpu_count() or 1,
            load_before=round(load, 2),
            first=first,
            job=job,
            own=own,
            plain=plain,
            rss=round(memory.rss * _MB_PER_MIB, 1),
        )


def _devices() -> tuple[str, ...]:
    sidecar = find("a3-mega").pod.sidecar
    assert sidecar is not None
    return sidecar.devices


def _text() -> str:
    return "".join(f"- path: {path}\n" for path in _devices())


class _Launch:
    """The agent's command with injection switched on, the others' as they are."""

    def __init__(self, launcher: Launcher, *, folder: Path, dev: Path) -> None:
        self._launcher = launcher
        self._env = {
            "INTERLACE_NRI": "on",
            "INTERLACE_NRI_SOCKET": str(folder / "nri.sock"),
            "INTERLACE_HOST_DEV": str(dev),
        }

    def __call__(self, record: ContainerRecord, node: HollowNode) -> Command:
        made = self._launcher(record, node)
        if record.component != "agent":
            return made
        return Command(argv=made.argv, env={**(made.env or {}), **self._env})


async def _create(session: Session, number: int, text: str) -> float:
    """Milliseconds for one container."""
    annotations = {"networking.gke.io/default-interface": "eth0", "note": "x" * 500}
    if text:
        annotations[f"{PREFIX}tcpxo-daemon"] = text
    pod = pb.PodSandbox(
        id=f"{number:064x}", name=f"train-{number}", uid=f"uid-{number}", namespace="team", annotations=annotations
    )
    container = pb.Container(id=f"{number:064x}", pod_sandbox_id=pod.id, name="tcpxo-daemon")
    began = time.perf_counter()
    devices = await session.create(pod, container)
    taken = 1000 * (time.perf_counter() - began)
    assert len(devices) == (len(_devices()) if text else 0)
    return taken


def main() -> int:
    """Exit code 0 if the budgets are met, else 1."""
    configure("error", json=False)
    words = [word for word in sys.argv[1:] if word != "--first"]
    found = asyncio.run(measure(int(words[0]) if words else CALLS, first="--first" in sys.argv))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_bytes(msgspec.json.encode(found) + b"\n")
    print(render(found))
    late = any(percentile(values, 0.99) > BUDGET for values in (found.job, found.plain))
    return 1 if late or found.rss > MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())

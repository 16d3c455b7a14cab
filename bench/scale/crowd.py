"""A cluster of a thousand nodes: one more domain among sixty, what rest costs, and one domain over all nodes.

The domain that is measured runs on whole hollow nodes, with real agents, imex-hosts and (simulated) ``nvidia-imex``;
the other nodes are thin (``thin``). Each figure is taken in three states of the same cluster: alone with its own
nodes, with all nodes and no other domain, with all nodes and all domains.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from bench.domains.marks import Marks
from bench.domains.usage import read_memory
from bench.domains.world import plane_processes
from bench.scale.formation import Formed, form, ours
from bench.scale.ground import Server, controller_memory, run_ground
from bench.scale.jobs import Jobs
from bench.scale.thin import READY, THIN, Login, Spec
from interlace.api.computedomain import ComputeDomainClique
from interlace.sim.cluster import NAMESPACE, Cluster
from testbed.plane import ControlPlane

WIDTH: Final = 18
"""Nodes of the domain that is measured."""
LEASE: Final = 10.0
START_LIMIT: Final = 600.0
"""Seconds until all thin nodes are there and the Pods of our DaemonSets run on them."""
REST: Final = 20.0
"""Seconds until a cluster is called idle."""
NICER: Final = 5
"""The thin nodes have machines of their own in a cluster: they yield to the control plane."""
_MB: Final = 2**20 / 1e6
Tell = Callable[[str], None]
_WHOLE: Final[dict[str, Any]] = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": THIN, "operator": "DoesNotExist"}]}]
            }
        }
    }
}
_THIN: Final[dict[str, Any]] = {"nodeSelector": {THIN: "true"}}


class State(msgspec.Struct, frozen=True, kw_only=True):
    """One of the three."""

    what: str
    nodes: int
    domains: int
    formed: list[Formed]
    controller: float
    """MB of RSS afterwards."""
    apiserver: float
    """MB of RSS, 0 where it is the embedded one."""
    clique_bytes: float
    """Bytes of watch events of node maps to all watchers for one of these domains, its end included; 0 where the
    API server does not count them."""


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster in which nothing happens."""

    seconds: float
    requests: dict[str, int]
    """Of our components, by component, verb and kind; watches and Leases apart."""
    leases: int
    """Requests of our controller about its Lease."""
    watches: int
    """Watches that ended by themselves and began anew."""


class Wide(msgspec.Struct, frozen=True, kw_only=True):
    """One domain over all nodes."""

    formed: Formed
    cliques: int
    domain_bytes: int
    """Size of the ComputeDomain as it is stored."""
    clique_bytes: int
    """Size of the largest of its node maps."""
    controller: float


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured of one cluster."""

    server: Server
    nodes: int
    domains: int
    per_domain: int
    states: list[State]
    idle: Idle
    wide: Wide | None
    installed: float
    """Seconds for the thin nodes to come and to run our Pods."""


async def measure(
    server: Server, *, nodes: int, domains: int, runs: int, idle: float, wide: bool, warm: bool = True, tell: Tell
) -> Crowd:
    """``warm``: in each state a domain is formed before those that count.

    Raises ``NotReachedError`` for what does not come, and what ``run_ground`` raises.
    """
    async with run_ground(server, nodes=WIDTH, lease=LEASE, tell=tell) as cluster:
        marks = Marks(cluster)
        there, others = (Jobs(cluster, namespace=name, limit=START_LIMIT) for name in ("measured", "others"))
        await there.open()
        await others.open()
        states = [
            await _state(cluster, marks, there, what="its own nodes alone", domains=0, runs=runs, warm=warm, tell=tell)
        ]
        began = time.monotonic()
        async with thin_nodes(cluster, count=nodes - WIDTH, tell=tell):
            await _until_whole(cluster, nodes)
            installed = time.monotonic() - began
            tell(f"{nodes} nodes after {installed:.0f} s")
            states.append(
                await _state(cluster, marks, there, what="all nodes", domains=0, runs=runs, warm=warm, tell=tell)
            )
            width = (nodes - WIDTH) // domains
            names = [f"domain-{number:02d}" for number in range(domains)]
            for name in names:
                await others.start(name, count=width, pod=_THIN)
            for name in names:
                await others.formed(name, count=width)
            what = "all nodes and domains"
            states.append(
                await _state(cluster, marks, there, what=what, domains=domains, runs=runs, warm=warm, tell=tell)
            )
            resting = await _rest(cluster, seconds=idle)
            tell(f"idle: {resting}")
            for name in names:
                await others.remove(name)
            await others.gone()
            found = await _wide(cluster, marks, there, nodes=nodes, tell=tell) if wide else None
        return Crowd(
            server=server,
            nodes=nodes,
            domains=domains,
            per_domain=width,
            states=states,
            idle=resting,
            wide=found,
            installed=round(installed, 1),
        )


@asynccontextmanager
async def thin_nodes(cluster: Cluster, *, count: int, tell: Tell) -> AsyncIterator[None]:
    """So many more nodes, until the block ends. Raises TimeoutError where they do not come."""
    plane = cluster.plane
    spec = Spec(
        server=plane.url,
        kubelet=Login.of(plane.credentials("thin-kubelet", groups=["system:masters"])),
        agent=Login.of(
            plane.credentials(f"system:serviceaccount:{NAMESPACE}:interlace-agent", groups=["system:masters"])
        ),
        namespace=NAMESPACE,
        count=count,
        per_clique=18,
        rack=str(uuid.uuid4()),
        lease=LEASE,
    )
    path = cluster.folder / "thin.json"
    path.write_bytes(msgspec.json.encode(spec))
    process = await asyncio.create_subprocess_exec(
        "nice", f"-n{NICER}", sys.executable, "-m", "bench.scale.thin", str(path), stdout=asyncio.subprocess.PIPE
    )
    try:
        tell(f"{count} thin nodes (simulated) come")
        async with asyncio.timeout(START_LIMIT):
            if process.stdout is None or (await process.stdout.readline()).decode().strip() != READY:
                raise OSError("the process of the thin nodes ended before they were there")
        yield
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(10):
                    await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _until_whole(cluster: Cluster, nodes: int) -> None:
    def missing() -> str:
        ready = {name: sum(pod.ready for pod in cluster.our_pods(name)) for name in ("agent", "imex-host")}
        return ", ".join(f"{name} {count}/{nodes}" for name, count in ready.items() if count < nodes)

    await cluster.signal.until("our Pods on all nodes", lambda: not missing(), within=START_LIMIT, instead=missing)


async def _state(
    cluster: Cluster, marks: Marks, jobs: Jobs, *, what: str, domains: int, runs: int, warm: bool, tell: Tell
) -> State:
    if warm:
        await form(cluster, marks, jobs, "warm", count=WIDTH, pod=_WHOLE)
    before = await _clique_bytes(cluster)
    formed = [await form(cluster, marks, jobs, f"one-more-{number}", count=WIDTH, pod=_WHOLE) for number in range(runs)]
    found = State(
        what=what,
        nodes=len(cluster.slices),
        domains=domains,
        formed=formed,
        controller=controller_memory(cluster),
        apiserver=_apiserver(cluster),
        clique_bytes=round((await _clique_bytes(cluster) - before) / runs, 1),
    )
    tell(f"{what}: {[one.prepared for one in formed]} s to the last channel, controller {found.controller} MB")
    return found


async def _rest(cluster: Cluster, *, seconds: float) -> Idle:
    await asyncio.sleep(REST)
    since = time.time()
    await asyncio.sleep(seconds)
    until = time.time()
    records = await asyncio.to_thread(cluster.plane.audit)
    recent = [r for r in records if since <= r.time < until and r.user_agent.startswith("interlace-")]
    return Idle(
        seconds=round(until - since, 1),
        requests=dict(ours(records, since=since, until=until)),
        leases=sum(record.resource == "leases" for record in recent),
        watches=sum(record.verb == "watch" for record in recent),
    )


async def _wide(cluster: Cluster, marks: Marks, jobs: Jobs, *, nodes: int, tell: Tell) -> Wide:
    """``form`` removes the domain, so its sizes are read by a watcher while it is there."""
    largest: dict[str, int] = {"domain": 0, "clique": 0, "cliques": 0}
    memory = 0.0

    async def look() -> None:
        nonlocal memory
        while True:
            listing = await cluster.client.list(ComputeDomainClique, namespace=NAMESPACE)
            found = jobs.domain("wide")
            largest["domain"] = max(largest["domain"], len(msgspec.json.encode(found)) if found is not None else 0)
            sizes = [len(msgspec.json.encode(clique)) for clique in listing.items]
            largest["clique"] = max([largest["clique"], *sizes])
            largest["cliques"] = max(largest["cliques"], len(sizes))
            memory = max(memory, controller_memory(cluster))
            await asyncio.sleep(1)

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        formed = await form(cluster, marks, jobs, "wide", count=nodes, whole=WIDTH, numNodes=nodes)
        looking.cancel()
    tell(f"one domain of {nodes} nodes: {formed}")
    return Wide(
        formed=formed,
        cliques=largest["cliques"],
        domain_bytes=largest["domain"],
        clique_bytes=largest["clique"],
        controller=memory,
    )


async def _clique_bytes(cluster: Cluster) -> int:
    if not isinstance(cluster.plane, ControlPlane):
        return 0
    resource = ComputeDomainClique.resource
    return (await cluster.plane.watch_bytes()).get(f"{resource.plural}.{resource.group}", 0)


def _apiserver(cluster: Cluster) -> float:
    if not isinstance(cluster.plane, ControlPlane):
        return 0.0
    memory = read_memory(plane_processes(cluster.plane.state_dir).get("kube-apiserver", []))
    return round(memory.rss * _MB, 1) if memory is not None else 0.0

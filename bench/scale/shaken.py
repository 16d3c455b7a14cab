"""Two subjects that shake a cluster: long churn of many jobs, and races of two domains for the same nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from bench.scale import leaks
from bench.scale.checker import Checker
from bench.scale.churn import RACE_STEPS, Churn
from bench.scale.ground import Gauges, Server, run_ground
from bench.scale.jobs import Jobs
from bench.scale.room import PLACES
from bench.scale.roomwatch import RoomWatch, Slow
from bench.scale.trend import Trend
from interlace.sim.cluster import Cluster

WIDE: Final = 18
"""Pods of each of the two domains of a race."""
PAUSE: Final = 0.5
"""Mean seconds between two steps of a churn."""
RACE_PAUSE: Final = 0.25
Tell = Callable[[str], None]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Many times as a few figures, seconds."""

    count: int
    median: float
    p99: float
    longest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of values in any order; all 0 without one."""
        ordered = sorted(values) or [0.0]
        last = len(ordered) - 1
        median, p99 = ordered[last // 2], ordered[round(0.99 * last)]
        return cls(count=len(values), median=round(median, 2), p99=round(p99, 2), longest=round(ordered[-1], 2))


class Shaken(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a cluster that was shaken."""

    server: Server
    nodes: int
    seconds: float
    seed: int
    steps: dict[str, int] = {}
    allocations: int
    prepared: int
    maps: int
    breaches: list[str]
    waited: Spread
    """Pods that were not Ready although there was room: how long each time."""
    slow: list[Slow]
    late_looks: float
    """Longest that the measuring itself was held up, seconds."""
    together: float = 0.0
    """Races: from the creation of both to the last Ready Pod that fits."""
    whole_again: float = 0.0
    """Races: the same after the churn."""
    leaks: list[str] = []
    trends: list[Trend] = []

    @property
    def good(self) -> bool:
        """Whether nothing was seen that must not be; times and trends are judged by who prints them."""
        return not self.breaches and not self.leaks


@asynccontextmanager
async def _watched(cluster: Cluster, jobs: Jobs) -> AsyncIterator[tuple[Checker, RoomWatch]]:
    checker = Checker(cluster)
    async with checker.watching(), asyncio.TaskGroup() as group:
        room = RoomWatch(cluster, checker=checker, namespace=jobs.namespace)
        looking = group.create_task(room.run())
        try:
            yield checker, room
        finally:
            looking.cancel()


async def churn(
    server: Server, *, nodes: int, jobs: int, seconds: float, seed: int, pause: float = PAUSE, tell: Tell
) -> Shaken:
    """Random jobs for ``seconds``; then all end, and what is left is looked for."""
    async with run_ground(server, nodes=nodes, tell=tell) as cluster:
        there = Jobs(cluster, namespace="churn")
        await there.open()
        before = await _used(cluster, there)
        async with _watched(cluster, there) as (checker, room), asyncio.TaskGroup() as group:
            names = [f"job-{number}" for number in range(jobs)]
            shake = Churn(there, names=names, most=max(2, 2 * nodes // jobs), seed=seed, gpus=0)
            gauges = Gauges(cluster, every=max(1.0, seconds / 120))
            reading = group.create_task(gauges.run())
            tell(f"churn of {jobs} jobs on {nodes} nodes for {seconds:g} s, seed {seed}")
            began = time.monotonic()
            await shake.run(seconds=seconds, pause=pause)
            took = time.monotonic() - began
            reading.cancel()
            tell(f"{checker.allocations} allocations, {len(checker.breaches)} breaches; everything ends")
            for name in names:
                await there.remove(name)
            await there.gone()
            left = await leaks.settled(cluster, before)
        seen = _seen(shake, checker, room, server=server, nodes=nodes, seconds=round(took, 1), seed=seed)
        return msgspec.structs.replace(seen, leaks=left, trends=gauges.trends())


def _seen(
    shake: Churn, checker: Checker, room: RoomWatch, *, server: Server, nodes: int, seconds: float, seed: int
) -> Shaken:
    """What checker and room have seen so far."""
    return Shaken(
        server=server,
        nodes=nodes,
        seconds=seconds,
        seed=seed,
        steps=dict(sorted(shake.done.items())),
        allocations=checker.allocations,
        prepared=checker.prepared,
        maps=checker.maps,
        breaches=checker.breaches,
        waited=Spread.of(room.waited),
        slow=room.slow,
        late_looks=round(room.late_looks, 2),
    )


async def _used(cluster: Cluster, jobs: Jobs) -> leaks.Rest:
    """The cluster at rest after each node has served one domain: last orders and logs of IMEX stay on the nodes."""
    nodes = len(cluster.gpu_nodes)
    await jobs.start("first", count=nodes)
    await jobs.formed("first", count=nodes)
    await jobs.remove("first")
    await jobs.gone()
    await asyncio.sleep(leaks.QUIET)
    return await leaks.look(cluster)


async def races(server: Server, *, nodes: int, runs: int, seconds: float, seed: int, tell: Tell) -> list[Shaken]:
    """Two domains of 18 that start together and are shaken, ``runs`` times on one cluster."""
    async with run_ground(server, nodes=nodes, tell=tell) as cluster:
        return [
            await race(cluster, server=server, number=number, seconds=seconds, seed=seed + number, tell=tell)
            for number in range(1, runs + 1)
        ]


async def race(cluster: Cluster, *, server: Server, number: int, seconds: float, seed: int, tell: Tell) -> Shaken:
    """One of them, in a namespace of its own; everything is gone afterwards."""
    there = Jobs(cluster, namespace=f"race-{number}")
    await there.open()
    names = ("left", "right")
    async with _watched(cluster, there) as (checker, room):
        began = time.monotonic()
        for name in names:
            await there.start(name, count=WIDE, gpus=0)
        await until_whole(there, names)
        together = time.monotonic() - began
        shake = Churn(there, names=names, most=WIDE, seed=seed, gpus=0, steps=RACE_STEPS)
        await shake.run(seconds=seconds, pause=RACE_PAUSE)
        again = time.monotonic()
        for name in names:
            await there.scale(name, count=WIDE, gpus=0)
        await until_whole(there, names)
        ended = time.monotonic()
    seen = _seen(shake, checker, room, server=server, nodes=len(cluster.gpu_nodes), seconds=seconds, seed=seed)
    shaken = msgspec.structs.replace(seen, together=round(together, 2), whole_again=round(ended - again, 2))
    tell(
        f"{shaken.nodes} nodes, run {number}: together {shaken.together} s, {shaken.allocations} allocations, "
        f"{len(shaken.breaches)} breaches, longest wait with room {shaken.waited.longest} s, whole again after "
        f"{shaken.whole_again} s"
    )
    for name in names:
        await there.remove(name)
    await there.gone()
    return shaken


async def until_whole(jobs: Jobs, names: tuple[str, ...], *, count: int = WIDE) -> None:
    """Wait until each job has ``count`` Ready Pods, or as many as fit on the nodes that the others leave it."""

    def missing() -> list[str]:
        used = {pod.spec.node_name for name in names for pod in jobs.pods(name)}
        free = set(jobs.cluster.gpu_nodes) - used
        late = []
        for name in names:
            found = jobs.pods(name)
            nodes = {pod.spec.node_name for pod in found} - {""}
            ready = sum(pod.ready for pod in found)
            full = not free and ready == PLACES * len(nodes)
            if len(found) != count or not (ready == count or full):
                late.append(f"{name}: {jobs.picture(name)}")
            elif nodes != jobs.ready_nodes(name):
                late.append(f"{name}: its status shows other nodes than {sorted(nodes)}")
        return late

    await jobs.cluster.signal.until(
        "all Pods Ready", lambda: not missing(), within=jobs.limit, instead=lambda: "; ".join(missing())
    )

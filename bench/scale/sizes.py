"""Domains over several cliques, each node whole: how soon the last channel follows the last binding."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bench.domains.marks import Marks
from bench.scale.formation import Formed, form
from bench.scale.ground import Server, run_ground
from bench.scale.jobs import Jobs

Tell = Callable[[str], None]


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Domains over all nodes of one cluster."""

    nodes: int
    cliques: int
    volume_wait: float
    """Seconds that a hollow kubelet waits between binding and Prepare."""
    formed: list[Formed]


async def measure(server: Server, *, nodes: int, per_clique: int, runs: int, tell: Tell) -> Size:
    """``runs`` domains, one after the other, after one that is not counted."""
    async with run_ground(server, nodes=nodes, per_clique=per_clique, tell=tell) as cluster:
        marks, there = Marks(cluster), Jobs(cluster, namespace="sizes")
        await there.open()
        await form(cluster, marks, there, "warm", count=nodes)
        formed = []
        for number in range(runs):
            one = await form(cluster, marks, there, f"size-{number}", count=nodes)
            tell(f"{nodes} nodes: last bound {one.bound} s, prepared {one.prepared} s, Ready {one.ready} s")
            formed.append(one)
        return Size(
            nodes=nodes,
            cliques=-(-nodes // per_clique),
            volume_wait=cluster.settings.kubelet.volume_wait,
            formed=formed,
        )

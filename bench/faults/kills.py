"""SIGKILL for each of our processes, and for ``nvidia-imex``, at each step in the life of a domain."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from bench.faults.row import Row
from bench.faults.stage import Stage, eventually
from interlace.sim.trouble import break_imex, mend_imex

Kill = Callable[[Stage, str], Awaitable[None]]
"""Kills something on, or for, a node."""


def kill_pod(stage: Stage, pod: str, *, number: int = signal.SIGKILL) -> None:
    """Send a signal to the process of one of our Pods."""
    os.kill(stage.cluster.fleet.programs.processes[pod], number)


async def kill_controller(stage: Stage, _node: str) -> None:
    """The leading one."""
    kill_pod(stage, await stage.leader())


async def kill_agent(stage: Stage, node: str) -> None:
    """The agent of the node."""
    kill_pod(stage, stage.component("agent", node=node).metadata.name)


async def kill_host(stage: Stage, node: str) -> None:
    """The imex-host of the node."""
    kill_pod(stage, stage.component("imex-host", node=node).metadata.name)


async def kill_imex(stage: Stage, node: str) -> None:
    """``nvidia-imex`` of the node, if it runs."""
    for pid in stage.imex(node):
        with contextlib.suppress(ProcessLookupError):  # it may be on its way out already
            os.kill(pid, signal.SIGKILL)


async def forming(stage: Stage, *, kill: Kill) -> None:
    """Three nodes; the victim dies while a Prepare call waits for IMEX, the controller at the first binding."""
    nodes, late = stage.cluster.gpu_nodes, kill is not kill_controller
    if late:
        break_imex(stage.cluster, nodes, fault="never_ready")
    try:
        await stage.start("job", count=3)
        if late:
            await until_prepare_waits(stage)
            node = stage.calls()[0].node.tray.name
        else:
            await stage.until("a Pod on a node", lambda: any(pod.spec.node_name for pod in stage.pods()))
            node = next(pod.spec.node_name for pod in stage.pods() if pod.spec.node_name)
        stage.strike()
        await kill(stage, node)
    finally:
        mend_imex(stage.cluster, nodes)
    await stage.formed("job", count=3)


async def until_prepare_waits(stage: Stage) -> None:
    """Wait until a Prepare call waits for an IMEX that runs already."""

    async def missing() -> list[str]:
        calls = [worker for worker in stage.calls() if stage.imex(worker.node.tray.name)]
        return [] if calls else ["no Prepare call that waits for IMEX"]

    await eventually(missing, within=stage.limit)


async def growing(stage: Stage, *, kill: Kill) -> None:
    """From two nodes to three; the victim is that of the new node once its Pod is bound, or the old IMEX."""
    await stage.start("job", count=2)
    before = {pod.metadata.uid: pod.spec.node_name for pod in await stage.formed("job", count=2)}
    await stage.scale("job", count=3)

    def new() -> list[str]:
        return [
            pod.spec.node_name for pod in stage.pods("job") if pod.metadata.uid not in before and pod.spec.node_name
        ]

    await stage.until("the third Pod on a node", lambda: bool(new()))
    stage.strike()
    await kill(stage, next(iter(before.values())) if kill is kill_imex else new()[0])
    await stage.formed("job", count=3)
    stage.end()
    assert before.keys() <= stage.uids("job"), "a Pod that ran was replaced"


async def shrinking(stage: Stage, *, kill: Kill) -> None:
    """From three nodes to two; the victim is that of the node that leaves."""
    await stage.start("job", count=3)
    before = {pod.metadata.uid: pod.spec.node_name for pod in await stage.formed("job", count=3)}
    await stage.scale("job", count=2)
    await stage.until("the end of one Pod", lambda: len(stage.uids("job")) < 3)
    (leaving,) = {node for uid, node in before.items() if uid not in stage.uids("job")}
    stage.strike()
    await kill(stage, leaving)
    await stage.formed("job", count=2)

    async def rows() -> list[str]:
        found = [row.node_name for clique in await stage.cliques("job") for row in clique.daemons]
        return [f"rows of {sorted(found)}"] if leaving in found or len(found) != 2 else []

    await eventually(rows, within=stage.limit)


async def deleting(stage: Stage, *, kill: Kill) -> None:
    """Two nodes; domain and Pods are deleted, and the victim dies as soon as the domain is marked."""
    await stage.start("job", count=2)
    node = (await stage.formed("job", count=2))[0].spec.node_name
    await stage.remove("job")

    def marked() -> bool:
        found = stage.domain("job")
        return found is None or found.metadata.deletion_timestamp is not None

    await stage.until("a domain that is marked for deletion", marked)
    stage.strike()
    await kill(stage, node)
    await stage.gone()

    async def maps() -> list[str]:
        return [clique.metadata.name for clique in await stage.cliques()]

    await eventually(maps, within=stage.limit)


async def paused_leader(stage: Stage) -> None:
    """The leader stops without ending while the node map is written; it wakes up when another leads."""
    leader = await stage.leader()
    process = stage.cluster.fleet.programs.processes[leader]
    await stage.start("job", count=3)
    await stage.until("a Pod on a node", lambda: any(pod.spec.node_name for pod in stage.pods()))
    stage.strike()
    kill_pod(stage, leader, number=signal.SIGSTOP)
    try:
        await stage.formed("job", count=3)
        stage.end()
        (before,) = await stage.cliques("job")
    finally:
        kill_pod(stage, leader, number=signal.SIGCONT)

    async def blind() -> list[str]:
        same = stage.cluster.fleet.programs.processes.get(leader) == process
        return [f"{leader} has not noticed that another leads"] if same else []

    await eventually(blind, within=stage.limit)
    (after,) = await stage.cliques("job")
    assert after.daemons == before.daemons, "the old leader changed the node map of the new one"


VICTIMS: Final[tuple[tuple[str, str, Kill], ...]] = (
    ("controller", "the leading controller", kill_controller),
    ("agent", "the agent of a member", kill_agent),
    ("imex-host", "the imex-host of a member", kill_host),
    ("nvidia-imex", "nvidia-imex of a member", kill_imex),
)
STEPS: Final[tuple[tuple[str, str, str, Callable[..., Awaitable[None]]], ...]] = (
    ("forming", "while a domain of 3 nodes forms", "All 3 nodes and Pods are Ready.", forming),
    (
        "growing",
        "while a domain grows from 2 to 3 nodes",
        "All 3 nodes and Pods are Ready; the first 2 Pods are the same as before.",
        growing,
    ),
    ("shrinking", "while a node leaves a domain of 3", "2 nodes are Ready and in the node map, no other.", shrinking),
    ("deleting", "while a domain of 2 nodes is deleted", "Domain, Pods, claims and node map are gone.", deleting),
)
_CHEAP: Final = {
    ("agent", "growing"),
    ("agent", "deleting"),
    ("imex-host", "growing"),
    ("nvidia-imex", "shrinking"),
    ("nvidia-imex", "growing"),
}

ROWS: Final = (
    *(
        Row(
            name=f"kill-{victim}-{step}",
            fault=f"kill -9 of {what}",
            when=when,
            made="SIGKILL to its process",
            holds=holds,
            act=partial(act, kill=kill),
            cheap=(victim, step) in _CHEAP,
        )
        for victim, what, kill in VICTIMS
        for step, when, holds, act in STEPS
    ),
    Row(
        name="leader-change-in-a-clique-write",
        fault="the leader stops and comes back after another leads",
        when="while the node map of a domain is written",
        made="SIGSTOP, and SIGCONT once the other controller has formed the domain",
        holds="All 3 nodes are Ready; the old leader changes nothing and ends.",
        act=paused_leader,
    ),
)

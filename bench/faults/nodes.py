"""Machines that go, come back, or come back elsewhere."""

from __future__ import annotations

import contextlib
import time
from typing import Final

import msgspec

from bench.faults.row import Row
from bench.faults.stage import Stage, eventually
from interlace.api.computedomain import NODE_CLIQUE_LABEL
from interlace.api.core import Node, Pod
from interlace.kube.errors import NotFound


async def deleted(stage: Stage) -> None:
    """A machine of the domain is gone for good, with its Node."""
    cluster = stage.cluster
    await stage.start("job", count=3)
    victim = (await stage.formed("job", count=3))[0]
    gone = victim.spec.node_name
    stage.strike()
    await cluster.fleet.power_off(gone)
    try:
        await cluster.client.delete(Node, gone)
        with contextlib.suppress(NotFound):  # its owner's end was faster
            await cluster.client.delete(Pod, victim.metadata.name, namespace=stage.namespace, grace_period=0)
        await stage.until("the end of its Pod", lambda: victim.metadata.uid not in stage.uids("job"))
        pods = await stage.formed("job", count=3)
        stage.end()
        assert gone not in {pod.spec.node_name for pod in pods}
    finally:
        cluster.fleet.power_on(gone)


async def booted(stage: Stage, node: str, pod: Pod, *, since: float) -> None:
    """Wait until the Pod was prepared anew on a node that has booted, and ``nvidia-imex`` runs there."""

    async def missing() -> list[str]:
        worker = stage.cluster.fleet.nodes[node].workers.get(pod.metadata.uid)
        if worker is None or (worker.prepared_at or 0) < since:
            return [f"{pod.metadata.name} is not prepared anew"]
        return [] if stage.imex(node) else [f"no nvidia-imex on {node}"]

    await eventually(missing, within=stage.limit)


async def rebooted(stage: Stage) -> None:
    """Power off and on: a new boot id, no process, no socket, the same Pods."""
    await stage.start("job", count=3)
    victim = (await stage.formed("job", count=3))[0]
    node, since = victim.spec.node_name, time.time()
    stage.strike()
    await stage.cluster.fleet.power_off(node)
    stage.cluster.fleet.power_on(node)
    await booted(stage, node, victim, since=since)
    pods = await stage.formed("job", count=3)
    stage.end()
    assert victim.metadata.uid in {pod.metadata.uid for pod in pods}, "the Pod was replaced"


async def moved(stage: Stage) -> None:
    """A machine comes back in another rack: its row moves to the node map of the other clique."""
    cluster = stage.cluster
    await stage.start("job", count=3)
    victim = (await stage.formed("job", count=3))[0]
    name, since = victim.spec.node_name, time.time()
    node = cluster.fleet.nodes[name]
    here = node.tray
    there = here.clique.rpartition(".")[0] + ".9"
    stage.strike()
    try:
        await _boot_in(stage, name, clique=there)
        await booted(stage, name, victim, since=since)

        def shown() -> dict[str, str]:
            found = stage.domain("job")
            nodes = found.status.nodes if found is not None and found.status is not None else []
            return {one.name: one.clique_id for one in nodes if one.status == "Ready"}

        await stage.until(
            "the node in its new clique",
            lambda: shown().get(name) == there and len(shown()) == 3,
            instead=lambda: str(shown()),
        )

        async def stale() -> list[str]:
            return [
                f"{clique.metadata.name} has {name}"
                for clique in await stage.cliques("job")
                for row in clique.daemons
                if row.node_name == name and not clique.metadata.name.endswith(there)
            ]

        await eventually(stale, within=stage.limit)
        stage.end()
        await stage.remove("job")
        await stage.gone()
    finally:
        await _boot_in(stage, name, clique=here.clique)


async def _boot_in(stage: Stage, name: str, *, clique: str) -> None:
    """Switch the machine off and on with other NVLink neighbours, and its label as GPU feature discovery writes it."""
    cluster = stage.cluster
    await cluster.fleet.power_off(name)
    node = cluster.fleet.nodes[name]
    node.tray = msgspec.structs.replace(node.tray, clique=clique)
    await cluster.client.merge_patch(Node, name, {"metadata": {"labels": {NODE_CLIQUE_LABEL: clique}}})
    cluster.fleet.power_on(name)


ROWS: Final = (
    Row(
        name="node-deleted",
        fault="a machine is off and its Node deleted",
        when="while a domain of 3 nodes runs",
        made="power cut, deletion of Node and Pod",
        holds="3 nodes and Pods are Ready, the machine not among them.",
        act=deleted,
    ),
    Row(
        name="node-rebooted",
        fault="a machine reboots",
        when="while a domain of 3 nodes runs",
        made="power cut and a start with a new boot id",
        holds="Its Pod, the same, is prepared anew, nvidia-imex runs there, and all 3 nodes are Ready.",
        act=rebooted,
        limit=200,
    ),
    Row(
        name="node-moved",
        fault="a machine comes back in another clique",
        when="while a domain of 3 nodes runs",
        made="power cut, another NVLink clique id, a start",
        holds="All 3 nodes are Ready, that one in its new clique; the old node map has it no more.",
        act=moved,
        limit=200,
    ),
)

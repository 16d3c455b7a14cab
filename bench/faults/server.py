"""The API server, or what is behind it, is away and comes back."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from bench.faults.row import Row
from bench.faults.stage import Stage
from testbed.plane import ControlPlane


def plane(stage: Stage) -> ControlPlane:
    """The real control plane. Raises TypeError on the embedded one."""
    found = stage.cluster.plane
    if not isinstance(found, ControlPlane):
        raise TypeError("this fault needs the real control plane")
    return found


async def away(stage: Stage, *, component: str, kill: bool, seconds: float | None = None) -> None:
    """A component of the control plane ends when the first Pods are bound, and is started again."""
    await stage.start("job", count=3)
    await stage.until("a Pod on a node", lambda: any(pod.spec.node_name for pod in stage.pods()))
    stage.strike()
    await plane(stage).stop(component, kill=kill)
    await asyncio.sleep(stage.outage if seconds is None else seconds)  # the fault itself
    await plane(stage).start(component)
    stage.mend()
    await stage.formed("job", count=3)


async def away_at_rest(stage: Stage) -> None:
    """A running domain does not notice."""
    await stage.start("job", count=2)
    before = {pod.metadata.uid: pod.spec.node_name for pod in await stage.formed("job", count=2)}
    processes = {node: stage.imex(node) for node in before.values()}
    stage.strike()
    await plane(stage).stop("kube-apiserver", kill=True)
    await asyncio.sleep(stage.outage)  # the fault itself
    assert processes == {node: stage.imex(node) for node in before.values()}, "nvidia-imex was started again"
    await plane(stage).start("kube-apiserver")
    stage.mend()
    await stage.scale("job", count=3)
    await stage.formed("job", count=3)
    stage.end()
    assert before.keys() <= stage.uids("job"), "a Pod that ran was replaced"
    assert processes == {node: stage.imex(node) for node in before.values()}, "nvidia-imex was started again"


ROWS: Final = (
    Row(
        name="api-server-away-while-forming",
        fault="kube-apiserver is away",
        when="while a domain of 3 nodes forms",
        made="it is ended and started again after the time in brackets",
        holds="All 3 nodes and Pods are Ready.",
        act=partial(away, component="kube-apiserver", kill=False),
        cheap=True,
        limit=180,
    ),
    Row(
        name="api-server-away-at-rest",
        fault="kube-apiserver is killed and away",
        when="while a domain of 2 nodes runs",
        made="SIGKILL; it is started again after the time in brackets",
        holds="nvidia-imex and the Pods run on; a third node joins the domain afterwards.",
        act=away_at_rest,
        limit=180,
    ),
    Row(
        name="etcd-restart",
        fault="etcd is killed and started again",
        when="while a domain of 3 nodes forms",
        made="SIGKILL, then a start at once",
        holds="All 3 nodes and Pods are Ready.",
        act=partial(away, component="etcd", kill=True, seconds=0.0),
        cheap=True,
        limit=180,
    ),
    Row(
        name="scheduler-restart",
        fault="kube-scheduler is killed and started again",
        when="while a domain of 3 nodes forms",
        made="SIGKILL, then a start at once",
        holds="All 3 nodes and Pods are Ready.",
        act=partial(away, component="kube-scheduler", kill=True, seconds=0.0),
        limit=180,
    ),
    Row(
        name="controller-manager-restart",
        fault="kube-controller-manager is killed and started again",
        when="while a domain of 3 nodes forms",
        made="SIGKILL, then a start at once",
        holds="All 3 nodes and Pods are Ready.",
        act=partial(away, component="kube-controller-manager", kill=True, seconds=0.0),
        limit=180,
    ),
)

"""One domain that is formed and removed, and what it took: seconds, requests of ours, and IMEX by itself.

Invariant: times are those at which the API or a kubelet said so; requests come from the API server's own record.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import msgspec

from bench.domains.marks import Marks
from bench.domains.ours import parse_start
from bench.scale.jobs import Jobs
from interlace.manifests.components import HTTP_PORT
from interlace.sim.audit import OURS, component
from interlace.sim.cluster import NAMESPACE, Cluster
from interlace.sim.plane import AuditRecord

METRICS_LIMIT: Final = 5.0
_READS: Final = frozenset({"get", "list", "watch"})


class Formed(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from creation, and requests of our components until the domain was Ready."""

    pods: int
    bound: float
    """Last Pod bound."""
    prepared: float
    """Last channel prepared."""
    ready: float
    """Status shows every node Ready."""
    imex: float
    """Start of ``nvidia-imex`` (simulated) as measured, on the node whose channel came last; 0 where it did not run."""
    imex_median: float = 0.0
    """The same, median of all nodes."""
    requests: int
    """Watches and Leases apart."""
    gone: float
    """From deletion to the end of Pods, claims and domain."""
    controller: int = 0
    """Of the requests."""

    @property
    def after_binding(self) -> float:
        """From the last binding to the last channel."""
        return self.prepared - self.bound


def ours(records: list[AuditRecord], *, since: float, until: float) -> Counter[str]:
    """Requests of our components by component, verb and kind; watches and Leases apart."""
    found: Counter[str] = Counter()
    for record in records:
        if since <= record.time < until and record.verb != "watch" and record.resource != "leases":
            who = component(record.user, namespace=NAMESPACE)
            if who in OURS:
                found[f"{who} {record.verb} {record.resource}"] += 1
    return found


async def form(
    cluster: Cluster,
    marks: Marks,
    jobs: Jobs,
    name: str,
    *,
    count: int,
    whole: int | None = None,
    gpus: int = 4,
    pod: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Formed:
    """Form a domain of ``count`` Pods, one a node, and remove it. ``whole``: on how many nodes kubelets are asked
    when a channel is prepared. Raises ``NotReachedError``.
    """
    asked = count if whole is None else whole
    marks.begin(namespace=jobs.namespace, name=name)
    began = time.time()
    await jobs.start(name, count=count, gpus=gpus, pod=pod, **spec)
    await cluster.signal.until(
        f"{asked} prepared channels",
        lambda: marks.reached("prepared") >= asked,
        within=jobs.limit,
        instead=lambda: jobs.picture(name),
    )
    await jobs.formed(name, count=count)
    ready = time.time()
    starts = await imex_starts(cluster, {pod.spec.node_name for pod in jobs.pods(name)})
    last = max(marks.pod_times(since=began), key=lambda times: times.prepared or 0.0).node
    deleted = time.time()
    await jobs.remove(name)
    await jobs.gone()
    gone = time.time()
    requests = ours(await asyncio.to_thread(cluster.plane.audit), since=began, until=ready)
    return Formed(
        pods=count,
        bound=round(marks.last("bound") - began, 3),
        prepared=round(marks.last("prepared") - began, 3),
        ready=round(ready - began, 3),
        imex=round(starts.get(last, 0.0), 3),
        imex_median=round(statistics.median(starts.values()), 3) if starts else 0.0,
        requests=requests.total(),
        controller=sum(number for what, number in requests.items() if what.startswith("controller ")),
        gone=round(gone - deleted, 3),
    )


async def imex_starts(cluster: Cluster, nodes: set[str]) -> dict[str, float]:
    """Seconds from the start of ``nvidia-imex`` to READY on each of these nodes that is whole, by its imex-host."""
    hosts = [pod for pod in cluster.our_pods("imex-host") if pod.spec.node_name in nodes & cluster.fleet.nodes.keys()]
    limit = aiohttp.ClientTimeout(total=METRICS_LIMIT)
    async with aiohttp.ClientSession(timeout=limit, raise_for_status=True) as session:

        async def read(address: str) -> float:
            async with session.get(f"http://{address}:{HTTP_PORT}/metrics") as answer:
                return parse_start(await answer.text())

        async with asyncio.TaskGroup() as group:
            reads = {pod.spec.node_name: group.create_task(read(pod.status.pod_ip)) for pod in hosts}
    return {node: seconds for node, task in reads.items() if (seconds := task.result()) > 0}

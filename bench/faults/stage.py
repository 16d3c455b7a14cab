"""Where a row of the fault table plays: a namespace of a running cluster, with workloads, waits and a stopwatch.

Invariant: after ``clear`` the cluster is as before the row (all nodes free, nothing prepared, no ``nvidia-imex``, no
node map), or it raises: a row that leaves something behind has failed, whatever it reached before.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from bench.faults.wire import Wire
from bench.faults.workloads import DEPLOYMENTS, deployment, domain
from interlace.api.computedomain import DOMAIN_LABEL, ComputeDomain, ComputeDomainClique
from interlace.api.core import Event, Lease, Pod
from interlace.api.meta import Condition
from interlace.api.resource import ResourceClaim
from interlace.kube.errors import NotFound
from interlace.sim.cluster import NAMESPACE, Cluster
from interlace.sim.kubelet.pods import PodWorker
from interlace.sim.kubelet.process import find_processes
from interlace.sim.observing import NotReachedError

LEASE: Final = "interlace-controller"
DAEMON: Final = "interlace-simulated/daemon"
"""Part of the command line of a simulated ``nvidia-imex``."""


class Stage:
    """One row's view of the cluster. Waits raise ``NotReachedError`` after ``limit`` seconds."""

    def __init__(self, cluster: Cluster, *, wire: Wire, namespace: str, limit: float, outage: float, many: int) -> None:
        self.cluster = cluster
        self.wire = wire
        """What our components reach the API server through."""
        self.namespace = namespace
        self.limit = limit
        self.outage = outage
        """Seconds for which rows take something away that comes back by itself."""
        self.many = many
        """How many random objects a kind."""
        self.struck: float | None = None
        self.mended: float | None = None
        self.ended: float | None = None
        self.notes: list[str] = []
        """Sentences that the row wants to see in the table."""

    # the stopwatch

    def strike(self) -> None:
        """The fault begins now; again is nothing."""
        self.struck = self.struck or time.monotonic()

    def mend(self) -> None:
        """The fault is over now; recovery is counted from here."""
        self.mended = time.monotonic()

    def end(self) -> None:
        """The end state is reached; what the row still checks is not counted."""
        self.ended = self.ended or time.monotonic()

    # what is done

    async def open(self) -> None:
        """Make the namespace."""
        await self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})

    async def start(self, name: str, *, count: int, nodes: Iterable[str] = (), gpus: int = 4, **pod: Any) -> None:
        """A domain and a Deployment of ``count`` Pods that use it, on ``nodes`` alone if given."""
        await self.cluster.apply(domain(name, namespace=self.namespace))
        await self.scale(name, count=count, nodes=nodes, gpus=gpus, **pod)

    async def scale(self, name: str, *, count: int, nodes: Iterable[str] = (), gpus: int = 4, **pod: Any) -> None:
        """The Deployment alone; other arguments as at its start."""
        wanted = deployment(name, namespace=self.namespace, count=count, nodes=list(nodes), gpus=gpus, pod=pod)
        await self.cluster.apply(wanted)

    async def remove(self, name: str) -> None:
        """Delete the Deployment and the domain; does not wait for their end."""
        client = self.cluster.client
        with contextlib.suppress(NotFound):
            await client.delete(DEPLOYMENTS, name, namespace=self.namespace, propagation="Background")
        with contextlib.suppress(NotFound):
            await client.delete(ComputeDomain, name, namespace=self.namespace)

    # what is seen

    def pods(self, name: str = "") -> list[Pod]:
        """Living Pods of a job, or of all jobs."""
        return [
            pod
            for pod in self.cluster.pods.items()
            if pod.metadata.namespace == self.namespace
            and not pod.metadata.deletion_timestamp
            and name in ("", pod.metadata.labels.get("job"))
        ]

    def uids(self, name: str) -> set[str]:
        """Of the living Pods."""
        return {pod.metadata.uid for pod in self.pods(name)}

    def domain(self, name: str) -> ComputeDomain | None:
        """The domain as the API shows it."""
        return self.cluster.domains.get(name, self.namespace)

    def ready_nodes(self, name: str) -> list[str]:
        """Nodes that the domain shows as Ready."""
        found = self.domain(name)
        nodes = found.status.nodes if found is not None and found.status is not None else []
        return [node.name for node in nodes if node.status == "Ready"]

    def condition(self, name: str, kind: str = "Ready") -> Condition | None:
        """One condition of the domain."""
        found = self.domain(name)
        conditions = found.status.conditions if found is not None and found.status is not None else []
        return next((item for item in conditions if item.type == kind), None)

    def calls(self) -> list[PodWorker]:
        """Pods of this namespace whose Prepare is on its way."""
        return [
            worker
            for node in self.cluster.fleet.nodes.values()
            for worker in node.workers.values()
            if worker.pod.metadata.namespace == self.namespace and worker.prepare_calls and worker.prepared_at is None
        ]

    def component(self, component: str, *, node: str) -> Pod:
        """Our Pod of this kind on a node."""
        return next(pod for pod in self.cluster.our_pods(component) if pod.spec.node_name == node)

    def imex(self, node: str) -> list[int]:
        """Process ids of the node's ``nvidia-imex``."""
        return find_processes(self.cluster.fleet.nodes[node].tray.root, program=DAEMON)

    async def lease(self) -> Lease:
        """The Lease of the leading controller."""
        return await self.cluster.client.get(Lease, LEASE, namespace=NAMESPACE)

    async def leader(self) -> str:
        """Name of the Pod of the leading controller."""
        lease = await self.lease()
        holder = lease.spec.holder_identity or ""
        names = [pod.metadata.name for pod in self.cluster.our_pods("controller")]
        return next(name for name in names if holder.startswith(name))

    async def cliques(self, name: str = "") -> list[ComputeDomainClique]:
        """Node maps of a domain that is still there, or all."""
        found = self.domain(name) if name else None
        labels = f"{DOMAIN_LABEL}={found.metadata.uid}" if found is not None else ""
        return (await self.cluster.client.list(ComputeDomainClique, namespace=NAMESPACE, labels=labels)).items

    async def events(self, *, ours: bool = True) -> list[Event]:
        """Events of the namespace: those of our components, or all."""
        listing = await self.cluster.client.list(Event, namespace=self.namespace)
        return [event for event in listing.items if _component(event).startswith("interlace") or not ours]

    # what is waited for

    async def until(self, what: str, condition: Callable[[], bool], *, instead: Callable[[], str] = str) -> None:
        """Wait for something that informers show."""
        await self.cluster.signal.until(what, condition, within=self.limit, instead=instead)

    async def formed(self, name: str, *, count: int) -> list[Pod]:
        """Wait until exactly ``count`` Pods run, each on a node that the domain shows as Ready, no other being so."""

        def whole() -> bool:
            found, ready = self.pods(name), self.ready_nodes(name)
            return len(ready) == count == len(found) and all(pod.ready and pod.spec.node_name in ready for pod in found)

        def instead() -> str:
            found = [(pod.metadata.name, pod.spec.node_name, pod.ready) for pod in self.pods(name)]
            return f"nodes {self.ready_nodes(name)}, Pods {found}, condition {self.condition(name)}"

        await self.until(f"{name} with {count} Ready nodes and Pods", whole, instead=instead)
        return self.pods(name)

    async def gone(self) -> None:
        """Wait until no Pod, claim and domain is left in the namespace."""

        def left() -> list[str]:
            return [
                f"{type(item).__name__} {item.metadata.name}"
                for informer in (self.cluster.pods, self.cluster.domains, self.cluster.claims)
                for item in informer.items()
                if item.metadata.namespace == self.namespace
            ]

        await self.until("the end of Pods, claims and domains", lambda: not left(), instead=lambda: ", ".join(left()))

    async def clear(self) -> None:
        """Delete everything and wait until every node is free, nothing is prepared and no node map is left."""
        client = self.cluster.client
        for item in (await client.list(DEPLOYMENTS, namespace=self.namespace)).items:
            await client.delete(
                DEPLOYMENTS, item["metadata"]["name"], namespace=self.namespace, propagation="Background"
            )
        for kind in (Pod, ComputeDomain, ResourceClaim):
            for found in (await client.list(kind, namespace=self.namespace)).items:
                if kind is ResourceClaim and found.metadata.owner_references:
                    continue
                with contextlib.suppress(NotFound):
                    await client.delete(kind, found.metadata.name, namespace=self.namespace)
        await self.gone()
        await self.cluster.until_installed(within=self.limit)
        await self.until("free nodes", lambda: not self._taken(), instead=lambda: ", ".join(self._taken()))
        await eventually(self._left, within=self.limit)

    def _taken(self) -> list[str]:
        return [
            f"{found.spec.node_name}: {len(found.spec.devices)} devices of {found.spec.devices[0].attributes['domain']}"
            for found in self.cluster.slices.items()
            if len(found.spec.devices) != 1 or found.spec.devices[0].attributes["domain"].string
        ]

    async def _left(self) -> list[str]:
        left = [f"node map {found.metadata.name}" for found in await self.cliques()]
        for name in self.cluster.gpu_nodes:
            left += [f"nvidia-imex {pid} on {name}" for pid in self.imex(name)]
            specs = self.cluster.fleet.nodes[name].cdi_root.glob("*compute-domain*claim*")
            left += [f"{path.name} on {name}" for path in specs]
        return left


async def eventually(left: Callable[[], Any], *, within: float) -> None:
    """Wait until ``left`` names nothing more; for what no informer shows. Raises NotReachedError."""
    end = time.monotonic() + within
    while found := await left():
        if time.monotonic() > end:
            raise NotReachedError(f"still there after {within:.0f} s: {', '.join(map(str, found))}")
        await asyncio.sleep(0.1)


def _component(event: Event) -> str:
    return event.source.component or event.reporting_component

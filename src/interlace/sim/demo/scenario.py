"""The acts of the demonstration, each ended by a state that was observed, never by a pause.

The scenario talks to the API server as a user does and reads costs from the server's own
audit; it holds no knowledge of how our components work inside.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from interlace.api.computedomain import DOMAIN_LABEL, ComputeDomain
from interlace.api.core import Pod
from interlace.api.meta import Resource
from interlace.kube.errors import ApiError
from interlace.kube.untyped import untyped
from interlace.node.cdi import CHANNEL_FOLDER
from interlace.sim import audit, snapshot
from interlace.sim.cluster import NAMESPACE, Cluster
from interlace.sim.demo.result import Cost, Requests, Result, Teardown
from interlace.sim.demo.workload import Workload
from interlace.sim.kubelet.pods import PodWorker
from interlace.sim.observing import NotReachedError

_DEPLOYMENTS = untyped(Resource("apps", "v1", "deployments", "Deployment", True))


class Stage(Protocol):
    """Where the scenario tells what happens."""

    async def act(self, title: str) -> None:
        """A new act begins (may pause for the reader)."""
        ...

    def tell(self, line: str) -> None:
        """Something happened."""
        ...


class Scenario:
    """One run over one workload."""

    def __init__(self, cluster: Cluster, workload: Workload, *, stage: Stage, result: Result) -> None:
        self.cluster = cluster
        self.workload = workload
        self.stage = stage
        self.result = result
        self.replicas = int(workload.deployment["spec"]["replicas"])
        self._prepared: dict[str, float] = {}
        self._before: set[str] = set()
        cluster.fleet.watch_pods(self._on_pod)

    # what can be seen

    @property
    def domain(self) -> ComputeDomain | None:
        """The domain as the API shows it."""
        return self.cluster.domains.get(self.workload.name, self.workload.namespace)

    @property
    def pods(self) -> list[Pod]:
        """Pods of the job that are not being deleted."""
        labels = self.workload.deployment["spec"]["selector"]["matchLabels"]
        return [
            pod
            for pod in self.cluster.pods.items()
            if labels.items() <= pod.metadata.labels.items() and not pod.metadata.deletion_timestamp
        ]

    @property
    def pods_ready(self) -> int:
        """How many of them are Ready."""
        return sum(pod.ready for pod in self.pods)

    def whole(self, size: int) -> bool:
        """Whether the domain has ``size`` nodes and as many pods run with a channel in a container."""
        return self.formed(size) and sum(pod.ready and self._has_channel(pod) for pod in self.pods) == size

    def nodes_ready(self) -> int:
        """Nodes that the domain's status shows as Ready."""
        domain = self.domain
        return sum(node.status == "Ready" for node in domain.status.nodes) if domain and domain.status else 0

    def formed(self, size: int) -> bool:
        """Whether status shows exactly ``size`` nodes, all Ready."""
        domain = self.domain
        if domain is None or domain.status is None:
            return size == 0
        return domain.status.status == "Ready" and len(domain.status.nodes) == self.nodes_ready() == size

    def picture(self) -> str:
        """One line on where things stand, for messages."""
        domain = self.domain
        status = domain.status.status if domain and domain.status else "none"
        return f"domain {status} with {self.nodes_ready()} nodes Ready, {self.pods_ready}/{len(self.pods)} pods Ready"

    # acts

    async def form(self, *, within: float = 60.0) -> None:
        """Create both objects and wait until status shows every node Ready; takes the measurements."""
        gpus = self.workload.gpus
        await self.stage.act(f"Form: a ComputeDomain and {self.replicas} pods with {gpus} GPUs each")
        self._before = await self._snapshot()
        started = time.time()
        await self.cluster.apply(self.workload.domain)
        await self.cluster.apply(self.workload.deployment)
        self.stage.tell(f"created ComputeDomain {self.workload.name} and Deployment {self._deployment}")
        await self._until(f"a Ready domain of {self.replicas} nodes", lambda: self.formed(self.replicas), within=within)
        ended = time.time()
        channels = sorted(moment - started for moment in self._prepared.values() if moment >= started)
        self.result.pods_ready = self.pods_ready
        self.result.domain_status = "Ready"
        self.result.formation_seconds = round(ended - started, 3)
        self.result.first_channel_seconds = round(channels[0], 3) if channels else None
        self.result.last_channel_seconds = round(channels[-1], 3) if channels else None
        self.result.requests, self.result.components = await self._cost(started, ended)
        self.stage.tell(
            f"{self.replicas} nodes are in the domain: first channel after {channels[0]:.2f} s, last after "
            f"{channels[-1]:.2f} s, {self.result.requests.ours.total} requests by our components, "
            f"{self.result.requests.ours.conflict} conflicts"
        )
        await self._until("a channel in every pod", lambda: self.whole(self.replicas), within=within)
        # kubelets report on their own way, so Pods may turn Ready a moment after the domain does
        self.result.pods_ready = self.pods_ready

    async def heal(self, *, within: float = 90.0) -> None:
        """Cut the power of one node, switch it on again when its pod was evicted, wait for a whole domain."""
        victim, lost = self._victim()
        await self.stage.act(f"Heal: {victim} loses power")
        started = time.time()
        await self.cluster.fleet.power_off(victim)
        self.stage.tell(f"{victim} is dark")

        def evicted() -> bool:
            return all(pod.metadata.uid != lost for pod in self.pods)

        await self._until(f"the eviction of the pod on {victim}", evicted, within=within)
        self.stage.tell(f"{victim} was noticed, its pod is evicted after {time.time() - started:.1f} s; power is back")
        self.cluster.fleet.power_on(victim)

        def healed() -> bool:
            return evicted() and self.whole(self.replicas)

        await self._until("a whole domain again", healed, within=within)
        self.result.heal_seconds = round(time.time() - started, 3)
        self.stage.tell(f"whole again {self.result.heal_seconds:.1f} s after the power cut")

    async def scale(self, size: int, *, within: float = 60.0) -> None:
        """Scale the Deployment and wait until the domain has followed."""
        word = "Shrink" if size < self.replicas else "Grow"
        await self.stage.act(f"{word}: the job goes from {self.replicas} to {size} pods")
        started = time.time()
        await self.cluster.client.merge_patch(
            _DEPLOYMENTS, self._deployment, {"spec": {"replicas": size}}, namespace=self.workload.namespace
        )
        self.replicas = size
        await self._until(f"a domain of {size} nodes", lambda: self.whole(size), within=within)
        self.stage.tell(f"the domain has {size} nodes after {time.time() - started:.1f} s")

    async def delete(self, *, within: float = 60.0) -> None:
        """Delete both objects and wait until neither pods nor claims nor the domain are left."""
        await self.stage.act("Delete: the job and its domain go")
        domain = self.domain
        uid = domain.metadata.uid if domain else ""
        started = time.time()
        await self.cluster.client.delete(
            _DEPLOYMENTS, self._deployment, namespace=self.workload.namespace, propagation="Background"
        )
        await self.cluster.client.delete(ComputeDomain, self.workload.name, namespace=self.workload.namespace)

        def gone() -> bool:
            return (
                self.domain is None
                and not self.pods
                and not any(claim.metadata.labels.get(DOMAIN_LABEL) == uid for claim in self.cluster.claims.items())
            )

        await self._until("the end of the domain", gone, within=within)
        ended = time.time()
        cost, _ = await self._cost(started, ended)
        self.result.teardown = Teardown(seconds=round(ended - started, 3), requests=cost)
        self.stage.tell(f"gone after {ended - started:.2f} s, {cost.ours.total} requests by our components")

    async def prove(self, *, within: float = 10.0) -> None:
        """List everything again and compare with the listing before the formation."""
        await self.stage.act("Prove: nothing is left behind")
        deadline = time.monotonic() + within
        while True:
            after = await self._snapshot()
            left = sorted(after - self._before)
            if not left or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.25)  # what the platform collects in its own time may take a moment
        self.result.left_behind = left
        self.stage.tell(f"{len(after)} things before and after, {len(left)} left behind")
        for entry in left:
            self.stage.tell(f"left behind: {entry}")

    # helpers

    @property
    def _deployment(self) -> str:
        return str(self.workload.deployment["metadata"]["name"])

    def _victim(self) -> tuple[str, str]:
        """A node with a pod of the job and without our controller, and the uid of that pod."""
        busy = {pod.spec.node_name for pod in self.cluster.our_pods("controller")}
        for pod in sorted(self.pods, key=lambda item: item.spec.node_name, reverse=True):
            if pod.spec.node_name not in busy:
                return pod.spec.node_name, pod.metadata.uid
        message = "every node of the job also runs a controller, no node can be switched off"
        raise NotReachedError(message)

    async def _until(self, what: str, condition: Callable[[], bool], *, within: float) -> None:
        await self.cluster.signal.until(what, condition, within=within, instead=self.picture)

    async def _snapshot(self) -> set[str]:
        return await snapshot.list_objects(self.cluster.client) | snapshot.list_machines(self.cluster.fleet)

    def _has_channel(self, pod: Pod) -> bool:
        node = self.cluster.fleet.nodes.get(pod.spec.node_name)
        worker = node.workers.get(pod.metadata.uid) if node is not None else None
        return worker is not None and any(
            device.startswith(CHANNEL_FOLDER) for record in worker.records for device in record.devices
        )

    async def _cost(self, since: float, until: float) -> tuple[Cost, dict[str, Requests]]:
        # A real server records a write a moment after it has told the watchers: one more answer, and it is there.
        await self.cluster.client.request("GET", "/version")
        table = audit.count(self.cluster.plane.audit(), namespace=NAMESPACE, since=since, until=until)
        ours = Requests(**audit.total(table, audit.OURS))
        platform = Requests(**audit.total(table, audit.PLATFORM))
        components = {
            name: Requests(**audit.total(table, [name])) for name in (*audit.OURS, *audit.PLATFORM) if name in table
        }
        return Cost(ours=ours, platform=platform), components

    def _on_pod(self, worker: PodWorker, what: str) -> None:
        if what == "prepared" and worker.pod.spec.resource_claims and worker.prepared_at is not None:
            self._prepared[worker.pod.metadata.uid] = worker.prepared_at


async def play(scenario: Scenario, *, keep: bool, before_proof: Callable[[], Awaitable[None]] | None = None) -> None:
    """All acts in order; with ``keep`` the domain stays. What goes wrong stands in the result's problems.

    ``before_proof`` lets a test plant something that the proof must find.
    """
    size = scenario.replicas
    try:
        await scenario.form()
        await scenario.heal()
        await scenario.scale(max(size // 2, 1))
        await scenario.scale(size)
        if keep:
            return
        await scenario.delete()
        if before_proof is not None:
            await before_proof()
        await scenario.prove()
    except (NotReachedError, ApiError) as error:
        scenario.result.problems.append(str(error))
        scenario.stage.tell(f"went wrong: {error}")

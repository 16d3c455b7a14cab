"""Domains with a Deployment each, as a user makes them, on a running cluster; and what is left of them.

Invariant: a job is the ComputeDomain and the Deployment of one name in one namespace; nothing here waits without a
limit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from bench.faults.workloads import DEPLOYMENTS, deployment, domain
from interlace.api.computedomain import ComputeDomain
from interlace.api.core import Pod
from interlace.kube.errors import NotFound
from interlace.sim.cluster import Cluster

LIMIT: Final = 120.0
"""Seconds for a state to come."""


class Jobs:
    """The jobs of one namespace. Waits raise ``NotReachedError``."""

    def __init__(self, cluster: Cluster, *, namespace: str, limit: float = LIMIT) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.limit = limit

    async def open(self) -> None:
        """Make the namespace."""
        await self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})

    async def start(
        self, name: str, *, count: int, gpus: int = 4, pod: Mapping[str, Any] | None = None, **spec: Any
    ) -> None:
        """The domain, with ``spec`` beside what it needs, and ``count`` Pods that use it."""
        await self.cluster.apply(domain(name, namespace=self.namespace, **spec))
        await self.scale(name, count=count, gpus=gpus, pod=pod)

    async def scale(self, name: str, *, count: int, gpus: int = 4, pod: Mapping[str, Any] | None = None) -> None:
        """The Deployment alone."""
        await self.cluster.apply(deployment(name, namespace=self.namespace, count=count, gpus=gpus, pod=pod))

    async def remove(self, name: str) -> None:
        """Delete both; does not wait for their end."""
        await self.remove_deployment(name)
        await self.remove_domain(name)

    async def remove_deployment(self, name: str) -> None:
        """The Deployment, and its Pods in the background."""
        with contextlib.suppress(NotFound):
            await self.cluster.client.delete(DEPLOYMENTS, name, namespace=self.namespace, propagation="Background")

    async def remove_domain(self, name: str) -> None:
        """The domain alone, also while Pods use it."""
        with contextlib.suppress(NotFound):
            await self.cluster.client.delete(ComputeDomain, name, namespace=self.namespace)

    async def remove_pod(self, pod: Pod, *, force: bool) -> None:
        """One Pod, exactly this one; by force: without waiting for its node."""
        with contextlib.suppress(NotFound):
            await self.cluster.client.delete(
                Pod, pod.metadata.name, namespace=self.namespace, grace_period=0 if force else None
            )

    def pods(self, name: str) -> list[Pod]:
        """The living Pods of a job."""
        return [
            pod
            for pod in self.cluster.pods.items()
            if pod.metadata.namespace == self.namespace
            and pod.metadata.labels.get("job") == name
            and not pod.metadata.deletion_timestamp
        ]

    def domain(self, name: str) -> ComputeDomain | None:
        """As the API shows it."""
        return self.cluster.domains.get(name, self.namespace)

    def ready_nodes(self, name: str) -> set[str]:
        """Nodes that the domain shows as Ready."""
        found = self.domain(name)
        nodes = found.status.nodes if found is not None and found.status is not None else []
        return {node.name for node in nodes if node.status == "Ready"}

    async def formed(self, name: str, *, count: int) -> None:
        """Wait until exactly ``count`` Pods run, each on a node that the domain shows as Ready, no other being so."""

        def whole() -> bool:
            ready = self.ready_nodes(name)
            if len(ready) != count:
                return False
            found = self.pods(name)
            return len(found) == count and all(pod.ready and pod.spec.node_name in ready for pod in found)

        await self.cluster.signal.until(
            f"{name} with {count} Ready nodes and Pods", whole, within=self.limit, instead=lambda: self.picture(name)
        )

    def picture(self, name: str) -> str:
        """How a job stands, for people."""
        found = self.pods(name)
        placed, ready = sum(bool(pod.spec.node_name) for pod in found), sum(pod.ready for pod in found)
        return f"{len(found)} Pods, {placed} placed, {ready} Ready; {len(self.ready_nodes(name))} nodes Ready in status"

    async def gone(self) -> None:
        """Wait until no Pod, claim and domain of the namespace is left."""
        await self.cluster.signal.until(
            f"the end of all jobs in {self.namespace}",
            lambda: not self._left(),
            within=self.limit,
            instead=lambda: ", ".join(self._left()[:10]),
        )

    def _left(self) -> list[str]:
        return [
            f"{type(item).__name__} {item.metadata.name}"
            for informer in (self.cluster.pods, self.cluster.domains, self.cluster.claims)
            for item in informer.items()
            if item.metadata.namespace == self.namespace
        ]

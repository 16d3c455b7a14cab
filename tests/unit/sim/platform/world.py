"""A small cluster for tests: the embedded API server, the stand-ins, and kubelets that start whatever is bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from interlace.api.core import Event, Lease
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, NotFound
from interlace.kube.informer import Informer
from interlace.kube.queue import WorkQueue, work
from interlace.sim.apiserver import ApiServer
from interlace.sim.plane import Plane
from interlace.sim.platform.conditions import timestamp, with_condition
from interlace.sim.platform.devicekinds import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from interlace.sim.platform.kinds import Node, Pod
from interlace.sim.platform.run import run_platform
from tests.unit.sim.platform.objects import CLASS, DRIVER
from tests.waiting import eventually

CLIQUE = "nvidia.com/gpu.clique"
RENEWAL = 0.1
"""Seconds between renewals of a node's Lease."""
PARAMETERS = {"allocationMode": "Single", "apiVersion": "v1", "domainID": "abc", "kind": "Config"}
FREE = f"!has(device.attributes['{DRIVER}'].domain) || device.attributes['{DRIVER}'].domain in ['', 'abc']"


class Kubelets:
    """Start bound pods, end pods that are deleted, renew Leases; nodes in ``dead`` are silent.

    A pod with the label ``ends`` ends at once in the phase that the label names.
    """

    def __init__(self, client: Client) -> None:
        self.dead: set[str] = set()
        self._client = client
        self._pods: Informer[Pod] = Informer(client, Pod)
        self._nodes: Informer[Node] = Informer(client, Node)
        self._todo: WorkQueue[tuple[str, str]] = WorkQueue()
        self._leases: WorkQueue[str] = WorkQueue()
        self._pods.on_change(lambda old, new: self._add(new or old))
        self._nodes.on_change(lambda old, new: self._leases.add(new.metadata.name) if new and old is None else None)

    def revive(self, name: str) -> None:
        """The node is heard again."""
        self.dead.discard(name)
        self._leases.add(name)
        for pod in self._pods.items():
            self._add(pod)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pods.run())
            tasks.create_task(self._nodes.run())
            tasks.create_task(work(self._todo, self._step, workers=4))
            tasks.create_task(work(self._leases, self._renew, workers=2))

    def _add(self, pod: Pod | None) -> None:
        if pod is not None and pod.spec.node_name and pod.spec.node_name not in self.dead:
            self._todo.add((pod.metadata.namespace, pod.metadata.name))

    async def _step(self, key: tuple[str, str]) -> float | None:
        pod = self._pods.get(key[1], key[0])
        if pod is None or pod.spec.node_name in self.dead:
            return None
        try:
            if pod.terminating:
                if not pod.finished:
                    await self._tell(pod, "Failed")
                await self._client.delete(Pod, key[1], namespace=key[0], uid=pod.metadata.uid, grace_period=0)
            elif pod.status.phase == "Pending":
                await self._tell(pod, pod.metadata.labels.get("ends", "Running"))
            elif pod.status.phase == "Running" and not pod.ready:
                await self._tell(pod, "Running")
        except NotFound:
            return None
        except Conflict:
            return 0.01
        return None

    async def _tell(self, pod: Pod, phase: str) -> None:
        ready = "True" if phase == "Running" else "False"
        conditions = with_condition(pod.status.conditions, type="Ready", status=ready, reason="", message="")
        body = {
            "metadata": {"resourceVersion": pod.metadata.resource_version},
            "status": {"phase": phase, "conditions": conditions or pod.status.conditions},
        }
        await self._client.merge_patch(
            Pod, pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status"
        )

    async def _renew(self, name: str) -> float | None:
        if name in self.dead or self._nodes.get(name) is None:
            return None
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        await self._client.merge_patch(Lease, name, {"spec": {"renewTime": now}}, namespace="kube-node-lease")
        node = await self._client.get(Node, name)
        conditions = with_condition(node.status.conditions, type="Ready", status="True", reason="", message="")
        if conditions is not None:
            await self._client.merge_patch(Node, name, {"status": {"conditions": conditions}}, subresource="status")
        return RENEWAL


class World:
    """What a test does and sees."""

    def __init__(self, server: Plane, client: Client, kubelets: Kubelets) -> None:
        self.server = server
        self.client = client
        self.kubelets = kubelets
        self.namespace = "default"

    async def add_node(self, name: str, *, devices: Iterable[Mapping[str, Any]] | None = None) -> None:
        """A ready node of 4 GPUs with a slice of one channel."""
        resources = {"cpu": "144", "memory": "800Gi", "pods": "110", "nvidia.com/gpu": "4"}
        body = {
            "metadata": {"name": name, "labels": {CLIQUE: "c.0", "kubernetes.io/hostname": name}},
            "status": {
                "allocatable": resources,
                "capacity": resources,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": timestamp()}],
            },
        }
        lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}
        await self.client.create(Lease, lease, namespace="kube-node-lease")
        await self.client.create(Node, body)
        channel = {"name": "channel-0", "attributes": {"id": {"int": 0}, "domain": {"string": ""}}}
        spec = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [channel] if devices is None else list(devices),
        }
        await self.client.create(ResourceSlice, {"metadata": {"name": f"{name}-cd"}, "spec": spec})

    async def add_class(self) -> None:
        expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].id == 0"
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        await self.client.create(DeviceClass, {"metadata": {"name": CLASS}, "spec": spec})

    async def add_template(self, *, selector: str = FREE) -> None:
        exactly = {"deviceClassName": CLASS, "selectors": [{"cel": {"expression": selector}}]}
        config = [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": PARAMETERS}}]
        devices = {"requests": [{"name": "channel", "exactly": exactly}], "config": config}
        body = {
            "metadata": {"name": "rct"},
            "spec": {"metadata": {"labels": {"domain": "abc"}}, "spec": {"devices": devices}},
        }
        await self.client.create(ResourceClaimTemplate, body, namespace=self.namespace)

    async def pods(self, selector: str = "job=x", *, namespace: str | None = None) -> list[Pod]:
        return (await self.client.list(Pod, namespace=namespace or self.namespace, labels=selector)).items

    async def running(self, count: int, selector: str = "job=x", *, within: float = 20) -> list[Pod]:
        """Exactly so many pods, all ready, once that is so."""

        async def look() -> list[Pod] | None:
            found = [pod for pod in await self.pods(selector) if pod.active]
            return found if len(found) == count and all(pod.ready for pod in found) else None

        found = await eventually(look, within=within, what=f"{count} ready pods with {selector}")
        assert found is not None
        return found

    async def claims(self) -> list[ResourceClaim]:
        return (await self.client.list(ResourceClaim, namespace=self.namespace)).items

    async def events(self, reason: str) -> list[Event]:
        return [event for event in (await self.client.list(Event)).items if event.reason == reason]


def pod_spec(*, gpus: int = 4, claim: bool = True) -> dict[str, Any]:
    """A container with GPUs and, if asked for, a claim from the template."""
    container: dict[str, Any] = {"name": "c", "image": "docker.io/library/busybox:1.37"}
    spec: dict[str, Any] = {"containers": [container]}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    if claim:
        container.setdefault("resources", {})["claims"] = [{"name": "cd-0"}]
        spec["resourceClaims"] = [{"name": "cd-0", "resourceClaimTemplateName": "rct"}]
    return spec


def workload(
    name: str, *, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """Body of a workload whose pods carry ``labels``."""
    marks = dict(labels or {"job": "x"})
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": marks}, "template": {"metadata": {"labels": marks}, "spec": spec}, **more},
    }


@asynccontextmanager
async def inhabit(server: Plane, *, nodes: int) -> AsyncIterator[World]:
    """Nodes with kubelets and a device class on a control plane whose scheduler and controllers somebody else runs."""
    credentials = server.credentials("admin", groups=["system:masters"])
    async with Client(credentials, user_agent="test", qps=0) as client, asyncio.TaskGroup() as tasks:
        kubelets = Kubelets(client)
        running = tasks.create_task(kubelets.run())
        made = World(server, client, kubelets)
        await made.add_class()
        for number in range(nodes):
            await made.add_node(f"n-{number}")
        try:
            yield made
        finally:
            running.cancel()


@asynccontextmanager
async def stand_ins(server: Plane, *, node_grace: float = 30.0, toleration: float = 1.0) -> AsyncIterator[None]:
    """The simulated scheduler and controllers."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run_platform(server, node_grace=node_grace, toleration=toleration))
        try:
            yield
        finally:
            running.cancel()


@asynccontextmanager
async def world(
    folder: Path, *, nodes: int = 3, node_grace: float = 30.0, toleration: float = 1.0
) -> AsyncIterator[World]:
    """A running simulated cluster; everything has ended when the context has."""
    async with (
        ApiServer(state_dir=folder) as server,
        stand_ins(server, node_grace=node_grace, toleration=toleration),
        inhabit(server, nodes=nodes) as made,
    ):
        yield made

"""Stand-in for the node life-cycle controller (simulated): a kubelet that is not heard makes its node unreachable.

Invariant: a node is judged only by what was heard while this process was awake; a stall of the process itself
(its timer rings late) gives every node another chance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from interlace.api.core import Lease, ObjectReference
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, KubeError, NotFound
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.sim.platform.batches import together
from interlace.sim.platform.conditions import with_condition
from interlace.sim.platform.kinds import Node, Pod
from interlace.sim.platform.nodes.health import readiness, silent_conditions, taints
from interlace.sim.platform.views import Views

LEASE_NAMESPACE = "kube-node-lease"
_STALL = 0.5
"""Seconds by which a timer may be late before the lateness is put down to this process."""
_WORKERS = 4

log = get_logger("simulated-node-lifecycle-controller")


class NodeLifecycle:
    """Conditions and taints of nodes; ``run`` until cancelled. ``grace`` in seconds."""

    def __init__(
        self,
        views: Views,
        *,
        client: Client,
        recorder: Recorder,
        grace: float,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._views = views
        self._client = client
        self._recorder = recorder
        self._grace = grace
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._heard: dict[str, float] = {}
        self._queue: WorkQueue[str] = WorkQueue(name="simulated-node-lifecycle")
        views.nodes.on_change(self._node_changed)
        views.leases.on_change(self._lease_changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        await work(self._queue, self._sync, workers=_WORKERS)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._heard.pop(old.metadata.name, None)
            return
        name = new.metadata.name
        if old is None or _heartbeat(old) != _heartbeat(new):
            self._heard[name] = self._clock()
        if old is None or old.spec != new.spec or old.status.conditions != new.status.conditions:
            self._queue.add(name)

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        if new is None or new.metadata.namespace != LEASE_NAMESPACE:
            return
        if old is None or old.spec.renew_time != new.spec.renew_time:
            self._heard[new.metadata.name] = self._clock()

    async def _sync(self, name: str) -> float | None:
        node = self._views.nodes.get(name)
        if node is None:
            return None
        now = self._clock()
        late = now - self._heard.setdefault(name, now) - self._grace
        again: float | None = None
        try:
            if late >= 0 and readiness(node) != "Unknown":
                if late > _STALL:
                    self._heard[name] = now - self._grace * 3 / 4
                    return self._grace / 4
                node = await self._silence(node)
            elif late < 0:
                again = -late
            wanted = taints(node)
            if wanted is not None:
                await self._patch(node, {"spec": {"taints": wanted}})
        except (Conflict, NotFound):
            return 0.05
        return again

    async def _silence(self, node: Node) -> Node:
        """Mark the node, and its pods as not ready."""
        name = node.metadata.name
        conditions = silent_conditions(node)
        if conditions is not None:
            node = await self._patch(node, {"status": {"conditions": conditions}}, subresource="status")
            self._recorder.event(
                ObjectReference(api_version="v1", kind="Node", name=name, uid=node.metadata.uid),
                reason="NodeNotReady",
                message=f"Node {name} status is now: NodeNotReady",
            )
        await together(self._mark(pod) for pod in self._views.pods.by("node", name) if pod.ready)
        return node

    async def _mark(self, pod: Pod) -> None:
        conditions = with_condition(
            pod.status.conditions, type="Ready", status="False", reason="NodeNotReady", message="Node is not ready"
        )
        body = {
            "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
            "status": {"conditions": conditions},
        }
        try:
            await self._client.merge_patch(
                Pod, pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status"
            )
        except KubeError as error:
            log.info("pod not marked", pod=pod.metadata.name, reason=str(error))

    async def _patch(self, node: Node, body: dict[str, Any], *, subresource: str | None = None) -> Node:
        body = {"metadata": {"resourceVersion": node.metadata.resource_version}, **body}
        return await self._client.merge_patch(Node, node.metadata.name, body, subresource=subresource)


def _heartbeat(node: Node) -> object:
    return [
        condition.get("lastHeartbeatTime") for condition in node.status.conditions if condition.get("type") == "Ready"
    ]

"""Stand-in for the pod garbage collector (simulated): pods whose node does not exist are ended and removed.

Invariant: a pod is removed only if its node has been missing for ``QUARANTINE`` seconds.
"""

from __future__ import annotations

import asyncio

from interlace.kube.client import Client
from interlace.kube.errors import Conflict, NotFound
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.sim.platform.conditions import with_condition
from interlace.sim.platform.kinds import Node, Pod
from interlace.sim.platform.views import Key, Views, key_of

QUARANTINE = 1.0
"""Seconds; the real controller waits 40 and looks every 20."""
_WORKERS = 8

log = get_logger("simulated-pod-garbage-collector")


class LostPods:
    """Removes pods of deleted nodes; ``run`` until cancelled."""

    def __init__(self, views: Views, *, client: Client) -> None:
        self._views = views
        self._client = client
        self._missing: dict[str, float] = {}
        """Node: when it was first missed."""
        self._queue: WorkQueue[Key] = WorkQueue(name="simulated-pod-gc")
        views.nodes.on_change(self._node_changed)
        views.pods.on_change(self._pod_changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        await work(self._queue, self._sync, workers=_WORKERS)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self._missing.pop(new.metadata.name, None)
        elif old is not None:
            for pod in self._views.pods.by("node", old.metadata.name):
                self._queue.add(key_of(pod))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name and (old is None or not old.spec.node_name):
            self._queue.add(key_of(new))

    async def _sync(self, key: Key) -> float | None:
        pod = self._views.pods.get(key[1], key[0])
        if pod is None or not pod.spec.node_name or self._views.nodes.get(pod.spec.node_name) is not None:
            return None
        now = asyncio.get_running_loop().time()
        left = self._missing.setdefault(pod.spec.node_name, now) + QUARANTINE - now
        if left > 0:
            return left
        try:
            if not pod.finished:
                await self._fail(pod)
            await self._client.delete(Pod, key[1], namespace=key[0], uid=pod.metadata.uid, grace_period=0)
        except NotFound:
            log.debug("pod gone before its removal", pod=key[1])
        except Conflict:
            return 0.05
        return None

    async def _fail(self, pod: Pod) -> None:
        conditions = with_condition(
            pod.status.conditions,
            type="DisruptionTarget",
            status="True",
            reason="DeletionByPodGC",
            message="PodGC: node no longer exists",
        )
        status: dict[str, object] = {"phase": "Failed"}
        if conditions is not None:
            status["conditions"] = conditions
        body = {
            "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
            "status": status,
        }
        await self._client.merge_patch(
            Pod, pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status"
        )

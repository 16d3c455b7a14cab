"""Stand-in for the taint eviction controller (simulated): pods leave nodes with taints that they do not bear.

Invariant: a pod's time runs from when the taints were first seen, and stops when they are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from interlace.api.core import ObjectReference
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, NotFound
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.sim.platform.conditions import with_condition
from interlace.sim.platform.kinds import Node, Pod, Taint
from interlace.sim.platform.nodes.health import eviction_delay
from interlace.sim.platform.views import Key, Views, key_of

_WORKERS = 8

log = get_logger("simulated-taint-eviction-controller")


class TaintEviction:
    """Deletes pods by the ``NoExecute`` taints of their nodes; ``run`` until cancelled."""

    def __init__(
        self,
        views: Views,
        *,
        client: Client,
        recorder: Recorder,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._views = views
        self._client = client
        self._recorder = recorder
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._since: dict[str, float] = {}
        """Pod uid: when its node was first seen with taints that end its stay."""
        self._queue: WorkQueue[Key] = WorkQueue(name="simulated-taint-eviction")
        views.nodes.on_change(self._node_changed)
        views.pods.on_change(self._pod_changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        await work(self._queue, self._sync, workers=_WORKERS)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None and _evicting(old) != _evicting(new):
            for pod in self._views.pods.by("node", new.metadata.name):
                self._queue.add(key_of(pod))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                self._since.pop(old.metadata.uid, None)
        elif new.spec.node_name and (old is None or old.spec != new.spec):
            self._queue.add(key_of(new))

    async def _sync(self, key: Key) -> float | None:
        pod = self._views.pods.get(key[1], key[0])
        if pod is None or not pod.spec.node_name or pod.terminating:
            return None
        node = self._views.nodes.get(pod.spec.node_name)
        delay = eviction_delay(_evicting(node), pod.spec.tolerations)
        if delay is None:
            self._since.pop(pod.metadata.uid, None)
            return None
        left = self._since.setdefault(pod.metadata.uid, self._clock()) + delay - self._clock()
        if left > 0:
            return left
        await self._evict(pod)
        return None

    async def _evict(self, pod: Pod) -> None:
        namespace, name = key_of(pod)
        about = ObjectReference(api_version="v1", kind="Pod", namespace=namespace, name=name, uid=pod.metadata.uid)
        message = f"Marking for deletion Pod {namespace}/{name}"
        self._recorder.event(about, reason="TaintManagerEviction", message=message)
        conditions = with_condition(
            pod.status.conditions,
            type="DisruptionTarget",
            status="True",
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
        )
        try:
            if conditions is not None:
                body = {
                    "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
                    "status": {"conditions": conditions},
                }
                await self._client.merge_patch(Pod, name, body, namespace=namespace, subresource="status")
            await self._client.delete(Pod, name, namespace=namespace, uid=pod.metadata.uid)
        except NotFound:
            log.debug("pod gone before its eviction", pod=name)
        except Conflict:
            self._queue.add_after((namespace, name), 0.05)


def _evicting(node: Node | None) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect == "NoExecute"] if node is not None else []

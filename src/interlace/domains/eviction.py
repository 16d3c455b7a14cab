"""Takes a Pod off a node where it can never start, so that its controller makes another one.

Invariant: only Pods that a controller owns are evicted, and exactly the Pod that was meant (by uid); disruption
budgets are asked. Anything else is told to the user.
"""

from __future__ import annotations

from typing import ClassVar

from interlace.api.core import ObjectReference, Pod
from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.domains.collisions import Collision
from interlace.domains.membership import pods_of
from interlace.domains.reasons import PodReason
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, NotFound
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger

_log = get_logger(__name__)


class Eviction(Struct, frozen=True):
    """``policy/v1.Eviction``, made by POST to a Pod's ``eviction``; of the answer nothing is read."""

    resource: ClassVar[Resource] = Resource("", "v1", "pods", "Eviction", True)
    metadata: ObjectMeta = ObjectMeta()


class Evictor:
    """Ends collisions."""

    def __init__(self, client: Client, *, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    async def end(self, collision: Collision, *, mine: str, theirs: str) -> int:
        """Evict the Pods of the claim, or say why not; how many were evicted.

        ``mine`` and ``theirs`` name the domain of the claim and the one that has the node. Raises ``KubeError``.
        """
        evicted = 0
        for pod in pods_of(collision.claim):
            try:
                found = await self._client.get(Pod, pod.name, namespace=pod.namespace)
                if found.metadata.uid != pod.uid:
                    continue
                kept = any(owner.controller for owner in found.metadata.owner_references)
                if kept:
                    await self._evict(pod)
                    evicted += 1
            except (NotFound, Conflict):
                continue  # it is gone already, or another Pod of that name is there
            remedy = (
                "the Pod was evicted, and its controller makes another one"
                if kept
                else "no controller owns the Pod, so delete it and create it again"
            )
            message = (
                f"Node {collision.node} belongs to ComputeDomain {theirs}, and this Pod of ComputeDomain {mine} cannot "
                f"have a channel there: {remedy}."
            )
            self._recorder.event(pod, reason=PodReason.NODE_TAKEN, message=message, warning=True)
            _log.warning("collision", pod=f"{pod.namespace}/{pod.name}", node=collision.node, evicted=kept)
        return evicted

    async def _evict(self, pod: ObjectReference) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        await self._client.create(Eviction, body, namespace=pod.namespace, name=pod.name, subresource="eviction")

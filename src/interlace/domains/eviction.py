"""Takes a Pod off a node where it can never start, so that its controller makes another one.

Invariant: only Pods that a controller owns and that do not run are evicted, and exactly the Pod that was meant (by
uid); disruption budgets are asked. Anything else is told to the user.
"""

from __future__ import annotations

import msgspec

from interlace.api.core import Pod
from interlace.domains.collisions import Collision
from interlace.domains.membership import pods_of
from interlace.domains.reasons import PodReason
from interlace.kube.client import Client
from interlace.kube.errors import ApiError, Conflict, NotFound, ServerError, TooManyRequests
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger

_log = get_logger(__name__)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one collision."""

    evicted: int = 0
    """Pods that were evicted."""
    blocked: bool = False
    """A disruption budget forbids an eviction for now, or the server failed: worth another attempt later."""


class Evictor:
    """Ends collisions."""

    def __init__(self, client: Client, *, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    async def end(self, collision: Collision, *, mine: str, theirs: str) -> Outcome:
        """Evict the Pods of the claim, or say why not.

        ``mine`` and ``theirs`` name the domain of the claim and the one that has the node. A refusal is an outcome, so
        that a Pod that may not be evicted takes nothing from its domain. Raises ``KubeError`` where no answer comes.
        """
        evicted, blocked = 0, False
        for pod in pods_of(collision.claim):
            try:
                found = await self._client.get(Pod, pod.name, namespace=pod.namespace)
                if found.metadata.uid != pod.uid or found.status.phase not in ("", "Pending"):
                    continue  # another Pod; or it runs, so that it has its channel by now
                kept = any(owner.controller for owner in found.metadata.owner_references)
                if kept:
                    await self._client.evict(pod.name, namespace=pod.namespace, uid=pod.uid)
                    evicted += 1
                    remedy = "the Pod was evicted, and its controller makes another one"
                else:
                    remedy = "no controller owns the Pod, so delete it and create it again"
            except (NotFound, Conflict):
                continue  # it is gone already, or another Pod of that name is there
            except (TooManyRequests, ServerError) as error:
                blocked = True
                remedy = f"the Pod cannot be evicted now ({error.message}), which is tried again; or delete it"
            except ApiError as error:
                remedy = f"the Pod may not be evicted ({error.message}), so delete it"
            message = (
                f"Node {collision.node} belongs to ComputeDomain {theirs}, and this Pod of ComputeDomain {mine} cannot "
                f"have a channel there: {remedy}."
            )
            self._recorder.event(pod, reason=PodReason.NODE_TAKEN, message=message, warning=True)
            _log.warning("collision", pod=f"{pod.namespace}/{pod.name}", node=collision.node, remedy=remedy)
        return Outcome(evicted=evicted, blocked=blocked)

"""Makes and deletes the pods of one kind of controller, and keeps count until the watch has shown it.

Invariant: ``settled`` is false while anything that was asked for has not been seen, so a controller that asks
only when settled never makes a pod too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from interlace.api.core import ObjectReference
from interlace.api.meta import Object
from interlace.kube.client import Client
from interlace.kube.errors import KubeError, NotFound
from interlace.kube.events import Recorder
from interlace.sim.platform.batches import batches, together
from interlace.sim.platform.kinds import Pod, controller_of
from interlace.sim.platform.views import Key, Views, key_of
from interlace.sim.platform.workloads.expectations import Expectations


class PodKeeper:
    """For the owners of one ``kind``; ``enqueue`` is called with an owner's key when one of its pods changed."""

    def __init__(
        self, views: Views, *, client: Client, recorder: Recorder, kind: str, enqueue: Callable[[Key, bool], None]
    ) -> None:
        self._views = views
        self._client = client
        self._recorder = recorder
        self._kind = kind
        self._enqueue = enqueue
        self._expected: Expectations[Key] = Expectations()
        views.pods.on_change(self._pod_changed)

    def settled(self, key: Key) -> bool:
        """Whether the cache shows everything that was asked for this owner."""
        return self._expected.met(key)

    def forget(self, key: Key) -> None:
        """The owner is gone."""
        self._expected.forget(key)

    def pods_of(self, owner: Object) -> list[Pod]:
        """The pods that ``owner`` controls."""
        return self._views.pods.by("owner", owner.metadata.uid)

    async def create(self, owner: Object, bodies: Sequence[Mapping[str, Any]]) -> None:
        """Make pods, in growing batches; raises the first error after its batch, the rest is left for later."""
        key = key_of(owner)
        for batch in batches(bodies):
            self._expected.expect(key, creations=len(batch))
            answers = await together(self._create(owner, body) for body in batch)
            if errors := [error for error in answers if error is not None]:
                raise errors[0]

    async def delete(self, owner: Object, pods: Iterable[Pod]) -> None:
        """Delete pods, all at a time; raises the first error."""
        key = key_of(owner)
        doomed = list(pods)
        self._expected.expect(key, deletions=(pod.metadata.uid for pod in doomed))
        answers = await together(self._delete(key, pod) for pod in doomed)
        if errors := [error for error in answers if error is not None]:
            raise errors[0]

    async def _create(self, owner: Object, body: Mapping[str, Any]) -> KubeError | None:
        key = key_of(owner)
        try:
            await self._client.create(Pod, body, namespace=owner.metadata.namespace)
        except KubeError as error:
            self._expected.created(key)
            if self._ends(key[0]):
                return None
            self._recorder.event(
                ObjectReference(
                    api_version=owner.resource.api_version,
                    kind=owner.resource.kind,
                    namespace=owner.metadata.namespace,
                    name=owner.metadata.name,
                    uid=owner.metadata.uid,
                ),
                reason="FailedCreate",
                message=f"Error creating: {error}",
                warning=True,
            )
            return error
        return None

    def _ends(self, namespace: str) -> bool:
        """Whether the namespace is being deleted, so that no creation can succeed and none is needed."""
        found = self._views.namespaces.get(namespace)
        return found is None or found.metadata.deletion_timestamp is not None

    async def _delete(self, key: Key, pod: Pod) -> KubeError | None:
        try:
            await self._client.delete(Pod, pod.metadata.name, namespace=pod.metadata.namespace, uid=pod.metadata.uid)
        except NotFound:
            self._expected.deleted(key, pod.metadata.uid)
        except KubeError as error:
            self._expected.deleted(key, pod.metadata.uid)
            return error
        return None

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        owner = controller_of(pod.metadata)
        if owner is None or owner.kind != self._kind:
            return
        key = (pod.metadata.namespace, owner.name)
        if old is None:
            self._expected.created(key)
        if new is None or new.terminating:
            self._expected.deleted(key, pod.metadata.uid)
        counts_anew = old is None or new is None or old.active != new.active
        self._enqueue(key, counts_anew)

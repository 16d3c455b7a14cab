"""Stand-in for the garbage collector (simulated): what nobody owns any more is deleted, whatever its kind.

Invariant: deletions carry the uid that was judged, so an object of the same name made since is never hit.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from interlace.api.meta import Object, ObjectMeta, OwnerReference, PartialObjectMetadata, Resource, Struct
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, KubeError, NotFound, UnknownKind
from interlace.kube.informer import Informer
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.kube.untyped import Discovery
from interlace.sim.platform.garbage.graph import Graph, Item
from interlace.sim.platform.views import Views

IGNORED = frozenset({"events", "componentstatuses"})
"""Kinds that have no owners, or cannot be watched."""
_WORKERS = 20

log = get_logger("simulated-garbage-collector")


class _Definition(Struct, frozen=True):
    """A CustomResourceDefinition, of which only the coming and going matters."""

    resource: ClassVar[Resource] = Resource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
    )
    metadata: ObjectMeta = ObjectMeta()


@functools.cache
def partial(resource: Resource) -> type[PartialObjectMetadata]:
    """A kind for the client that reads metadata only."""
    return type(
        resource.kind,
        (PartialObjectMetadata,),
        {"__annotations__": {"resource": ClassVar[Resource]}, "resource": resource},
    )


class GarbageCollector:
    """Watches the metadata of every kind; ``run`` until cancelled."""

    def __init__(self, views: Views, *, client: Client) -> None:
        self._client = client
        self._graph = Graph()
        self._discovery = Discovery(client)
        self._queue: WorkQueue[str] = WorkQueue(name="simulated-garbage-collector")
        self._rescans: WorkQueue[str] = WorkQueue(name="simulated-garbage-collector-kinds")
        self._shared = {(kind.resource.group, kind.resource.plural) for kind in views.informers}
        self._watched: dict[tuple[str, str], tuple[Informer[PartialObjectMetadata], asyncio.Task[None]]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        for kind, informer in views.informers.items():
            informer.on_change(self._handler(kind.resource))
        self._definitions = Informer(client, _Definition, metadata_only=True)
        self._definitions.on_change(self._definition_changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tasks.create_task(self._definitions.run())
            self._rescans.add("")
            tasks.create_task(work(self._rescans, self._rescan, workers=1))
            tasks.create_task(work(self._queue, self._sync, workers=_WORKERS))

    def _handler(self, resource: Resource) -> Callable[[Any, Any], None]:
        def changed(old: Object | None, new: Object | None) -> None:
            if new is not None:
                if old is None or _essence(old.metadata) != _essence(new.metadata):
                    self._enqueue(self._graph.put(Item(resource=resource, metadata=new.metadata)))
            elif old is not None:
                self._enqueue(self._graph.drop(old.metadata.uid))

        return changed

    def _enqueue(self, uids: list[str]) -> None:
        for uid in uids:
            self._queue.add(uid)

    def _definition_changed(self, old: _Definition | None, new: _Definition | None) -> None:  # noqa: ARG002
        self._rescans.add("")

    async def _rescan(self, _: str) -> float | None:
        """Watch kinds that are new, leave those that are gone."""
        resources = {
            (resource.group, resource.plural): resource
            for resource in await self._discovery.listable()
            if resource.plural not in IGNORED
        }
        if self._tasks is None:
            raise RuntimeError("the garbage collector does not run")
        for key, resource in resources.items():
            if key not in self._watched and key not in self._shared:
                informer = Informer(self._client, partial(resource), metadata_only=True)
                informer.on_change(self._handler(resource))
                self._watched[key] = (informer, self._tasks.create_task(informer.run()))
        for key in [key for key in self._watched if key not in resources]:
            informer, task = self._watched.pop(key)
            task.cancel()
            for item in informer.items():
                self._enqueue(self._graph.drop(item.metadata.uid))
        # A definition is served a moment after it is there.
        served = {plural for _, plural in resources}
        missing = [d for d in self._definitions.items() if d.metadata.name.partition(".")[0] not in served]
        return 0.5 if missing else None

    async def _sync(self, uid: str) -> None:
        item = self._graph.get(uid)
        if item is None:
            return
        verdict = self._graph.judge(uid)
        try:
            if verdict.verify:
                for reference in verdict.verify:
                    await self._verify(item, reference)
                self._queue.add(uid)
            elif verdict.delete is not None:
                await self._client.delete(
                    partial(item.resource),
                    item.metadata.name,
                    namespace=item.metadata.namespace or None,
                    uid=uid,
                    propagation=verdict.delete,
                )
            elif verdict.disown:
                await self._disown(item, verdict.disown)
            elif verdict.orphan:
                for dependent in verdict.orphan:
                    found = self._graph.get(dependent)
                    if found is not None:
                        await self._disown(found, frozenset({uid}))
                self._queue.add_after(uid, 0.05)
            elif verdict.unblock:
                kept = [entry for entry in item.metadata.finalizers if entry != verdict.unblock]
                await self._patch(item, {"finalizers": kept})
            self._enqueue(list(verdict.look_at))
        except NotFound:
            self._enqueue(self._graph.drop(uid))

    async def _verify(self, item: Item, reference: OwnerReference) -> None:
        """Look whether an owner that was never seen exists."""
        try:
            resource = await self._discovery.resolve(reference.api_version, reference.kind)
        except UnknownKind:
            # The kind may come back with its definition; until then nothing is known, and nothing is deleted.
            log.info("owner of an unknown kind", kind=reference.kind, of=item.metadata.name)
            raise
        try:
            found = await self._client.get(
                partial(resource), reference.name, namespace=item.metadata.namespace if resource.namespaced else None
            )
        except NotFound:
            self._graph.miss(reference.uid)
            return
        if found.metadata.uid == reference.uid:
            self._graph.put(Item(resource=resource, metadata=found.metadata))
        else:
            self._graph.miss(reference.uid)

    async def _disown(self, item: Item, owners: frozenset[str]) -> None:
        kept = [reference for reference in item.metadata.owner_references if reference.uid not in owners]
        await self._patch(item, {"ownerReferences": msgspec.to_builtins(kept)})

    async def _patch(self, item: Item, metadata: dict[str, Any]) -> None:
        body = {
            "metadata": {"uid": item.uid, "resourceVersion": item.metadata.resource_version, **metadata},
        }
        try:
            await self._client.merge_patch(
                partial(item.resource), item.metadata.name, body, namespace=item.metadata.namespace or None
            )
        except Conflict:
            self._queue.add_after(item.uid, 0.05)
        except NotFound:
            raise
        except KubeError as error:
            log.warning("references not changed", object=item.metadata.name, reason=str(error))
            raise


def _essence(metadata: ObjectMeta) -> object:
    """What the garbage collector reads, and the version where a patch may be needed."""
    wakes = bool(metadata.owner_references or metadata.deletion_timestamp)
    return (
        metadata.uid,
        metadata.owner_references,
        metadata.finalizers,
        metadata.deletion_timestamp,
        metadata.resource_version if wakes else "",
    )

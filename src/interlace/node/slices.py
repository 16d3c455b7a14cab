"""The node's one ResourceSlice: what the scheduler may give away here.

Invariant: unless the fabric verdict or the offer changes, or somebody else changes or deletes the slice, nothing
is written: not when a domain comes with one Pod a node, not when it goes. Kubelet deletes all slices of its node
when it starts, and those of a driver whose socket is gone; so the slice is watched and written again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from interlace.api.computedomain import DRIVER
from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.api.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from interlace.kube.client import Client
from interlace.kube.errors import KubeError
from interlace.kube.informer import Informer
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.node.errors import RivalDriver
from interlace.node.fabric import Fabric
from interlace.node.offer import Offer, devices
from interlace.node.ownership import Ownership

_NAME_LIMIT = 253
BEHIND = 1.0
"""Seconds until a slice is looked at again whose writing the watch has not shown yet."""
log = get_logger(__name__)


def remember_clique(fabric: Fabric, published: ResourceSlice | None) -> Fabric:
    """An unhealthy fabric that does not say where it is keeps the clique that the slice names."""
    if fabric.healthy or fabric.clique or published is None:
        return fabric
    for device in published.spec.devices:
        attribute = device.attributes.get("clique")
        if attribute is not None and attribute.string:
            return msgspec.structs.replace(fabric, clique=attribute.string)
    return fabric


def slice_name(node: str) -> str:
    """Name of our slice. Long node names are cut; the suffix says whose it is."""
    suffix = f"-{DRIVER}"
    return node[: _NAME_LIMIT - len(suffix)].rstrip(".-") + suffix


class SlicePublisher:
    """Keeps the slice as it should be, and looks for slices of another driver with our name."""

    def __init__(
        self,
        client: Client,
        *,
        node: str,
        rival_timeout: float,
        ownership: Ownership,
        on_published: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._ownership = ownership
        self._on_published = on_published
        self._node = node
        self._name = slice_name(node)
        self._rival_timeout = rival_timeout
        self._fabric: Fabric | None = None
        self._offer: Offer | None = None
        self._written: ResourceSlice | None = None
        self._queue: WorkQueue[str] = WorkQueue()
        self._touched = asyncio.Event()
        self._informer = Informer(client, ResourceSlice, fields=f"spec.nodeName={node},spec.driver={DRIVER}")
        self._informer.on_change(self._changed)
        self.cleared = asyncio.Event()
        """Set once no slice of another driver of our name is on this node."""
        self.seen = asyncio.Event()
        """Set once the slices that an earlier run left have been read."""
        self.published = False
        """Whether the slice on the server is the one wanted, as far as we know."""

    def show(self, fabric: Fabric) -> None:
        """Publish this from now on."""
        self._fabric = fabric
        self._queue.add(self._name)

    def offer(self, offer: Offer) -> None:
        """Publish this from now on."""
        if offer != self._offer:
            self._offer = offer
            self.published = False
            self._queue.add(self._name)

    @property
    def own(self) -> ResourceSlice | None:
        """Our slice as the server has it; as we wrote it, while the cache is behind that."""
        return self._written if self._behind else self._informer.get(self._name)

    @property
    def _behind(self) -> bool:
        """Whether the cache has not seen yet what we wrote last."""
        written = self._written
        return written is not None and int(self._informer.resource_version or 0) < int(
            written.metadata.resource_version or 0
        )

    async def run(self) -> None:
        """Publish until cancelled. Raises ``RivalDriver`` where another driver's slices do not go away."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            await self._informer.synced()
            self.seen.set()
            await self._clear()
            self.cleared.set()
            await work(self._queue, self._publish, workers=1)

    @property
    def foreign(self) -> list[ResourceSlice]:
        """Slices of this node under our driver's name that are not ours."""
        return [found for found in self._informer.items() if found.metadata.name != self._name]

    async def _clear(self) -> None:
        """Wait for leftovers to go: kubelet removes them about half a minute after their driver's socket."""
        deadline = asyncio.get_running_loop().time() + self._rival_timeout
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while self.foreign:
                    log.warning(
                        "slices of another driver of the same name", slices=[s.metadata.name for s in self.foreign]
                    )
                    self._touched.clear()
                    await self._touched.wait()
        if self.foreign:
            name = self.foreign[0].metadata.name
            raise RivalDriver(
                f"ResourceSlice {name} of node {self._node} is kept by another driver named {DRIVER} (field managers: "
                f"{await self._managers(name)}); remove that driver from the node, then start this agent."
            )

    async def _managers(self, name: str) -> str:
        with contextlib.suppress(KubeError):
            fields = (await self._client.get(_Managed, name)).metadata.managed_fields
            return ", ".join(sorted({field.manager for field in fields})) or "unknown"
        return "unknown"

    def _changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        self._touched.set()
        seen = new if new is not None else old
        if seen is not None and seen.metadata.name == self._name:
            if new is None:
                self._ownership.lose(now=asyncio.get_running_loop().time())
            self._queue.add(self._name)

    async def _publish(self, name: str) -> None:
        if self._fabric is None or self._offer is None:
            return
        own, offer = self.own, self._offer
        fabric = remember_clique(self._fabric, own)
        wanted = devices(fabric, offer=offer)
        if own is not None and own.spec.devices == wanted and own.spec.pool.resource_slice_count == 1:
            self._stands(offer)
            if self._behind:
                # A slice that came and went while no watch stood is a change that nobody is told of: look again.
                self._queue.add_after(name, BEHIND)
            return
        self.published = False
        seen = [*self._informer.items(), *([own] if own is not None else [])]
        generation = max((found.spec.pool.generation for found in seen), default=0) + 1
        spec = ResourceSliceSpec(
            driver=DRIVER,
            node_name=self._node,
            pool=ResourcePool(name=self._node, generation=generation, resource_slice_count=1),
            devices=wanted,
        )
        owner = self._ownership.reference()
        body: dict[str, Any] = {
            "apiVersion": ResourceSlice.resource.api_version,
            "kind": ResourceSlice.resource.kind,
            "metadata": {"name": name, "ownerReferences": [] if owner is None else [owner]},
            "spec": spec,
        }
        self._written = await self._client.apply(ResourceSlice, body, name=name, manager=DRIVER)
        self._ownership.write(owner, now=asyncio.get_running_loop().time())
        log.info("slice published", slice=name, generation=generation, clique=fabric.clique, healthy=fabric.healthy)
        self._stands(offer)
        # Nothing waits for the cache here: the next offer may be on its way.
        self._queue.add_after(name, BEHIND)

    def _stands(self, offer: Offer) -> None:
        before, self.published = self.published, offer == self._offer
        if self.published and not before:
            self._on_published()


class _Field(Struct, frozen=True):
    manager: str = ""


class _ManagedMeta(ObjectMeta, frozen=True):
    managed_fields: list[_Field] = []


class _Managed(Struct, frozen=True):
    """A slice, as far as it says who writes it."""

    resource: ClassVar[Resource] = ResourceSlice.resource
    metadata: _ManagedMeta = _ManagedMeta()

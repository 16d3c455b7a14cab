"""When an outdated imex-host is deleted, and by which leader. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest

from interlace.api.core import ControllerRevision, Pod
from interlace.api.meta import ObjectMeta
from interlace.api.resource import ResourceClaim
from interlace.domains.hosts import REVISION_LABEL
from interlace.domains.replacement import ABSENCE, Replacement
from interlace.domains.sources import Sources
from interlace.kube.client import Client
from interlace.kube.codec import WatchEvent
from tests.unit.domains.objects import claim, host

pytestmark = pytest.mark.looptime

QUIET = 30.0


class Cluster:
    """The client and the caches that a Replacement uses: outdated hosts ``imex-<node>``, all new ones still to come."""

    timeout = 30.0

    def __init__(self, *nodes: str) -> None:
        self.hosts = self
        self.pods = {node: _outdated(node) for node in nodes}
        self.claims: dict[str, list[ResourceClaim]] = {}
        self.left: Callable[[str], None] = lambda _node: None
        self.deleted: list[tuple[float, str]] = []

    async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        meta = ObjectMeta(name="new", uid="r", resource_version="1", labels={REVISION_LABEL: "new"})
        yield WatchEvent("ADDED", ControllerRevision(metadata=meta, revision=2))
        note = ObjectMeta(resource_version="2", annotations={"k8s.io/initial-events-end": "true"})
        yield WatchEvent("BOOKMARK", ControllerRevision(metadata=note))
        await asyncio.Event().wait()

    async def delete(self, _: type[Pod], name: str, **__: Any) -> None:
        self.deleted.append((asyncio.get_running_loop().time(), name))
        del self.pods[name.removeprefix("imex-")]

    def items(self) -> list[Pod]:
        return list(self.pods.values())

    def __len__(self) -> int:
        return len(self.pods)

    def by(self, _index: str, _value: str) -> list[Pod]:
        return []

    def hosts_on(self, node: str) -> list[Pod]:
        return [self.pods[node]] if node in self.pods else []

    def claims_on(self, node: str) -> list[ResourceClaim]:
        return self.claims.get(node, [])

    def on_left(self, handler: Callable[[str], None]) -> None:
        self.left = handler


def _outdated(node: str) -> Pod:
    found = host(f"imex-{node}", node=node, address="10.0.0.1")
    meta = msgspec.structs.replace(found.metadata, uid=f"uid-{node}", labels={REVISION_LABEL: "old"})
    return msgspec.structs.replace(found, metadata=meta)


@asynccontextmanager
async def leading(cluster: Cluster) -> AsyncIterator[None]:
    replacement = Replacement(
        cast("Client", cluster), namespace="interlace-system", sources=cast("Sources", cluster), quiet=QUIET
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(replacement.run())
        try:
            yield
        finally:
            task.cancel()


async def test_a_new_leader_waits_too_since_it_does_not_know_when_the_last_claim_left() -> None:
    cluster = Cluster("n1")
    async with leading(cluster):
        await asyncio.sleep(QUIET - 1)
        assert cluster.deleted == []
        await asyncio.sleep(2)
    assert [name for _, name in cluster.deleted] == ["imex-n1"]


async def test_a_host_stays_until_its_node_was_quiet_for_long_enough() -> None:
    cluster = Cluster("n1")
    cluster.claims["n1"] = [claim("a", node="n1")]
    async with leading(cluster):
        await asyncio.sleep(100)
        assert cluster.deleted == []
        cluster.claims.clear()
        cluster.left("n1")
        left = asyncio.get_running_loop().time()
        await asyncio.sleep(QUIET + 1)
    ((when, _),) = cluster.deleted
    assert when - left >= QUIET


async def test_a_node_that_was_deleted_with_its_host_does_not_stop_the_others() -> None:
    cluster = Cluster("gone", "n1")
    async with leading(cluster):
        await asyncio.sleep(QUIET + 1)
        assert len(cluster.deleted) == 1
        await asyncio.sleep(ABSENCE + 10)
    assert len(cluster.deleted) == 2

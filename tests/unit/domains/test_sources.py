"""The caches of a leader: what we deleted is not shown, and not remembered for longer than that takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from interlace.api.computedomain import ComputeDomainClique
from interlace.domains.sources import Sources
from interlace.kube.client import Client
from interlace.kube.untyped import apply_manifest
from interlace.manifests import NAMESPACE, manifests
from interlace.sim.plane import Plane
from tests.unit.domains.objects import UID, clique
from tests.waiting import eventually


@pytest_asyncio.fixture(loop_scope="module")
async def client(embedded_plane: Plane) -> AsyncIterator[Client]:
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as made:
        for manifest in manifests():
            await apply_manifest(made, manifest, manager="test")
        yield made


async def test_what_was_deleted_is_hidden_until_the_cache_knows_and_then_forgotten(client: Client) -> None:
    body = {"metadata": {"name": clique([]).metadata.name, "labels": clique([]).metadata.labels}, "daemons": []}
    sources = Sources(client, namespace=NAMESPACE, changed=lambda _: None, touch=lambda _: None)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(sources.run())
        await sources.synced()
        for told_first in (True, False):
            made = await client.create(ComputeDomainClique, body, namespace=NAMESPACE)
            await eventually(lambda: sources.cliques_of(UID), within=10, what="the clique in the cache")
            if told_first:
                sources.deleted(made)
                assert sources.cliques_of(UID) == []
            await client.delete(ComputeDomainClique, made.metadata.name, namespace=NAMESPACE)
            await eventually(lambda: len(sources.cliques) == 0, within=10, what="the deletion in the cache")
            if not told_first:
                sources.deleted(made)
            assert sources.hidden == set()
        running.cancel()

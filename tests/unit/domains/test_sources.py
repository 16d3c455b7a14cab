"""The caches of a leader: what we deleted is not shown, and not remembered for longer than that takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from interlace.api.computedomain import CLIQUE_LABEL, DOMAIN_LABEL, DRIVER, ComputeDomainClique
from interlace.api.core import Pod
from interlace.api.resource import ResourceClaim, ResourceSlice
from interlace.domains.channels import shared_name
from interlace.domains.sources import Sources
from interlace.kube.client import Client
from interlace.kube.untyped import apply_manifest
from interlace.manifests import NAMESPACE, manifests
from interlace.sim.plane import Plane
from tests.unit.domains.objects import RACK, UID, clique
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


GUEST = "0ddba11e-0000-4000-8000-00000000000b"


async def _allocate(client: Client, name: str, *, uid: str) -> None:
    """A claim of the domain ``uid`` on node ``n1``."""
    request = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
    body = {"metadata": {"name": name, "labels": {DOMAIN_LABEL: uid}}, "spec": {"devices": {"requests": [request]}}}
    await client.create(ResourceClaim, body, namespace="default")
    result = {"request": "channel", "driver": DRIVER, "pool": "n1", "device": "channel-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    await client.merge_patch(ResourceClaim, name, {"status": status}, namespace="default", subresource="status")


async def _add_host(client: Client, node: str) -> None:
    containers = [{"name": "imex-host", "image": "ghcr.io/interlace/interlace:0"}]
    labels = {"app.kubernetes.io/component": "imex-host"}
    spec = {"nodeName": node, "serviceAccountName": "interlace-imex-host", "containers": containers}
    await client.create(
        Pod, {"metadata": {"name": f"imex-{node}", "labels": labels}, "spec": spec}, namespace=NAMESPACE
    )


async def test_a_domain_that_waits_is_told_when_the_last_free_node_goes_and_both_when_they_meet(client: Client) -> None:
    told: list[str] = []
    sources = Sources(client, namespace=NAMESPACE, changed=told.append, touch=lambda _: None)
    device = {
        "name": "channel-0",
        "attributes": {"type": {"string": "channel"}, "id": {"int": 0}, "clique": {"string": f"{RACK}.0"}},
    }
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [device]}
    async with asyncio.TaskGroup() as group:
        running = group.create_task(sources.run())
        await sources.synced()
        assert not sources.free_nodes
        await client.create(ResourceSlice, {"metadata": {"name": "n1-slice"}, "spec": spec})
        await eventually(lambda: sources.nodes_of(f"{RACK}.0") == {"n1"}, within=10, what="the slice")
        assert not sources.free_nodes
        await _add_host(client, "n1")
        await eventually(lambda: sources.free_nodes, within=10, what="a free node")
        sources.hungry.add(GUEST)
        await _allocate(client, "first", uid=UID)
        await eventually(lambda: GUEST in told, within=10, what="word for the domain that waits")
        assert (sources.free_nodes, sources.hungry, sources.crowded) == (False, set(), set())
        await _allocate(client, "second", uid=GUEST)
        await eventually(lambda: sources.crowded == {"n1"}, within=10, what="a crowded node")
        assert {UID, GUEST} <= {*told}
        await client.delete(ResourceClaim, "first", namespace="default")
        await eventually(lambda: not sources.crowded, within=10, what="a node of one domain")
        assert sources.nodes_with(GUEST) == {"n1"}
        running.cancel()


async def test_a_domain_is_shown_the_shared_maps_around_it_alone(client: Client) -> None:
    sources = Sources(client, namespace=NAMESPACE, changed=lambda _: None, touch=lambda _: None)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(sources.run())
        await sources.synced()
        for number in range(4):
            entry = {"domain": UID, "name": "cd", "namespace": "team", "channel": 1, "indexes": []}
            rack = f"{RACK}.{number}"
            body = {
                "metadata": {"name": shared_name(rack), "labels": {CLIQUE_LABEL: rack}},
                "daemons": [],
                "channels": [entry] if number == 0 else [],
            }
            await client.create(ComputeDomainClique, body, namespace=NAMESPACE)
        await eventually(lambda: len(sources.shared()) == 4, within=10, what="the maps in the cache")
        assert {*sources.shared_near(UID, [f"{RACK}.2", "a-rack-without-a-map"])} == {f"{RACK}.0", f"{RACK}.2"}
        running.cancel()

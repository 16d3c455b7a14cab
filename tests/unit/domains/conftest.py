"""One control plane for the tests of a module, empty at the start of each."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest_asyncio

from interlace.api.computedomain import ComputeDomain, ComputeDomainClique
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.kube.untyped import apply_manifest
from interlace.manifests import manifests
from interlace.sim.plane import Plane
from tests.unit.domains.desk import Desk


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def office(embedded_plane: Plane) -> AsyncIterator[Desk]:
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        for manifest in manifests():
            await apply_manifest(client, manifest, manager="test")
        yield Desk(embedded_plane, client)


@pytest_asyncio.fixture(loop_scope="module")
async def desk(office: Desk) -> AsyncIterator[Desk]:
    """No domain, claim, template or clique is left for the next test."""
    yield office
    for kind in (ComputeDomain, ResourceClaim, ResourceClaimTemplate, ComputeDomainClique):
        for found in (await office.client.list(kind)).items:
            meta = found.metadata
            if meta.finalizers:
                patch = {"metadata": {"finalizers": None}}
                await office.client.merge_patch(kind, meta.name, patch, namespace=meta.namespace)
            with contextlib.suppress(NotFound):
                await office.client.delete(kind, meta.name, namespace=meta.namespace)

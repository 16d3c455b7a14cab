"""The last step of ``interlace gke apply`` against a real API server: each object that a new cluster needs is taken."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from interlace.fabric.family import find
from interlace.sim.plane import Plane
from tests.contract.space import CRDS
from tests.contract.wire import admin
from tests.network_kinds import network_crds
from tests.unit.cli.programs import interlace
from tests.unit.gke.engine.ground import ground
from tests.waiting import eventually

SETS = "/apis/networking.gke.io/v1/gkenetworkparamsets"
DAEMON_SETS = "/apis/apps/v1/daemonsets"
DEPLOYMENTS = "/apis/apps/v1/deployments"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(real_plane: Plane) -> AsyncIterator[Plane]:
    """A control plane with the kinds of a GKE cluster that has multi-networking."""
    async with admin(real_plane) as wire:
        for crd in network_crds():
            assert (await wire("POST", CRDS, crd)).code in {201, 409}

        async def there() -> bool:
            return (await wire("GET", SETS)).code == 200

        await eventually(there, within=30, what="the kinds of networking.gke.io are served")
        yield real_plane


async def test_all_objects_of_a_new_cluster_are_applied_and_applied_again(served: Plane, tmp_path: Path) -> None:
    high = find("a3-high")
    with ground(tmp_path) as bed:
        arguments = bed.arguments("apply", "--yes", "--kubeconfig", str(served.kubeconfig), "--objects-timeout", "0")
        for _ in range(2):
            ended = await interlace(*arguments)
            assert ended.code == 1, ended.errors  # there are no nodes, and so nothing can be ready
            assert "Kubernetes objects applied" in ended.errors
            assert "not ready: nodes:" in ended.out
    async with admin(served) as wire:
        sets = (await wire("GET", SETS)).body["items"]
        assert {each["spec"]["vpc"] for each in sets} == {f"high-net-{n}" for n in range(1, len(high.networks) + 1)}
        names = {each["metadata"]["name"] for each in (await wire("GET", DAEMON_SETS)).body["items"]}
        assert high.installer is not None
        assert {high.installer.name, "interlace-agent"} <= names

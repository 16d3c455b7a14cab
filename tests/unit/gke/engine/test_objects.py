"""After the cluster: its Kubernetes objects, applied to an API server and awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from interlace.api.meta import Resource
from interlace.cli.manifests_status import NETWORKS, NODES, PARAMETERS, PODS
from interlace.fabric.family import find
from interlace.kube.client import Client
from interlace.kube.errors import KubeError
from interlace.kube.untyped import untyped
from interlace.sim.apiserver import ApiServer
from tests.network_kinds import network_crds
from tests.unit.cli.programs import Ended, interlace
from tests.unit.gke.engine.ground import Ground, ground
from tests.waiting import eventually

HIGH = find("a3-high")
CRDS = untyped(Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False))
ACCOUNTS = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))
DAEMON_SETS = untyped(Resource("apps", "v1", "daemonsets", "DaemonSet", True))
AWAY = """\
apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: x, user: {token: t}}]
"""
READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(embedded_plane: ApiServer) -> AsyncIterator[Client]:
    """An API server with the kinds of a GKE cluster that has multi-networking."""
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        await client.create(ACCOUNTS, {"metadata": {"name": "default"}}, namespace="kube-system")
        for crd in network_crds():
            await client.create(CRDS, crd)

        async def served() -> bool:
            try:
                await client.list(NETWORKS)
                await client.list(PARAMETERS)
            except KubeError:
                return False
            return True

        await eventually(served, within=30, what="the kinds of networking.gke.io are served")
        yield client


async def _apply(bed: Ground, plane: ApiServer, *more: str) -> Ended:
    parts = ("--part", "networks", "--part", "installer")
    return await interlace(*bed.arguments("apply", "--yes", "--kubeconfig", str(plane.kubeconfig), *parts, *more))


async def _make_ready(client: Client) -> None:
    """What GKE, the installer and the injector would do."""
    for network in HIGH.networks:
        for kind in (NETWORKS, PARAMETERS):
            await client.merge_patch(kind, network.name, {"status": READY}, subresource="status")
    labels = {"node.kubernetes.io/instance-type": HIGH.machines[0]}
    await client.create(NODES, {"metadata": {"name": "a", "labels": labels}})
    allocatable = {f"networking.gke.io.networks/{network.name}": "1" for network in HIGH.networks}
    status = {**READY, "allocatable": {"nvidia.com/gpu": "8", **allocatable}}
    await client.merge_patch(NODES, "a", {"status": status}, subresource="status")
    for name in (HIGH.installer.name if HIGH.installer else "", "device-injector"):
        container = {"name": "rest", "image": "registry.k8s.io/pause:3.10"}
        body = {
            "metadata": {"name": name, "labels": {"name": name}},
            "spec": {"nodeName": "a", "containers": [container]},
        }
        await client.create(PODS, body, namespace="kube-system")
        await client.merge_patch(PODS, name, {"status": READY}, namespace="kube-system", subresource="status")


async def test_objects_are_applied_and_awaited(embedded_plane: ApiServer, admin: Client, tmp_path: Path) -> None:
    with ground(tmp_path) as bed:
        early = await _apply(bed, embedded_plane, "--objects-timeout", "0")
        assert early.code == 1, early.errors
        assert "objects applied" in early.errors
        assert "not ready: nodes:" in early.out
        sets = (await admin.list(PARAMETERS)).items
        assert {each["spec"]["vpc"] for each in sets} == {f"high-net-{number}" for number in range(1, 5)}
        names = {each["metadata"]["name"] for each in (await admin.list(DAEMON_SETS)).items}
        assert HIGH.installer is not None
        assert HIGH.installer.name in names

        await _make_ready(admin)
        ready = await _apply(bed, embedded_plane)
        assert ready.code == 0, ready.errors
        assert "all ready" in ready.out
        assert "nothing to do" in ready.out


async def test_a_kubeconfig_that_is_not_there_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with ground(tmp_path) as bed:
        refused = await interlace(*bed.arguments("apply", "--yes", "--kubeconfig", str(tmp_path / "none")))
        assert refused.code == 2
        assert str(tmp_path / "none") in refused.errors
        assert len(bed.server.log) == 0


async def test_an_api_server_that_is_away_fails_after_the_cluster_was_made(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(AWAY, encoding="utf-8")
    with ground(tmp_path) as bed:
        failed = await interlace(*bed.arguments("apply", "--yes", "--kubeconfig", str(file)))
        assert failed.code == 4
        assert "16 done" in failed.out
        assert "Kubernetes objects: " in failed.out
        assert "127.0.0.1:1" in failed.out
        assert "next: interlace gke apply" in failed.out

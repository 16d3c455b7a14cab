"""A hollow node towards an API server that has bad days, and towards pods that share a claim."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from interlace.sim.kubelet.container import ContainerRecord
from interlace.sim.kubelet.dra import Claim, Plugins
from interlace.sim.kubelet.hardware import control_machine
from interlace.sim.kubelet.node import TOKEN_LIFE, HollowNode
from interlace.sim.kubelet.programs import Programs
from interlace.sim.kubelet.settings import KubeletSettings
from interlace.sim.plane import Plane
from tests.unit.kube.server import JSON, Server
from tests.unit.kube.support import PODS, running
from tests.waiting import eventually

pytestmark = pytest.mark.looptime
NODES = "api/v1/nodes"
CLAIMS = "apis/resource.k8s.io/v1/resourceclaims"


class Forever:
    """A program of another driver that never ends."""

    commands = frozenset({"forever"})

    async def run(self, record: ContainerRecord, *, node: HollowNode) -> None:
        await asyncio.Event().wait()

    async def execute(self, record: ContainerRecord, command: Sequence[str], *, limit: float) -> bool:
        return True


class Calls:
    """Plugins that prepare everything, and what they were asked."""

    def __init__(self) -> None:
        self.unprepared: list[str] = []

    async def run(self, *, every: float) -> None:
        await asyncio.Event().wait()

    async def prepare(self, driver: str, claims: list[Claim], *, deadline: float) -> list[str]:
        return []

    async def unprepare(self, driver: str, claims: list[Claim], *, deadline: float) -> None:
        self.unprepared += [claim.name for claim in claims]


@asynccontextmanager
async def a_node(root: Path, *, lease: float = 60) -> AsyncIterator[tuple[Server, HollowNode]]:
    async with Server() as server:
        plane = SimpleNamespace(url=server.url, version="v1.36.0", credentials=lambda *_, **__: server.config)
        node = HollowNode(
            control_machine("127.16.1", root=root),
            plane=cast("Plane", plane),
            programs=Programs(foreign=Forever()),
            settings=KubeletSettings(plugin_scan=60, lease=lease),
        )
        async with running(node.run()):
            await eventually(lambda: server.watchers, within=5, what="the node's watch")
            yield server, node


def bind(server: Server, name: str, *, deleted: bool = False, **spec: Any) -> None:
    """A pod of the node, or its deletion."""
    metadata: JSON = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleted else {}
    spec = {"nodeName": "control-0", "containers": [{"name": "c", "command": ["sleep"]}], **spec}
    server.put(PODS, name, metadata=metadata, spec=spec, status={"phase": "Pending"})


def phase(server: Server, name: str) -> str:
    return str(server.objects[PODS, "default", name]["status"]["phase"])


async def test_a_status_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    async with a_node(tmp_path) as (server, _):
        server.refuse(500, times=5, path="/pods/p/status")
        bind(server, "p")
        await eventually(lambda: phase(server, "p") == "Running", within=60, what="the status")
        assert not server.refusals


def shows_ready(server: Server, name: str) -> bool:
    conditions = server.objects[PODS, "default", name]["status"].get("conditions", [])
    return {"Ready": "True"}.items() <= {each["type"]: each["status"] for each in conditions}.items()


async def test_a_pod_that_others_call_unready_is_called_ready_again(tmp_path: Path) -> None:
    async with a_node(tmp_path) as (server, _):
        bind(server, "p")
        await eventually(lambda: shows_ready(server, "p"), within=60)
        pod = server.objects[PODS, "default", "p"]
        unready = {"conditions": [{"type": "Ready", "status": "False"}]}
        server.put(PODS, "p", spec=pod["spec"], status=pod["status"] | unready)
        assert not shows_ready(server, "p")
        await eventually(lambda: shows_ready(server, "p"), within=60, what="the kubelet's word")
        writes = [asked for asked in server.asked if asked.path.endswith("/pods/p/status")]
        assert len(writes) == 3, "Pending, Running, and once again"


async def test_a_pod_whose_deletion_could_not_be_told_is_deleted_later(tmp_path: Path) -> None:
    async with a_node(tmp_path) as (server, _):
        bind(server, "p")
        await eventually(lambda: phase(server, "p") == "Running", within=60)
        server.refuse(500, times=3, path="/pods/p")
        bind(server, "p", deleted=True)
        await eventually(lambda: (PODS, "default", "p") not in server.objects, within=60, what="the deletion")
        assert not server.refusals


async def test_a_claim_that_two_pods_share_is_unprepared_with_the_last_one(tmp_path: Path) -> None:
    async with a_node(tmp_path) as (server, node):
        calls = Calls()
        node.plugins = cast("Plugins", calls)
        uses: dict[str, Any] = {"resourceClaims": [{"name": "channel", "resourceClaimName": "shared"}]}
        for name in ("a", "b"):
            bind(server, name, **uses)
        uids = [server.objects[PODS, "default", name]["metadata"]["uid"] for name in ("a", "b")]
        allocation = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "n", "device": "channel-0"}]}}
        reserved = [{"resource": "pods", "name": "x", "uid": uid} for uid in uids]
        server.put(CLAIMS, "shared", status={"allocation": allocation, "reservedFor": reserved})
        await eventually(lambda: [phase(server, name) for name in ("a", "b")] == ["Running", "Running"], within=60)
        bind(server, "a", deleted=True, **uses)
        await eventually(lambda: (PODS, "default", "a") not in server.objects, within=60)
        assert calls.unprepared == []
        bind(server, "b", deleted=True, **uses)
        await eventually(lambda: (PODS, "default", "b") not in server.objects, within=60)
        assert calls.unprepared == ["shared"]


async def test_the_token_of_a_program_is_renewed_before_it_expires(tmp_path: Path) -> None:
    async with a_node(tmp_path) as (server, node):
        bind(server, "p", containers=[{"name": "c", "command": ["forever"]}])
        await eventually(lambda: phase(server, "p") == "Running", within=60)
        pod = next(iter(node.workers.values())).pod
        token = node.pod_dir(pod) / "serviceaccount" / "token"
        first = token.read_text()
        server.refuse(500, path="/token")
        await eventually(lambda: token.read_text() != first, within=TOKEN_LIFE, every=60, what="another token")
        assert token.stat().st_mode & 0o777 == 0o600


def calls_the_node_ready(server: Server, status: str) -> bool:
    conditions = server.objects[NODES, "", "control-0"]["status"]["conditions"]
    return [each["status"] for each in conditions if each["type"] == "Ready"] == [status]


async def test_a_node_that_was_called_lost_calls_itself_ready_again(tmp_path: Path) -> None:
    async with a_node(tmp_path, lease=1) as (server, _):
        assert calls_the_node_ready(server, "True")
        node = server.objects[NODES, "", "control-0"]
        lost = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}
        server.put(NODES, "control-0", namespace="", status=node["status"] | lost)
        await eventually(lambda: calls_the_node_ready(server, "True"), within=60, what="the kubelet's word")

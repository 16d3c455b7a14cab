"""The demonstration itself, as a user runs it, and the proof that it would notice what is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import sys
from pathlib import Path
from typing import Any

import pytest

from interlace.api.computedomain import DRIVER
from interlace.api.meta import Resource
from interlace.api.resource import ResourceClaim
from interlace.cli.demo import example
from interlace.kube.untyped import untyped
from interlace.sim.demo.result import Result
from interlace.sim.demo.scenario import Scenario, play
from interlace.sim.demo.workload import load_workload
from interlace.sim.kubelet import pods
from interlace.sim.kubelet.cdi import ContainerEdits
from interlace.sim.observing import NotReachedError
from testbed.plane import ControlPlane
from tests.cluster.conftest import run

KEYS = {
    "server",
    "server_version",
    "nodes",
    "pods_ready",
    "domain_status",
    "formation_seconds",
    "first_channel_seconds",
    "last_channel_seconds",
    "heal_seconds",
    "requests",
    "teardown",
    "left_behind",
}
CLIQUES = "computedomaincliques.resource.nvidia.com"
KINDS = {"get", "list", "watch", "write", "conflict"}


class Silent:
    """A stage without an audience."""

    async def act(self, title: str) -> None: ...

    def tell(self, line: str) -> None: ...


async def _demo(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the JSON document and stderr of ``interlace demo --json``."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "interlace.cli.main",
        "demo",
        "--json",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(110):
        out, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(out), errors.decode()


def _is_whole(result: dict[str, Any], *, server: str) -> None:
    assert result.keys() >= KEYS
    assert (result["server"], result["nodes"], result["pods_ready"], result["domain_status"]) == (
        server,
        18,
        18,
        "Ready",
    )
    assert 0 < result["first_channel_seconds"] <= result["last_channel_seconds"]
    assert result["heal_seconds"] > 0
    for cost in (result["requests"], result["teardown"]["requests"]):
        assert set(cost["ours"]) == set(cost["platform"]) == KINDS
    assert result["left_behind"] == []
    assert "nvidia-imex" in result["simulated"]


async def test_the_demo_on_the_embedded_server_ends_well() -> None:
    code, result, errors = await _demo()
    assert code == 0, errors[-4000:]
    _is_whole(result, server="embedded")
    assert "API server" in result["simulated"]


async def test_the_demo_on_the_real_control_plane_ends_well_within_its_budget_of_requests() -> None:
    code, result, errors = await _demo("--server", "real")
    assert code == 0, errors[-4000:]
    _is_whole(result, server="real")
    assert result["simulated"] == ["kubelets", "GPUs", "nvidia-imex"]
    ours, teardown = result["requests"]["ours"], result["teardown"]["requests"]["ours"]
    assert ours["conflict"] == 0
    assert ours["write"] <= 30
    assert ours["get"] + ours["list"] + ours["write"] <= 48
    assert teardown["get"] + teardown["list"] + teardown["write"] <= 8
    # nothing of the embedded server or of the stand-ins was even loaded
    loaded = {line.rpartition("|")[2].strip() for line in errors.splitlines() if line.startswith("import time:")}
    assert "interlace.sim.cluster" in loaded
    assert not [name for name in loaded if name.startswith(("interlace.sim.apiserver", "interlace.sim.platform"))]


async def test_the_real_scheduler_allocates_each_claim_and_slices_stay_as_they_are() -> None:
    async with run("real", nodes=3) as cluster:
        before = {item.metadata.name: item.metadata.resource_version for item in cluster.slices.items()}
        workload = load_workload(example(), replicas=3)
        scenario = Scenario(cluster, workload, stage=Silent(), result=Result(server="real", nodes=3))
        await scenario.form()
        claims = (await cluster.client.list(untyped(ResourceClaim.resource))).items
        assert len(claims) == 3
        for claim in claims:
            writers = {
                entry["manager"]
                for entry in claim["metadata"]["managedFields"]
                if "f:allocation" in entry["fieldsV1"].get("f:status", {})
            }
            assert writers == {"kube-scheduler"}
        assert {item.metadata.name: item.metadata.resource_version for item in cluster.slices.items()} == before


async def test_three_formations_on_the_real_control_plane_stay_within_their_budgets() -> None:
    async with run("real", nodes=18) as cluster:
        plane = cluster.plane
        assert isinstance(plane, ControlPlane)
        results: list[Result] = []
        sizes: list[int] = []
        before = {item.metadata.name: item.metadata.resource_version for item in cluster.slices.items()}
        for _ in range(3):
            result = Result(server="real", nodes=18)
            scenario = Scenario(cluster, load_workload(example(), replicas=18), stage=Silent(), result=result)
            sent = await plane.watch_bytes()
            await scenario.form()
            sizes.append((await plane.watch_bytes()).get(CLIQUES, 0) - sent.get(CLIQUES, 0))
            await scenario.delete()
            results.append(result)
        formed = [result.requests.ours for result in results]
        ended = [result.teardown.requests.ours for result in results]
        for name, figures in {
            "requests to form": [one.total for one in formed],
            "writes to form": [one.write for one in formed],
            "requests to tear down": [one.total for one in ended],
            "bytes of cliques to watchers": sizes,
        }.items():
            print(f"{name}: median {statistics.median(figures):g}, all {sorted(figures)}")  # noqa: T201  the spread is part of the result
        assert [one.conflict for one in formed] == [0, 0, 0]
        assert statistics.median(one.total for one in formed) <= 48
        assert statistics.median(one.write for one in formed) <= 30
        assert statistics.median(one.total for one in ended) <= 8
        assert statistics.median(sizes) <= 150_000
        assert {item.metadata.name: item.metadata.resource_version for item in cluster.slices.items()} == before


async def test_everything_that_is_left_behind_is_named() -> None:
    async with run("embedded", nodes=2) as cluster:
        result = Result(server="embedded", nodes=2)
        scenario = Scenario(cluster, load_workload(example(), replicas=2), stage=Silent(), result=result)
        node = cluster.fleet.nodes[cluster.gpu_nodes[0]]
        maps = untyped(Resource("", "v1", "configmaps", "ConfigMap", True))
        listener = socket.socket(socket.AF_UNIX)
        started: list[asyncio.subprocess.Process] = []

        async def plant() -> None:
            await cluster.client.create(
                maps,
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "planted", "namespace": "default"}},
                namespace="default",
            )
            (node.cdi_root / f"{DRIVER}-planted.json").write_text("{}")
            listener.bind(os.fspath(node.tray.root / "planted.sock"))
            started.append(
                await asyncio.create_subprocess_exec(
                    sys.executable, "-c", "import signal; signal.pause()", f"{node.tray.root}/planted"
                )
            )

        try:
            await play(scenario, keep=False, before_proof=plant)
        finally:
            listener.close()
            for one in started:
                one.kill()
                await one.wait()
        assert result.problems == []
        assert not result.good
        kinds = sorted(entry.partition(" ")[0] for entry in result.left_behind)
        assert kinds == ["CDI", "ConfigMap", "process", "socket"]
        assert all("planted" in entry for entry in result.left_behind)


async def test_pods_without_a_channel_in_their_containers_are_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "resolve", lambda _ids, *, root: ContainerEdits())  # a runtime that ignores CDI
    async with run("embedded", nodes=2) as cluster:
        result = Result(server="embedded", nodes=2)
        scenario = Scenario(cluster, load_workload(example(), replicas=2), stage=Silent(), result=result)
        with pytest.raises(NotReachedError, match="a channel in every pod did not happen within 3 s"):
            await scenario.form(within=3)


@pytest.mark.parametrize("documents", [0, 2])
async def test_a_folder_without_exactly_one_of_each_manifest_is_refused_by_name(tmp_path: Path, documents: int) -> None:
    (tmp_path / "a.yaml").write_text("---\nkind: ComputeDomain\nmetadata: {name: x}\n" * documents)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "interlace.cli.main",
        "demo",
        "--manifests",
        os.fspath(tmp_path),
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        _, errors = await process.communicate()
    assert process.returncode == 2
    assert f"holds {documents} manifests of kind ComputeDomain" in errors.decode()
    assert "Traceback" not in errors.decode()

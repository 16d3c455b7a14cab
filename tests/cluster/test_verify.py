"""``interlace verify run`` and ``verify pairs`` as a user runs them; hollow Pods answer from the bandwidth model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from interlace.api.computedomain import ComputeDomain
from interlace.api.core import Node, Pod
from interlace.api.meta import Resource
from interlace.fabric.family import find
from interlace.kube.untyped import untyped
from interlace.sim.cluster import Cluster, ClusterSettings, run_cluster
from interlace.sim.measure.answering import Answering
from interlace.sim.measure.bandwidth import Faults, Model
from interlace.verify.candidates import MACHINE
from tests.cluster.conftest import QUICK
from tests.cluster.workloads import WITHIN, deployment, domain
from tests.holding import hold
from tests.unit.cli.programs import Ended, interlace
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

A4X = find("a4x")
HEALTHY = Model(family=A4X, noise=0.01)
ANSWERS = Answering(HEALTHY)
OBJECTS = {
    "jobs": Resource("batch", "v1", "jobs", "Job", True),
    "services": Resource("", "v1", "services", "Service", True),
    "configmaps": Resource("", "v1", "configmaps", "ConfigMap", True),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(server: str) -> AsyncIterator[Cluster]:
    settings = ClusterSettings(server=server, nodes=4, replicas=1, kubelet=QUICK, imex_start=0.01)  # type: ignore[arg-type]
    async with hold(run_cluster(settings, finite=ANSWERS)) as running:
        for name in running.gpu_nodes:
            await running.client.merge_patch(Node, name, {"metadata": {"labels": {MACHINE: A4X.machines[0]}}})
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def user(cluster: Cluster, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig of somebody who may edit things of the namespace, and nothing else."""
    api = "rbac.authorization.k8s.io"
    meta = {"name": "ml", "namespace": namespace}
    await cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    # Where roles are aggregated, the first has what the second gives.
    for role in ("edit", "interlace-computedomain-edit"):
        await cluster.apply(
            {
                "apiVersion": f"{api}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": role, "namespace": namespace},
                "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": "ml", "namespace": namespace}],
            }
        )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    accounts = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))
    made = await cluster.client.create(accounts, request, namespace=namespace, name="ml", subresource="token")
    config = yaml.safe_load(cluster.plane.kubeconfig.read_text())
    for entry in config["users"]:
        entry["user"] = {"token": made["status"]["token"]}
    path = tmp_path / "ml.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(autouse=True)
def healthy() -> None:
    ANSWERS.model, ANSWERS.pace = HEALTHY, 0.0
    ANSWERS.asked.clear()


def break_things(**faults: Any) -> None:
    ANSWERS.model = Model(family=A4X, noise=0.001, faults=Faults(**faults))


async def measure(cluster: Cluster, verb: str, *arguments: str, namespace: str, config: Path | None = None) -> Ended:
    env = {"KUBECONFIG": os.fspath(config or cluster.plane.kubeconfig)}
    return await interlace("verify", verb, "--family", "a4x", *arguments, "-n", namespace, env=env, within=4 * WITHIN)


async def left(cluster: Cluster, namespace: str) -> list[str]:
    """What a test may have left in its namespace."""
    found = [
        f"{name} {item['metadata']['name']}"
        for name, kind in OBJECTS.items()
        for item in (await cluster.client.list(untyped(kind), namespace=namespace)).items
        if item["metadata"]["name"] != "kube-root-ca.crt"
    ]
    found += [f"pod {item.metadata.name}" for item in (await cluster.client.list(Pod, namespace=namespace)).items]
    domains = (await cluster.client.list(ComputeDomain, namespace=namespace)).items
    return found + [f"domain {each.metadata.name}" for each in domains if not each.metadata.deletion_timestamp]


async def test_a_user_of_a_namespace_measures_two_nodes_and_leaves_nothing(
    cluster: Cluster, namespace: str, user: Path
) -> None:
    ended = await measure(cluster, "run", "--count", "2", "--json", namespace=namespace, config=user)
    assert ended.code == 0, ended
    document = json.loads(ended.out)
    assert (document["verdict"], document["simulated"]) == ("pass", True)
    assert document["transport"] == "NVLink"
    assert len(document["measured"]["nodes"]) == 2
    assert document["measured"]["runs"][0]["ranks"] == 8
    first = ended.errors.splitlines()
    assert "nodes may not be read" in first[0]
    assert "all_reduce from 1 MiB to 8 GiB over 2 nodes of a4x" in first[1]
    assert "8 GPUs for about" in first[1]
    assert await left(cluster, namespace) == []


async def test_a_fabric_that_fell_back_to_sockets_fails_with_its_cause(cluster: Cluster, namespace: str) -> None:
    break_things(sockets=frozenset({"tray-01"}))
    ended = await measure(cluster, "run", "--nodes", "tray-00,tray-01", namespace=namespace)
    assert ended.code == 1
    assert ended.out.startswith("simulated: no hardware was measured\nfail: ")
    assert "TCP sockets" in ended.out
    assert ANSWERS.asked[0].nodes in {("tray-00", "tray-01"), ("tray-01", "tray-00")}


async def test_wrong_data_fail_although_the_job_failed_with_them(cluster: Cluster, namespace: str) -> None:
    break_things(wrong_data=frozenset({"tray-02"}))
    ended = await measure(cluster, "run", "--nodes", "tray-02,tray-03", "--max", "64M", namespace=namespace)
    assert ended.code == 1, ended
    assert "data arrived wrong" in ended.out
    assert await left(cluster, namespace) == []


async def test_a_test_that_does_not_start_cannot_tell_and_cleans_up(cluster: Cluster, namespace: str) -> None:
    break_things(broken=frozenset({"tray-02"}))
    ended = await measure(cluster, "run", "--nodes", "tray-02,tray-03", namespace=namespace)
    assert ended.code == 3, ended
    assert await left(cluster, namespace) == []


async def test_cordoned_busy_and_unknown_nodes_are_refused_by_name(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(domain("busy", namespace=namespace))
    await cluster.apply(deployment("busy", namespace=namespace, replicas=1, template="busy-channel"))

    def placed() -> str:
        pods = [pod for pod in cluster.pods.items() if pod.metadata.namespace == namespace and pod.ready]
        return pods[0].spec.node_name if pods else ""

    await cluster.signal.until("a busy node", lambda: bool(placed()), within=WITHIN)
    busy = placed()
    cordoned = next(name for name in cluster.gpu_nodes if name != busy)
    await cluster.client.merge_patch(Node, cordoned, {"spec": {"unschedulable": True}})
    try:
        nodes = f"{busy},{cordoned},moon"
        ended = await measure(cluster, "run", "--nodes", nodes, namespace=namespace)
        assert (ended.code, ended.out) == (2, "")
        assert "node moon does not exist" in ended.errors
        assert f"node {cordoned} is cordoned" in ended.errors
        assert f"node {busy} is busy: 4 of its 4 GPUs are taken by {namespace}/busy-" in ended.errors
        ended = await measure(cluster, "run", "--count", "3", namespace=namespace)
        assert ended.code == 2
        assert "3 free nodes of a4x were asked for and there are 2" in ended.errors
        assert ANSWERS.asked == []
    finally:
        await cluster.client.merge_patch(Node, cordoned, {"spec": {"unschedulable": None}})


@asynccontextmanager
async def measuring(
    cluster: Cluster, verb: str, *arguments: str, namespace: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A verb that goes on while the test does something else."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "interlace.cli.main", "verify", verb, "--family", "a4x", *arguments, "-n", namespace),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "KUBECONFIG": os.fspath(cluster.plane.kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def interrupt(process: asyncio.subprocess.Process) -> None:
    """As Ctrl-C does; it must end as one that cleaned up."""
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(WITHIN):
        _, errors = await process.communicate()
    assert process.returncode == 130, errors
    assert b"Traceback" not in errors


async def test_an_interrupted_run_cleans_up(cluster: Cluster, namespace: str) -> None:
    ANSWERS.pace = 60.0  # it would take for ever
    async with measuring(cluster, "run", "--count", "2", namespace=namespace) as process:
        await eventually(lambda: ANSWERS.asked, within=WITHIN, what="the start of the measurement")
        await interrupt(process)
    assert await left(cluster, namespace) == []


async def test_a_baseline_is_kept_and_the_next_run_held_against_it(cluster: Cluster, namespace: str) -> None:
    arguments = ("--nodes", "tray-00,tray-01", "--baseline-map", "kept", "--json")
    first = await measure(cluster, "run", *arguments, namespace=namespace)
    assert first.code == 0, first
    break_things(slow_nodes={"tray-00": 0.9})  # still within the band
    second = await measure(cluster, "run", *arguments, namespace=namespace)
    assert second.code == 1, second
    assert "baseline" in json.loads(second.out)["cause"]
    kept = await cluster.client.get(untyped(OBJECTS["configmaps"]), "kept", namespace=namespace)
    assert len(json.loads(kept["data"]["runs.json"])["runs"]) == 1


async def test_pairs_name_a_slow_node_and_go_on_after_an_interruption(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    break_things(slow_nodes={"tray-03": 0.7})
    path = tmp_path / "journal"

    def kept() -> list[str]:
        return path.read_text().splitlines() if path.exists() else []

    arguments = ("--journal", os.fspath(path), "--json")
    async with measuring(cluster, "pairs", *arguments, namespace=namespace) as process:
        await eventually(lambda: len(kept()) >= 3, within=4 * WITHIN, what="two measured pairs")
        await interrupt(process)
    assert await left(cluster, namespace) == []
    before = kept()
    ended = await measure(cluster, "pairs", *arguments, "--resume", namespace=namespace)
    assert ended.code == 1, ended
    document = json.loads(ended.out)
    assert document["simulated"] is True
    named = {(each["kind"], tuple(each["names"])) for each in document["findings"]}
    assert named == {("node", ("tray-03",))}
    assert len(document["pairs"]) == 6
    assert kept()[: len(before)] == before
    readings = [json.loads(line) for line in kept()[1:]]
    keys = {(*each["match"].values(), each.get("stage", 0), each.get("attempt", 0)) for each in readings}
    assert len(keys) == len(readings) == document["measurements"]
    assert await left(cluster, namespace) == []
    refused = await measure(cluster, "pairs", *arguments, namespace=namespace)
    assert (refused.code, refused.out) == (2, "")
    assert "--resume" in refused.errors

"""``interlace domains`` as a user runs it, against a cluster in which domains form, wait and go."""

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
from interlace.api.meta import Resource
from interlace.kube.untyped import untyped
from interlace.sim.apiserver import ApiServer
from interlace.sim.cluster import Cluster
from testbed import build
from testbed.programs import cache_root
from tests.cluster.conftest import run
from tests.cluster.workloads import WITHIN, deployment, domain, nodes_ready, pods
from tests.holding import hold
from tests.unit.cli.programs import Ended, interlace

pytestmark = pytest.mark.asyncio(loop_scope="module")

_ACCOUNTS = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with run("embedded", nodes=3) as found:
        yield found


async def ask(cluster: Cluster, verb: str, *arguments: str, namespace: str, kubeconfig: Path | None = None) -> Ended:
    env = {"KUBECONFIG": os.fspath(kubeconfig or cluster.plane.kubeconfig)}
    return await interlace("domains", verb, *arguments, "-n", namespace, env=env, within=WITHIN)


@asynccontextmanager
async def asking(
    cluster: Cluster, verb: str, *arguments: str, namespace: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A verb that goes on while the test does something else."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-u",
        "-m",
        "interlace.cli.main",
        "domains",
        verb,
        *arguments,
        "-n",
        namespace,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "KUBECONFIG": os.fspath(cluster.plane.kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WITHIN):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def a_line(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None
    return (await stream.readline()).decode().rstrip("\n")


async def form(cluster: Cluster, namespace: str, *, name: str = "cd", size: int = 2) -> None:
    """A domain with ``size`` ready nodes."""
    await cluster.apply(domain(name, namespace=namespace))
    await cluster.apply(deployment(name, namespace=namespace, replicas=size, template=f"{name}-channel"))
    await cluster.signal.until(
        "a formed domain", lambda: len(nodes_ready(cluster, name, namespace=namespace)) == size, within=WITHIN
    )


async def stuck(cluster: Cluster, namespace: str) -> None:
    """A domain on all nodes whose job has one pod more than there are nodes, told by the scheduler."""
    await cluster.apply(domain("cd", namespace=namespace))
    await cluster.apply(deployment("cd", namespace=namespace, replicas=4, template="cd-channel"))

    def told() -> bool:
        waiting = [pod for pod in pods(cluster, "cd", namespace=namespace) if not pod.spec.node_name]
        return len(nodes_ready(cluster, "cd", namespace=namespace)) == 3 and any(
            item.type == "PodScheduled" and item.message for pod in waiting for item in pod.status.conditions
        )

    await cluster.signal.until("a pod without a node", told, within=WITHIN)


async def account(cluster: Cluster, namespace: str, folder: Path, *, rules: list[dict[str, Any]]) -> Path:
    """A kubeconfig of a ServiceAccount that has these rights in its namespace and none elsewhere."""
    await cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ml", "namespace": namespace}}
    )
    api = "rbac.authorization.k8s.io"
    meta = {"name": "ml", "namespace": namespace}
    await cluster.apply({"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": rules})
    await cluster.apply(
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": "ml"},
            "subjects": [{"kind": "ServiceAccount", "name": "ml", "namespace": namespace}],
        }
    )
    made = await cluster.client.create(
        _ACCOUNTS,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        namespace=namespace,
        name="ml",
        subresource="token",
    )
    config = yaml.safe_load(cluster.plane.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": made["status"]["token"]}
    path = folder / "ml.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def rule(group: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["get", "list", "watch"]}


async def test_a_ready_domain_is_listed_shown_and_explained(cluster: Cluster, namespace: str) -> None:
    await form(cluster, namespace)
    listed = await ask(cluster, "list", namespace=namespace)
    assert listed.code == 0
    assert [line.split()[:3] for line in listed.out.splitlines()] == [["NAME", "READY", "NODES"], ["cd", "True", "2/2"]]
    everywhere = await ask(cluster, "list", "-A", namespace="default")
    assert [namespace, "cd", "True", "2/2"] in [line.split()[:4] for line in everywhere.out.splitlines()]
    shown = await ask(cluster, "show", "cd", namespace=namespace)
    assert shown.code == 0
    members = set(nodes_ready(cluster, "cd", namespace=namespace))
    rows = [line.split() for line in shown.out.splitlines()]
    assert {row[0] for row in rows if row and row[0] in members and row[3] == "Ready"} == members
    explained = await ask(cluster, "explain", "cd", namespace=namespace)
    assert (explained.code, explained.errors) == (0, "")
    for pod in pods(cluster, "cd", namespace=namespace):
        (row,) = [line for line in explained.out.splitlines() if line.startswith(pod.metadata.name)]
        assert pod.spec.node_name in row
        assert "ready for" in row


async def test_programs_get_one_document_and_nothing_else(cluster: Cluster, namespace: str) -> None:
    await form(cluster, namespace)
    (entry,) = json.loads((await ask(cluster, "list", "--json", namespace=namespace)).out)["domains"]
    assert (entry["name"], entry["ready"], entry["nodes"], entry["nodes_ready"]) == ("cd", True, 2, 2)
    for verb in ("show", "explain"):
        told = await ask(cluster, verb, "cd", "--json", namespace=namespace)
        document = json.loads(told.out)
        assert (told.code, told.errors, document["unreadable"]) == (0, "", [])
        assert {member["name"] for member in document["members"]} == {pod["node"] for pod in document["pods"]}
        assert all(link["health"] == "ok" for pod in document["pods"] for link in pod["chain"])
        assert "Formed" in {event["reason"] for event in document["events"]}


async def test_a_waiting_pod_is_explained_with_the_words_of_the_scheduler(cluster: Cluster, namespace: str) -> None:
    await stuck(cluster, namespace)
    explained = await ask(cluster, "explain", "cd", namespace=namespace)
    assert explained.code == 1
    (waiting,) = [pod for pod in pods(cluster, "cd", namespace=namespace) if not pod.spec.node_name]
    lines = explained.out.splitlines()
    at = lines.index(f"{waiting.metadata.name} waits for a node")
    assert lines[at + 1].startswith(f"  … Pod {waiting.metadata.name}: 0/4 nodes are available")
    assert lines[at + 2].endswith("not allocated by the scheduler yet")
    document = json.loads((await ask(cluster, "explain", "cd", "--json", namespace=namespace)).out)
    assert [pod["pod"] for pod in document["pods"] if pod["waits_for"]] == [waiting.metadata.name]


async def test_waiting_ends_when_the_domain_is_ready(cluster: Cluster, namespace: str) -> None:
    async with asking(cluster, "wait", "cd", "--nodes", "2", "--json", namespace=namespace) as process:
        said = await a_line(process.stderr)
        assert said == f"interlace: ComputeDomain {namespace}/cd does not exist yet; waiting for it"
        await form(cluster, namespace)
        out, errors = await process.communicate()
    assert process.returncode == 0, errors
    assert json.loads(out)["nodes_ready"] == 2


async def test_waiting_ends_with_4_when_the_time_is_over(cluster: Cluster, namespace: str) -> None:
    await form(cluster, namespace, size=1)
    ended = await ask(cluster, "wait", "cd", "--nodes", "3", "--timeout", "0.5", namespace=namespace)
    assert (ended.code, ended.out) == (4, "")
    assert "was not Ready with 3 nodes within 0.5 s (cd: Ready, 1/1 nodes Ready." in ended.errors
    assert f"`interlace domains explain cd -n {namespace}` tells why" in ended.errors
    never = await ask(cluster, "wait", "nobody", "--timeout", "0.5", namespace=namespace)
    assert never.code == 4
    assert f"ComputeDomain {namespace}/nobody did not appear within 0.5 s" in never.errors


async def test_a_domain_that_is_deleted_ends_watching_with_0_and_waiting_with_1(
    cluster: Cluster, namespace: str
) -> None:
    await form(cluster, namespace, size=1)
    async with (
        asking(cluster, "watch", "cd", namespace=namespace) as watching,
        asking(cluster, "watch", "cd", "--json", namespace=namespace) as programmatic,
        asking(cluster, "wait", "cd", "--nodes", "3", namespace=namespace) as waiting,
    ):
        assert (await a_line(watching.stdout)).startswith("cd: Ready, 1/1 nodes Ready.")
        assert json.loads(await a_line(programmatic.stdout))["ready"]
        assert (await a_line(waiting.stderr)).startswith("interlace: cd: Ready, 1/1 nodes Ready.")
        await cluster.client.delete(ComputeDomain, "cd", namespace=namespace)
        watched, _ = await watching.communicate()
        documents, _ = await programmatic.communicate()
        _, said = await waiting.communicate()
    assert (watching.returncode, watched.decode().splitlines()[-1]) == (0, "cd was deleted")
    last = json.loads(documents.decode().splitlines()[-1])
    assert (programmatic.returncode, last) == (0, {"namespace": namespace, "name": "cd", "deleted": True})
    assert waiting.returncode == 1
    assert said.decode().endswith(f"ComputeDomain {namespace}/cd was deleted while it was waited for\n")


async def test_ctrl_c_ends_watching_with_130(cluster: Cluster, namespace: str) -> None:
    await form(cluster, namespace, size=1)
    async with asking(cluster, "watch", "cd", namespace=namespace) as process:
        assert (await a_line(process.stdout)).startswith("cd: Ready")
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
    assert (process.returncode, errors) == (130, b"")


async def test_a_name_that_does_not_exist_is_refused(cluster: Cluster, namespace: str) -> None:
    for verb in ("show", "explain"):
        ended = await ask(cluster, verb, "nobody", namespace=namespace)
        assert (ended.code, ended.out) == (2, "")
        assert ended.errors == (
            f"interlace: ComputeDomain {namespace}/nobody does not exist; see `interlace domains list -A`\n"
        )
    ended = await ask(cluster, "list", namespace=namespace)
    assert (ended.code, ended.out) == (0, "")
    assert f"no ComputeDomains in namespace {namespace}" in ended.errors


async def test_a_user_without_any_right_is_told_what_to_ask_for(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    await form(cluster, namespace, size=1)
    kubeconfig = await account(cluster, namespace, tmp_path, rules=[])
    for verb, *arguments in (
        ["list"],
        ["list", "-A"],
        ["show", "cd"],
        ["explain", "cd"],
        ["wait", "cd"],
        ["watch", "cd"],
    ):
        ended = await ask(cluster, verb, *arguments, namespace=namespace, kubeconfig=kubeconfig)
        assert (ended.code, ended.out) == (3, ""), verb
        assert f"system:serviceaccount:{namespace}:ml" in ended.errors
        assert "ask for get, list and watch on computedomains.resource.nvidia.com" in ended.errors


async def test_a_user_with_rights_in_a_namespace_alone_sees_what_these_allow(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    await form(cluster, namespace, size=1)
    rules = [rule("resource.nvidia.com", "computedomains"), rule("resource.k8s.io", "resourceclaims"), rule("", "pods")]
    kubeconfig = await account(cluster, namespace, tmp_path, rules=rules)
    explained = await ask(cluster, "explain", "cd", "--json", namespace=namespace, kubeconfig=kubeconfig)
    document = json.loads(explained.out)
    assert explained.code == 0
    assert set(document["unreadable"]) == {"computedomaincliques", "resourceslices", "events"}
    (pod,) = document["pods"]
    health = {link["step"]: link["health"] for link in pod["chain"]}
    assert health.items() >= {"pod": "ok", "claim": "ok", "node": "unknown", "map": "unknown", "channel": "ok"}.items()
    shown = await ask(cluster, "show", "cd", namespace=namespace, kubeconfig=kubeconfig)
    assert "You may not read computedomaincliques, resourceslices, events" in shown.out


async def test_connections_that_cannot_be_are_said_in_one_sentence(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    text = cluster.plane.kubeconfig.read_text()
    config = yaml.safe_load(text)
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    closed, broken, denied = (tmp_path / name for name in ("closed", "broken", "denied"))
    closed.write_text(yaml.safe_dump(config))
    broken.write_text("a: [")
    config = yaml.safe_load(text)
    config["users"][0]["user"] = {"token": "stranger"}
    denied.write_text(yaml.safe_dump(config))
    for path, arguments, code, says in (
        (closed, [], 4, "cannot connect to https://127.0.0.1:9"),
        (broken, [], 2, "not YAML"),
        (denied, [], 4, "401"),
        (tmp_path / "none", [], 2, f"no kubeconfig at {tmp_path / 'none'}"),
        (None, ["--context", "moon"], 2, "no context 'moon'"),
        (None, ["--kubeconfig", os.fspath(tmp_path / "none")], 2, "No such file"),
    ):
        ended = await ask(cluster, "list", *arguments, namespace=namespace, kubeconfig=path)
        assert (ended.code, ended.out, ended.errors.count("\n")) == (code, "", 1), ended
        assert says in ended.errors


async def test_a_cluster_without_interlace_is_told_how_to_install_it(tmp_path: Path) -> None:
    async with hold(ApiServer(state_dir=tmp_path)) as server:
        for verb, *arguments in (["list"], ["show", "cd"], ["wait", "cd"]):
            env = {"KUBECONFIG": os.fspath(server.kubeconfig)}
            ended = await interlace("domains", verb, *arguments, env=env, within=WITHIN)
            assert (ended.code, ended.out) == (2, "")
            assert "install them with `interlace manifests | kubectl apply --server-side -f -`" in ended.errors


async def test_kubectl_runs_the_same_command(cluster: Cluster, namespace: str) -> None:
    programs = await build.built(cache_root())
    process = await asyncio.create_subprocess_exec(
        programs.path("kubectl"),
        "interlace",
        "domains",
        "list",
        "-n",
        namespace,
        env={
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": os.fspath(cluster.plane.kubeconfig),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(WITHIN):
        _, errors = await process.communicate()
    assert process.returncode == 0
    assert f"no ComputeDomains in namespace {namespace}" in errors.decode()

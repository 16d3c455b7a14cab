"""``interlace manifests status`` against an API server with nodes, Pods and networks that were put there."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from interlace.api.meta import Resource
from interlace.cli.manifests_status import NETWORKS, NODES, PARAMETERS, PODS, look
from interlace.fabric.family import find
from interlace.kube.client import Client
from interlace.kube.untyped import untyped
from interlace.sim.apiserver import ApiServer
from tests.network_kinds import network_crds
from tests.unit.cli.programs import Ended, interlace
from tests.waiting import eventually

MEGA = find("a3-mega")
CRDS = untyped(Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False))
READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(embedded_plane: ApiServer) -> AsyncIterator[Client]:
    """A cluster with two healthy A3 Mega nodes."""
    config = embedded_plane.credentials("admin", groups=["system:masters"])
    async with Client(config, user_agent="test", qps=0) as client:
        account = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))
        await client.create(account, {"metadata": {"name": "default"}}, namespace="kube-system")
        for crd in network_crds():
            await client.create(CRDS, crd)

        async def served() -> bool:
            await client.list(NETWORKS)
            await client.list(PARAMETERS)
            return True

        await eventually(lambda: _quiet(served()), within=15, what="the kinds of networking.gke.io are served")
        for name in ("a", "b"):
            await plant_node(client, name)
            await plant_pod(client, f"installer-{name}", name, label="nccl-tcpxo-installer")
            await plant_pod(client, f"injector-{name}", name, label="device-injector")
        for network in MEGA.networks:
            for kind, spec in (
                (NETWORKS, {"type": "Device"}),
                (PARAMETERS, {"vpc": "v", "vpcSubnet": "s", "deviceMode": "NetDevice"}),
            ):
                await client.create(kind, {"metadata": {"name": network.name}, "spec": spec})
                await client.merge_patch(kind, network.name, {"status": READY}, subresource="status")
        yield client


async def _quiet(looking: Any) -> bool:
    from interlace.kube.errors import KubeError

    try:
        return bool(await looking)
    except KubeError:
        return False


async def plant_node(client: Client, name: str) -> None:
    labels = {"node.kubernetes.io/instance-type": "a3-megagpu-8g"}
    await client.create(NODES, {"metadata": {"name": name, "labels": labels}})
    allocatable = {f"networking.gke.io.networks/{network.name}": "1" for network in MEGA.networks}
    status = {**READY, "allocatable": {"nvidia.com/gpu": "8", **allocatable}}
    await client.merge_patch(NODES, name, {"status": status}, subresource="status")


async def plant_pod(client: Client, name: str, node: str, *, label: str) -> None:
    image = MEGA.software("tcpxo-1.0.15").plugin
    body = {
        "metadata": {"name": name, "labels": {"name": label}},
        "spec": {
            "nodeName": node,
            "initContainers": [{"name": "install", "image": image}],
            "containers": [{"name": "rest", "image": image}],
        },
    }
    await client.create(PODS, body, namespace="kube-system")
    await client.merge_patch(PODS, name, {"status": READY}, namespace="kube-system", subresource="status")


async def tell_pod(client: Client, name: str, *, ready: bool) -> None:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    patch = {"status": {"conditions": [condition]}}
    await client.merge_patch(PODS, name, patch, namespace="kube-system", subresource="status")


async def status(plane: ApiServer, *arguments: str) -> Ended:
    return await interlace("manifests", "status", "--kubeconfig", str(plane.kubeconfig), *arguments)


async def test_a_cluster_with_everything_is_good(embedded_plane: ApiServer, admin: Client) -> None:
    told = await status(embedded_plane)
    assert (told.code, told.errors.count("\n")) == (0, 1)
    assert "a3-mega: nodes 2/2, gpus 2/2, networks 8/8, parameters 8/8, nics 2/2" in told.errors
    lines = told.out.splitlines()
    assert lines[0] == "a3-mega: all is there"
    assert [line.split()[:3] for line in lines[2:]] == [
        ["ok", "nodes", "2/2"],
        ["ok", "gpus", "2/2"],
        ["ok", "networks", "8/8"],
        ["ok", "parameters", "8/8"],
        ["ok", "nics", "2/2"],
        ["ok", "installer", "2/2"],
        ["ok", "injector", "2/2"],
    ]


async def test_what_is_not_ready_makes_the_answer_bad_and_is_in_the_document(
    embedded_plane: ApiServer, admin: Client
) -> None:
    gone = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "GNPParamsNotReady"}]}}
    await admin.merge_patch(NETWORKS, "vpc3", gone, subresource="status")
    try:
        told = await status(embedded_plane, "--family", "a3-mega", "--json")
    finally:
        await admin.merge_patch(NETWORKS, "vpc3", {"status": READY}, subresource="status")
    assert told.code == 1
    (family,) = json.loads(told.out)["families"]
    assert (family["family"], family["ok"]) == ("a3-mega", False)
    (bad,) = [check for check in family["checks"] if check["state"] != "ok"]
    assert (bad["name"], bad["says"]) == ("networks", "vpc3 is not Ready (GNPParamsNotReady)")
    assert bad["remedy"]


async def test_it_waits_until_all_is_there(embedded_plane: ApiServer, admin: Client) -> None:
    await tell_pod(admin, "installer-b", ready=False)
    process = await asyncio.create_subprocess_exec(
        *command(embedded_plane, "--timeout", "100"), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    async with asyncio.timeout(60):
        line = (await process.stderr.readline()).decode()
        assert "installer 1/2" in line
        await tell_pod(admin, "installer-b", ready=True)
        out, errors = await process.communicate()
    assert process.returncode == 0
    assert out.decode().startswith("a3-mega: all is there")
    assert "installer 2/2" in errors.decode()


async def test_an_interrupt_ends_the_wait_with_130(embedded_plane: ApiServer, admin: Client) -> None:
    arguments = command(embedded_plane, "--family", "a4", "--timeout", "100")
    process = await asyncio.create_subprocess_exec(
        *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    async with asyncio.timeout(60):
        assert "a4: nodes 0/1" in (await process.stderr.readline()).decode()
        process.terminate()
        out, errors = await process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in errors


async def test_a_family_that_the_cluster_has_no_nodes_of_is_not_ready(embedded_plane: ApiServer, admin: Client) -> None:
    told = await status(embedded_plane, "--family", "a3-ultragpu-8g")
    assert told.code == 1
    assert "bad" in told.out
    assert "no node with a3-ultragpu-8g; make the node pool" in told.out


async def test_names_of_networks_may_differ(embedded_plane: ApiServer, admin: Client) -> None:
    told = await status(embedded_plane, "--family", "a3-mega", "--network-map", "vpc1=rail1")
    assert told.code == 1
    assert "rail1 is missing" in told.out


async def test_a_user_without_rights_gets_no_answer(embedded_plane: ApiServer, admin: Client) -> None:
    async with Client(embedded_plane.credentials("nobody"), user_agent="test", qps=0) as client:
        seen = await look(client, MEGA, names={}, system="interlace-system")
    assert not seen.ok
    assert {check.state for check in seen.checks} == {"unknown"}


def command(plane: ApiServer, *arguments: str) -> list[str]:
    verb = ["manifests", "status", "--kubeconfig", str(plane.kubeconfig)]
    return [sys.executable, "-m", "interlace.cli.main", *verb, *arguments]


async def test_on_a_terminal_the_line_changes_in_place(embedded_plane: ApiServer, admin: Client) -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = await asyncio.create_subprocess_exec(
        *command(embedded_plane, "--json"), stdout=asyncio.subprocess.PIPE, stderr=theirs, env=env
    )
    os.close(theirs)
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    shown = b""
    while True:
        try:
            shown += (piece := os.read(ours, 65536))
        except OSError:  # Linux: nobody has the other end open any more
            break
        if not piece:
            break
    os.close(ours)
    assert process.returncode == 0
    assert json.loads(out)["families"][0]["ok"]
    assert b"\x1b[?25l" in shown
    assert b"\x1b[2K" in shown
    assert b"interlace: " not in shown

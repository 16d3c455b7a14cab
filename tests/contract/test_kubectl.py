"""An ordinary kubectl: the same commands, with the same outcome, on both servers."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest_asyncio

from interlace.sim.plane import Plane
from testbed import build
from testbed.programs import cache_root
from tests.contract.space import Space, a_space, deployment, domain, our_kinds
from tests.contract.wire import admin

LIMIT = 30.0


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a namespace of its own."""

    program: Path
    space: Space
    home: Path

    async def fails(self, *words: str, stdin: object = None) -> str:
        """What it complains about."""
        code, _, complaint = await self.run(words, stdin)
        assert code != 0, f"kubectl {' '.join(words)} should have failed"
        return complaint

    async def __call__(self, *words: str, stdin: object = None) -> str:
        """What it prints; it must end well."""
        code, output, complaint = await self.run(words, stdin)
        assert code == 0, f"kubectl {' '.join(words)}: {complaint}"
        return output

    async def run(self, words: tuple[str, ...], stdin: object) -> tuple[int, str, str]:
        """Exit status, output and complaints."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            f"--kubeconfig={self.space.plane.kubeconfig}",
            f"--namespace={self.space.name}",
            f"--cache-dir={self.home}",
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": str(self.home)},
        )
        body = b"" if stdin is None else msgspec.json.encode(stdin)
        async with asyncio.timeout(LIMIT):
            output, complaint = await process.communicate(body)
        assert process.returncode is not None
        return process.returncode, output.decode(), complaint.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(plane: Plane) -> Plane:
    async with admin(plane) as wire:
        await our_kinds(wire)
    return plane


@pytest_asyncio.fixture(loop_scope="module")
async def kubectl(served: Plane, tmp_path: Path) -> AsyncIterator[Kubectl]:
    programs = await build.built(cache_root())
    async with a_space(served) as space:
        yield Kubectl(programs.path("kubectl"), space, tmp_path)


async def test_objects_are_created_by_generators(kubectl: Kubectl) -> None:
    await kubectl("create", "configmap", "c", "--from-literal=k=v")
    await kubectl("create", "secret", "generic", "s", "--from-literal=k=v")
    await kubectl("create", "deployment", "d", "--image=docker.io/library/busybox:1.37", "--replicas=0", "--port=80")
    await kubectl("create", "role", "r", "--verb=get", "--resource=pods")
    await kubectl("create", "rolebinding", "b", "--role=r", f"--serviceaccount={kubectl.space.name}:default")
    assert await kubectl("get", "secret", "s", "-o", "jsonpath={.data.k}") == "dg=="
    found = msgspec.json.decode(await kubectl("get", "deployment", "d", "-o", "json"))
    assert found["spec"]["replicas"] == 0
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert (container["imagePullPolicy"], container["terminationMessagePath"]) == (
        "IfNotPresent",
        "/dev/termination-log",
    )
    subject = await kubectl("get", "rolebinding", "b", "-o", "jsonpath={.subjects[0].kind}/{.subjects[0].name}")
    assert subject == "ServiceAccount/default"


async def test_a_manifest_is_applied_changed_and_shown(kubectl: Kubectl) -> None:
    assert "created" in await kubectl("apply", "-f", "-", stdin=deployment("d"))
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=deployment("d"))
    assert "configured" in await kubectl("apply", "-f", "-", stdin=deployment("d", minReadySeconds=5))
    assert await kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.minReadySeconds}") == "5"
    shown = await kubectl("get", "deployments")
    assert re.search(r"NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nd +0/0 +0 +0 +\d+s", shown)
    assert "0 desired" in await kubectl("describe", "deployment", "d")


async def test_a_list_is_applied_as_one(kubectl: Kubectl) -> None:
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]
    printed = await kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})
    assert printed == "configmap/a created\nconfigmap/b created\n"


async def test_server_side_apply_reports_conflicts(kubectl: Kubectl) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}
    assert "serverside-applied" in await kubectl("apply", "--server-side", "-f", "-", stdin=body)
    other = {**body, "data": {"k": "w"}}
    words = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    assert 'conflict with "kubectl": .data.k' in await kubectl.fails(*words, stdin=other)
    assert "serverside-applied" in await kubectl(*words, "--force-conflicts", stdin=other)


async def test_a_mistyped_field_is_refused_before_anything_is_stored(kubectl: Kubectl) -> None:
    body = domain("d", colour="red")
    assert 'unknown field "spec.colour"' in await kubectl.fails("apply", "-f", "-", stdin=body)
    built_in = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dta": {}}
    assert 'unknown field "dta"' in await kubectl.fails("apply", "-f", "-", stdin=built_in)
    assert await kubectl("get", "computedomains,configmaps", "--field-selector=metadata.name!=kube-root-ca.crt") == ""


async def test_our_kinds_are_explained_listed_waited_for_and_deleted(kubectl: Kubectl) -> None:
    assert "numNodes\t<integer>" in await kubectl("explain", "computedomain.spec")
    await kubectl("apply", "-f", "-", stdin=domain("d"))
    shown = await kubectl("get", "computedomains")
    assert re.search(r"^NAME +STATUS", shown)
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    patch = msgspec.json.encode({"status": {"status": "Ready", "conditions": [condition]}}).decode()
    await kubectl("patch", "computedomain", "d", "--subresource=status", "--type=merge", "-p", patch)
    assert "condition met" in await kubectl("wait", "--for=condition=Ready", "computedomain/d", "--timeout=10s")
    assert "deleted" in await kubectl("delete", "computedomain", "d", "--timeout=10s")
    assert "not found" in await kubectl.fails("get", "computedomain", "d")


async def test_labels_scale_and_rights_work(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=deployment("d"))
    await kubectl("label", "deployment", "d", "team=red")
    assert (await kubectl("get", "deployments", "-l", "team=red", "-o", "name")).strip() == "deployment.apps/d"
    await kubectl("scale", "deployment", "d", "--replicas=3")
    assert await kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}") == "3"
    assert (await kubectl("auth", "can-i", "create", "pods")).strip() == "yes"
    assert "no" in (await kubectl.run(("auth", "can-i", "create", "pods", "--as=joe"), None))[1]
    token = (await kubectl("create", "token", "default")).strip()
    assert token.count(".") == 2


async def test_a_node_is_cordoned_and_drained(kubectl: Kubectl) -> None:
    name = f"{kubectl.space.name}-node"
    await kubectl.space.wire("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    await kubectl("cordon", name)
    assert "SchedulingDisabled" in await kubectl("get", "node", name)
    assert "drained" in await kubectl("drain", name, "--timeout=10s")
    await kubectl("uncordon", name)
    assert "SchedulingDisabled" not in await kubectl("get", "node", name)

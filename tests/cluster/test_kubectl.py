"""An ordinary kubectl against the embedded cluster that ``interlace demo --keep`` leaves up."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from interlace.sim.kubelet.process import find_processes
from testbed import build
from testbed.programs import cache_root
from tests.holding import hold

pytestmark = pytest.mark.asyncio(loop_scope="module")

MORE = """
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: second, namespace: default}
spec: {channel: {resourceClaimTemplate: {name: second-channel}}}
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """The cluster, and kubectl pointed at it."""

    kubectl: Path
    kubeconfig: Path
    demo: asyncio.subprocess.Process

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self.kubectl,
            *arguments,
            env={"KUBECONFIG": os.fspath(self.kubeconfig), "PATH": os.environ["PATH"], "HOME": os.fspath(self.home)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    @property
    def home(self) -> Path:
        return self.kubeconfig.parent

    async def run(self, *arguments: str, text: str = "") -> str:
        """What kubectl prints; it must end well."""
        process = await self.start(*arguments)
        async with asyncio.timeout(60):
            out, errors = await process.communicate(text.encode())
        assert process.returncode == 0, errors.decode()
        return out.decode()


@asynccontextmanager
async def _keep() -> AsyncIterator[Kept]:
    programs = await build.built(cache_root())
    demo = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "interlace.cli.main",
        "demo",
        "--keep",
        "--nodes",
        "3",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert demo.stdout is not None
    seen = []
    try:
        async with asyncio.timeout(90):
            while line := (await demo.stdout.readline()).decode():
                seen.append(line)
                if found := re.search(r"KUBECONFIG=(\S+)", line):
                    yield Kept(programs.path("kubectl"), Path(found[1]), demo)
                    break
            else:
                raise AssertionError("the demo ended early:\n" + "".join(seen))
    finally:
        if demo.returncode is None:
            demo.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            await demo.wait()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kept() -> AsyncIterator[Kept]:
    async with hold(_keep()) as running:
        yield running


async def test_get_prints_the_columns_of_the_kind(kept: Kept) -> None:
    lines = (await kept.run("get", "computedomains")).splitlines()
    assert lines[0].split()[:2] == ["NAME", "STATUS"]
    assert "Ready" in lines[1]
    nodes = await kept.run("get", "nodes", "-o", "wide")
    assert len(nodes.splitlines()) == 5


async def test_get_as_json_is_the_object(kept: Kept) -> None:
    listing = json.loads(await kept.run("get", "computedomains", "-A", "-o", "json"))
    (found,) = [item for item in listing["items"] if item["metadata"]["name"] != "second"]
    assert found["status"]["status"] == "Ready"
    assert len(found["status"]["nodes"]) == 3


async def test_describe_shows_conditions_and_events(kept: Kept) -> None:
    text = await kept.run("describe", "computedomains")
    assert "Within One Clique" in text or "WithinOneClique" in text
    assert "Formed" in text


async def test_explain_tells_what_a_field_is(kept: Kept) -> None:
    text = await kept.run("explain", "computedomain.spec.channel.allocationMode")
    assert "ENUM" in text or "enum" in text
    assert "All" in text


async def test_a_domain_is_applied_watched_awaited_and_deleted(kept: Kept) -> None:
    watch = await kept.start("get", "computedomains", "--watch", "--output-watch-events")
    assert watch.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert (await watch.stdout.readline()).startswith(b"EVENT")
            assert (await watch.stdout.readline()).startswith(b"ADDED")
            await kept.run("apply", "--server-side", "-f", "-", text=MORE)
            await kept.run("wait", "--for=condition=Ready", "computedomain/second", "--timeout=30s")
            await kept.run("delete", "computedomain", "second")
            seen: list[str] = []
            while not any(line.startswith("DELETED") and "second" in line for line in seen):
                seen.append((await watch.stdout.readline()).decode())
        assert any(line.startswith("ADDED") and "second" in line for line in seen)
    finally:
        watch.kill()
        await watch.communicate()
    assert "second" not in await kept.run("get", "computedomains", "-o", "name")


async def test_an_invalid_domain_is_refused_with_the_path_of_the_field(kept: Kept) -> None:
    process = await kept.start("apply", "--server-side", "-f", "-")
    async with asyncio.timeout(30):
        _, errors = await process.communicate(
            MORE.replace("resourceClaimTemplate: {name: second-channel}", "").encode()
        )
    assert process.returncode != 0
    assert "spec.channel.resourceClaimTemplate" in errors.decode()


async def test_ctrl_c_takes_everything_down(kept: Kept) -> None:
    root = kept.kubeconfig.parents[1]
    assert root.exists()
    kept.demo.send_signal(signal.SIGINT)
    async with asyncio.timeout(30):
        await kept.demo.wait()
    assert kept.demo.returncode == 0
    assert not root.exists()
    assert find_processes(root) == []

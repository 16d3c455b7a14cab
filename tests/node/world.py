"""Real nodes with Interlace installed from its manifests: what the tests of this tier stand on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlace.api.meta import Resource
from interlace.kube.client import Client
from interlace.kube.untyped import apply_manifest, untyped
from interlace.manifests import manifests
from testbed import build, images
from testbed.flags import Settings
from testbed.node import PAUSE_IMAGE, Node, NodeSettings, run_nodes
from testbed.plane import ControlPlane
from testbed.programs import CONTROL_PLANE, NODE, cache_root
from tests.node import gpus
from tests.node.machine import read_checkpoint, specs
from tests.waiting import eventually

NAMESPACE = "interlace-system"
OWN_IMAGE = "localhost/interlace:test"
WORKLOAD_IMAGE = "localhost/testbed/workload:1"
CLIQUE = "8f6d1d2e-5b1c-4f3a-9e57-3c1d2a4b5c6d.1"
GPUS = 4
WITHIN = 120.0
"""Seconds that a state may take on a busy machine."""

POD = untyped(Resource("", "v1", "pods", "Pod", True))
NODES = untyped(Resource("", "v1", "nodes", "Node", False))
DEPLOYMENT = untyped(Resource("apps", "v1", "deployments", "Deployment", True))
DAEMON_SET = untyped(Resource("apps", "v1", "daemonsets", "DaemonSet", True))
EVENT = untyped(Resource("", "v1", "events", "Event", True))
_NAMESPACE = untyped(Resource("", "v1", "namespaces", "Namespace", False))
_ACCOUNT = untyped(Resource("", "v1", "serviceaccounts", "ServiceAccount", True))
SLICE = untyped(Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False))
_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A control plane and real nodes."""

    plane: ControlPlane
    client: Client
    nodes: dict[str, Node]
    major: int
    """Of the channel devices: no driver has it."""
    logs: Path
    devices: dict[str, AsyncExitStack] = field(default_factory=dict)

    async def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply."""
        return await apply_manifest(self.client, manifest, manager="platform-engineer")

    async def pods(self, namespace: str, *, labels: str = "") -> list[dict[str, Any]]:
        """Pods of a namespace."""
        return list((await self.client.list(POD, namespace=namespace, labels=labels)).items)

    async def offer_gpus(self, node: Node) -> None:
        """Start the node's device plugin, after kubelet (again)."""
        if (earlier := self.devices.pop(node.name, None)) is not None:
            await earlier.aclose()
        stack = AsyncExitStack()
        await eventually(lambda: gpus.is_asked_for(node), within=WITHIN, what="kubelet's socket for device plugins")
        await stack.enter_async_context(gpus.device_plugin(node, gpus=GPUS))
        self.devices[node.name] = stack

    async def execute(self, pod: dict[str, Any], *command: str, container: int = 0) -> str:
        """Run a command in a container of the Pod, as ``kubectl exec`` would; its standard output."""
        status = pod["status"]["containerStatuses"][container]
        identity = status["containerID"].removeprefix("containerd://")
        node = self.nodes[pod["spec"]["nodeName"]]
        return await node.ctr("tasks", "exec", "--exec-id", f"test-{next(_numbers)}", identity, *command)

    async def until_ready(
        self, namespace: str, *, labels: str, count: int, within: float = WITHIN
    ) -> list[dict[str, Any]]:
        """The Pods, once exactly ``count`` are there and all are Ready."""

        found: list[dict[str, Any]] = []

        async def look() -> bool:
            found[:] = await self.pods(namespace, labels=labels)
            states = {pod["metadata"]["name"]: _state(pod) for pod in found}
            assert list(states.values()) == ["Ready"] * count, await self._explain(namespace, states)
            return True

        await eventually(look, within=within, every=0.1, what=f"{count} ready Pods {labels}")
        return found

    async def _explain(self, namespace: str, states: dict[str, str]) -> str:
        said = (await self.client.list(EVENT, namespace=namespace)).items
        lines = [f"{event['involvedObject']['name']}: {event.get('message', '')}" for event in said[-6:]]
        return f"{states}; events: {lines}"


def _state(pod: dict[str, Any]) -> str:
    conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", [])}
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return "Ready" if conditions.get("Ready") == "True" else str(pod.get("status", {}).get("phase", "new"))


def installation() -> Iterator[dict[str, Any]]:
    """What is installed: ``deploy/`` with our local image, one controller, and stand-ins for files of /proc."""
    for one in manifests(image=OWN_IMAGE, replicas=1, driver_root=gpus.DRIVER_ROOT):
        if one["kind"] == "DaemonSet" and one["metadata"]["name"] == "interlace-agent":
            gpus.stand_in(one)
        yield one


def agents() -> dict[str, Any]:
    """The DaemonSet of agents in it."""
    names = {(one["kind"], one["metadata"]["name"]): one for one in installation()}
    return names["DaemonSet", "interlace-agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What all worlds of a run share: images and the stand-in for NVML."""

    images: tuple[Path, ...]
    """All that nodes load."""
    own: Path
    """Ours among them."""
    nvml: Path


async def make_parts(folder: Path) -> Parts:
    """Make them in ``folder``."""
    programs = await build.built(cache_root(), wanted=(*CONTROL_PLANE, *NODE))
    helper = programs.path("helper")
    pause, workload, own = folder / "pause.tar", folder / "workload.tar", folder / "own.tar"
    images.write_image(pause, name=PAUSE_IMAGE, root=images.helper_root(helper))
    images.write_image(workload, name=WORKLOAD_IMAGE, root=images.helper_root(helper, verbs=("mnnvl-workload",)))
    await asyncio.to_thread(_write_own_image, own)
    return Parts(images=(pause, workload, own), own=own, nvml=await gpus.compile_nvml(folder))


def _write_own_image(target: Path) -> None:
    with images.own_root() as root:
        images.write_image(target, name=OWN_IMAGE, root=root)


@asynccontextmanager
async def run_world(folder: Path, *, names: tuple[str, ...], parts: Parts) -> AsyncIterator[World]:
    """A control plane, nodes called ``names`` in one NVLink partition, and Interlace on them, all Ready."""
    major = gpus.free_major()
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.clique": CLIQUE}
    settings = [NodeSettings(name=name, labels=labels) for name in names]
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(
            ControlPlane(state_dir=folder / "plane", settings=Settings(client_qps=500))
        )
        nodes = await stack.enter_async_context(
            run_nodes(plane, settings, folder=folder / "nodes", images=parts.images)
        )
        admin = plane.credentials("platform-engineer", groups=["system:masters"])
        client = await stack.enter_async_context(Client(admin, user_agent="interlace-tests"))
        world = World(
            plane=plane, client=client, nodes={node.name: node for node in nodes}, major=major, logs=folder / "nodes"
        )
        for node in nodes:
            gpus.equip(node, nvml=parts.nvml, clique=CLIQUE, gpus=GPUS, major=major)
            await world.offer_gpus(node)
        stack.push_async_callback(_stop_devices, world)
        for one in installation():
            await world.apply(one)
        await until_installed(world)
        yield world


@asynccontextmanager
async def run_namespace(world: World) -> AsyncIterator[str]:
    """A new namespace, deleted with all that is in it."""
    name = f"team-{next(_numbers)}"
    await world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def account() -> bool:
        return bool((await world.client.list(_ACCOUNT, namespace=name)).items)

    await eventually(account, within=WITHIN, what=f"ServiceAccount of {name}")
    yield name
    await world.client.delete(_NAMESPACE, name)

    async def gone() -> bool:
        return name not in [each["metadata"]["name"] for each in (await world.client.list(_NAMESPACE)).items]

    await eventually(gone, within=WITHIN, every=0.1, what=f"the end of namespace {name}")


async def until_clean(node: Node) -> None:
    """Wait until nothing of a claim is left on the node."""
    await eventually(
        lambda: not read_checkpoint(node)["claims"] and not specs(node), within=WITHIN, what="a node without claims"
    )


async def until_installed(world: World) -> None:
    """Wait until every node offers its GPUs and its channel, and every Pod of ours is Ready."""
    count = len(world.nodes)
    for component, pods in (("imex-host", count), ("agent", count), ("controller", 1)):
        await world.until_ready(NAMESPACE, labels=f"app.kubernetes.io/component={component}", count=pods)

    async def offered() -> bool:
        shown = (await world.client.list(NODES)).items
        slices = (await world.client.list(SLICE)).items
        ready = [node for node in shown if node["status"].get("allocatable", {}).get(gpus.RESOURCE) == str(GPUS)]
        return len(ready) == len(slices) == count

    await eventually(offered, within=WITHIN, every=0.1, what="GPUs and channels of all nodes")


async def _stop_devices(world: World) -> None:
    for stack in world.devices.values():
        await stack.aclose()

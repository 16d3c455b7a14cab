"""Device injection on real nodes: stand-in devices, an image for daemons, Pods as ``interlace inject`` makes them.

The devices are nodes of a number that no driver has, in a folder that the agent takes for the host's /dev: opening
one gives ENXIO where the container may, and EPERM where it may not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from interlace.fabric.family import Family
from interlace.manifests import manifests
from interlace.pods.inject import inject
from testbed import build, images
from testbed.node import Node
from testbed.programs import CONTROL_PLANE, NODE, cache_root
from tests.node import gpus
from tests.node.world import NAMESPACE, NODES, OWN_IMAGE, WITHIN, World, agents, until_installed
from tests.waiting import eventually

IMAGE = "localhost/testbed/daemon:1"
AGENT = "app.kubernetes.io/component=agent"
HOST_DEV = "/run/stand-in-dev"
"""On the node."""
FIRST_MINOR = 100
GPUS = 8
PLACE = "node.kubernetes.io/instance-type"

_READY = '#!/bin/sh\n[ -n "$HEALTH_CHECK_LOG_FILE" ] && echo ready > $HEALTH_CHECK_LOG_FILE\nexec /bin/helper pause\n'
_TEXTS = {
    "fts/entrypoint_rxdm_container.sh": _READY,
    "tcpgpudmarxd/build/app/tcpgpudmarxd": _READY,
    "bin/chmod": "#!/bin/sh\n",
    "bin/cat": '#!/bin/sh\nexec /bin/helper cat "$1"\n',
}


async def write_image(target: Path) -> None:
    """An image that stands in for the families' daemons, and has a shell as theirs."""
    programs = await build.built(cache_root(), wanted=(*CONTROL_PLANE, *NODE))
    shell = Path("/bin/sh").resolve()
    root = images.Root(
        files={"bin/helper": programs.path("helper"), "bin/sh": shell, **images.shared_libraries([shell])},
        texts=_TEXTS,
        command=["/bin/helper", "pause"],
        env={"PATH": "/bin"},
    )
    images.write_image(target, name=IMAGE, root=root)


def make_devices(node: Node, paths: list[str], *, major: int) -> None:
    """Stand-ins for ``paths`` (/dev/…), a disk, and a link to the disk under an allowed name."""
    folder = node.box.path(HOST_DEV)
    folder.mkdir(exist_ok=True)
    for number, path in enumerate([*paths, "/dev/sda"], FIRST_MINOR):
        os.mknod(folder / path.removeprefix("/dev/"), stat.S_IFCHR | 0o600, os.makedev(major, number))
    (folder / "nvidia99").symlink_to("sda")


def agent(*, image: str = OWN_IMAGE) -> dict[str, Any]:
    """The DaemonSet of agents that inject devices, with the node's stand-ins."""
    found: list[dict[str, Any]] = [
        one
        for one in manifests(image=image, replicas=1, driver_root=gpus.DRIVER_ROOT, nri=True)
        if one["kind"] == "DaemonSet" and one["metadata"]["name"] == "interlace-agent"
    ]
    (daemons,) = found
    spec = daemons["spec"]["template"]["spec"]
    gpus.stand_in(daemons)
    for volume in spec["volumes"]:
        if volume["name"] == "dev":
            volume["hostPath"]["path"] = HOST_DEV
    return daemons


@asynccontextmanager
async def eight_gpus(world: World, node: Node) -> AsyncIterator[None]:
    """Offer as many GPUs as the families' machines have."""
    if (earlier := world.devices.pop(node.name, None)) is not None:
        await earlier.aclose()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(gpus.device_plugin(node, gpus=GPUS))

        async def offered() -> bool:
            (shown,) = (await world.client.list(NODES)).items
            return bool(shown["status"]["allocatable"].get(gpus.RESOURCE) == str(GPUS))

        await eventually(offered, within=WITHIN, every=0.1, what="eight GPUs")
        yield


async def call_it(world: World, node: Node, machine: str) -> None:
    """Give the node the label of a machine type."""
    await world.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": {PLACE: machine}}})


async def put_back(world: World, node: Node) -> None:
    """Undo what `agent` and `call_it` did, and offer the GPUs that nodes of this tier have."""
    await world.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})
    await world.apply(agents())
    await world.offer_gpus(node)
    await until_installed(world)


async def until_injecting(world: World) -> dict[str, Any]:
    """The agent's Pod, once it injects devices and is ready, which it is only while it is registered."""
    found: list[dict[str, Any]] = []

    async def look() -> bool:
        found[:] = await world.until_ready(NAMESPACE, labels=AGENT, count=1)
        (container,) = found[0]["spec"]["containers"]
        return {"name": "INTERLACE_NRI", "value": "on"} in container["env"]

    await eventually(look, within=WITHIN, every=0.2, what="an agent that injects")
    return found[0]


def injected(
    name: str, namespace: str, *, family: Family, command: list[str], required_plugin: str = ""
) -> dict[str, Any]:
    """A Pod as ``interlace inject`` makes it; only images and host folders are replaced."""
    main = {"name": "main", "image": IMAGE, "command": command, "resources": {"limits": {gpus.RESOURCE: GPUS}}}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"job": name}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main]},
    }
    made = inject(pod, family=family, required_plugin=required_plugin).pod
    (daemon,) = made["spec"]["initContainers"]
    daemon |= {"image": IMAGE, "imagePullPolicy": "Never"}
    for volume in made["spec"]["volumes"]:
        path = volume.get("hostPath", {}).get("path", "")
        if path and not path.startswith(("/sys", "/proc")):
            volume["hostPath"] = {"path": f"/run/stand-in{path}", "type": "DirectoryOrCreate"}
    return made


def asking(name: str, namespace: str, text: str) -> dict[str, Any]:
    """A Pod whose one container asks for devices with this text."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"job": name},
            "annotations": {"devices.gke.io/container.main": text},
        },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": IMAGE}],
        },
    }


def daemon_of(pod: dict[str, Any]) -> dict[str, Any]:
    """The same Pod with its daemon as only container, for helpers that look at the first one."""
    return {**pod, "status": {**pod["status"], "containerStatuses": pod["status"]["initContainerStatuses"]}}

"""Real nodes: kubelet, containerd, runc and CNI, each node in a box of its own, joined by a wire.

Nothing here is simulated but the machine. Every node reaches the API server, which listens on loopback outside,
at the address of the service ``kubernetes``: a forwarder in the node's network has that address, so no
kube-proxy is needed. Pods of all nodes reach each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from testbed import build
from testbed.box import BIN, FILES, Box, Program, box, run_outside
from testbed.errors import BedError
from testbed.flags import SERVICE_ADDRESS
from testbed.plane import ControlPlane
from testbed.programs import CONTROL_PLANE, NODE, Programs, cache_root

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "localhost/testbed/pause:1"
START_LIMIT = 120.0
"""Seconds that containerd, or kubelet, may take until it answers."""
_POLL = 0.05
_IN_BOX = (
    "helper",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "runc",
    "bridge",
    "loopback",
    "host-local",
    "kubelet",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """One node."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


class Node:
    """A running node: its box and the programs in it."""

    def __init__(self, settings: NodeSettings, *, inside: Box, number: int) -> None:
        self.name = settings.name
        self.settings = settings
        self.box = inside
        self.number = number
        self.boot_id = ""
        self.containerd: Program | None = None
        self.kubelet: Program | None = None

    @property
    def address(self) -> str:
        """Of the node."""
        return f"10.87.0.{self.number}"

    async def start_containerd(self) -> None:
        """Start it and wait until it answers."""
        self.containerd = await self.box.start("containerd", [f"{BIN}/containerd", "-c", f"{FILES}/containerd.toml"])
        async with _limit(f"containerd of {self.name}", self.box.folder / "containerd.log"):
            while self.containerd.running:
                with contextlib.suppress(BedError):
                    await self.ctr("version")
                    return
                await asyncio.sleep(_POLL)
        raise BedError(f"containerd of {self.name} ended; read {self.box.folder / 'containerd.log'}")

    async def stop_containerd(self, *, kill: bool = False) -> None:
        """End it; containers go on, since each has a shim of its own."""
        if self.containerd is not None:
            await self.containerd.stop(kill=kill)
            self.containerd = None

    async def start_kubelet(self) -> None:
        """Start it; it makes the Node object Ready by itself."""
        labels = ",".join(f"{name}={value}" for name, value in self.settings.labels.items())
        command = [
            f"{BIN}/kubelet", f"--config={FILES}/kubelet.yaml", f"--kubeconfig={FILES}/kubeconfig",
            f"--hostname-override={self.name}", f"--node-ip={self.address}", "--root-dir=/var/lib/kubelet",
            "--cert-dir=/var/lib/kubelet/pki", "-v=3", *([f"--node-labels={labels}"] if labels else []),
        ]  # fmt: skip
        self.kubelet = await self.box.start("kubelet", command)

    async def stop_kubelet(self, *, kill: bool = False) -> None:
        """End kubelet; containers go on."""
        if self.kubelet is not None:
            await self.kubelet.stop(kill=kill)
            self.kubelet = None

    async def power_off(self) -> None:
        """End everything on it at once; its disk stays.

        What memory held is gone: processes, mounts, cgroups, and files below /run, but for the stand-in of a driver.
        The next boot has another id.
        """
        self.containerd = self.kubelet = None
        await self.box.end_all()
        await self.box.run("/bin/sh", "-c", _FORGET)
        self._new_boot()

    async def power_on(self) -> None:
        """Start containerd and kubelet."""
        await self.start_containerd()
        await self.start_kubelet()

    def _new_boot(self) -> None:
        self.boot_id = str(uuid.uuid4())
        self.box.path(f"{FILES}/boot-id").write_text(f"{self.boot_id}\n")

    async def pretend_boot(self) -> None:
        """Show the node's programs a boot id of its own; containers, with a /proc of theirs, see the machine's."""
        self._new_boot()
        await self.box.run("mount", "--bind", f"{FILES}/boot-id", "/proc/sys/kernel/random/boot_id")

    async def ctr(self, *words: str) -> str:
        """``ctr`` in kubelet's namespace of containerd."""
        return await self.box.run("ctr", "-a", CONTAINERD_SOCKET, "-n", "k8s.io", *words, limit=START_LIMIT)

    async def load(self, image: Path) -> None:
        """Import an image from an OCI tar outside."""
        target = f"/run/testbed/{image.name}"
        await asyncio.to_thread(shutil.copyfile, image, self.box.path(target))
        try:
            await self.ctr("images", "import", "--local", target)
        finally:
            self.box.path(target).unlink()


@asynccontextmanager
async def run_nodes(
    plane: ControlPlane, nodes: Sequence[NodeSettings], *, folder: Path, images: Sequence[Path] = ()
) -> AsyncIterator[list[Node]]:
    """Nodes of ``plane``, with ``images`` (OCI tars, the pause image among them) loaded, registered and Ready soon.

    Raises ``BedError`` where the machine or a program cannot do it. Whatever happens, nothing is left.
    """
    programs = await build.built(cache_root(), wanted=(*CONTROL_PLANE, *NODE))
    async with AsyncExitStack() as stack:
        made: list[Node] = []
        for number, settings in enumerate(nodes, 1):
            inside = await stack.enter_async_context(
                box(
                    settings.name,
                    folder=folder / settings.name,
                    programs={name: programs.path(name) for name in _IN_BOX},
                )
            )
            made.append(Node(settings, inside=inside, number=number))
        await _wire(made)
        async with asyncio.TaskGroup() as group:
            for node in made:
                group.create_task(_begin(node, plane=plane, programs=programs, images=images))
        yield made


async def _begin(node: Node, *, plane: ControlPlane, programs: Programs, images: Sequence[Path]) -> None:
    _configure(node, plane=plane)
    target = urlsplit(plane.url).netloc
    # Outside, on purpose: it joins both networks.
    await _forward(node, programs=programs, target=target)
    await node.pretend_boot()
    await node.start_containerd()
    for image in images:
        await node.load(image)
    await node.start_kubelet()


async def _forward(node: Node, *, programs: Programs, target: str) -> None:
    command = [str(programs.path("helper")), "forward", str(node.box.network), f"{SERVICE_ADDRESS}:443", target]
    await node.box.start_outside("forward", command)


async def _wire(nodes: Sequence[Node]) -> None:
    """One bridge, in the first node, and a cable to it from each other one."""
    first = nodes[0]
    for node in nodes:
        lines = ["set -e", "echo 1 > /proc/sys/net/ipv4/ip_forward", f"ip addr add {SERVICE_ADDRESS}/32 dev lo"]
        if node is first:
            lines.append("ip link add wire type bridge")
        else:
            cable = f"cable{node.number}"
            ends = [str(first.box.init), "type", "veth", "peer", "name", "wire", "netns", str(node.box.init)]
            await run_outside("ip", "link", "add", cable, "netns", *ends)
            await first.box.run("ip", "link", "set", cable, "master", "wire", "up")
        lines += [f"ip addr add {node.address}/16 dev wire", "ip link set wire up"]
        lines += [f"ip route add 10.88.{other.number}.0/24 via {other.address}" for other in nodes if other is not node]
        await node.box.run("/bin/sh", "-c", "\n".join(lines))


def _configure(node: Node, *, plane: ControlPlane) -> None:
    files = node.box.path(FILES)
    network = {
        "cniVersion": "1.0.0",
        "name": "testbed",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": f"10.88.{node.number}.0/24"}]],
                    "dataDir": "/run/cni-ipam",
                    # Without it Pods reach their own node alone.
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }
    (files / "cni").mkdir()
    (files / "cni/10-testbed.conflist").write_text(json.dumps(network))
    (files / "containerd.toml").write_text(_CONTAINERD)
    kubelet = _KUBELET | {"cgroupRoot": f"/{node.box.cgroup}"}
    (files / "kubelet.yaml").write_text(yaml.safe_dump(kubelet))
    kubeconfig = node.box.folder / "kubeconfig"
    plane.write_kubeconfig(
        kubeconfig, f"system:node:{node.name}", groups=["system:nodes"], server=f"https://{SERVICE_ADDRESS}"
    )
    shutil.move(kubeconfig, files / "kubeconfig")


@asynccontextmanager
async def _limit(what: str, log: Path) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(START_LIMIT):
            yield
    except TimeoutError:
        raise BedError(f"{what} did not answer within {START_LIMIT:.0f} s; read {log}") from None


_FORGET = f"""set -e
cut -d' ' -f5 /proc/self/mountinfo | grep -E '^/(run|var/lib)/.' | grep -v '^{FILES}/' | sort -r |
  while read -r path; do umount -l "$path"; done
cd /run
for name in *; do
  case $name in testbed|nvidia|stand-in*) ;; *) rm -rf "$name" ;; esac
done
mkdir -p cdi lock
"""

_CONTAINERD = f"""\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.blockfile"]

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
  # Root without CAP_SYS_RESOURCE may not lower a score.
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "{BIN}/runc"
      SystemdCgroup = false
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{BIN}"]
    conf_dir = "{FILES}/cni"

[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "/run/nri/nri.sock"
"""

_KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    # Kubelet refuses version 1 by itself since 1.35.
    "failCgroupV1": False,
    "cgroupDriver": "cgroupfs",
    "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
    "address": "0.0.0.0",  # noqa: S104 - the box is a network of its own
    "readOnlyPort": 0,
    "healthzPort": 0,
    "failSwapOn": False,
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "makeIPTablesUtilChains": False,
    "resolvConf": "",
    "oomScoreAdj": 0,
    "maxOpenFiles": 20000,
    "localStorageCapacityIsolation": False,
    "nodeStatusUpdateFrequency": "5s",
    "syncFrequency": "5s",
    # Containers that tests end again and again come back at once; the default is five minutes.
    "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
}

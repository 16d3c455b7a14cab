"""GPUs for a node that has none (simulated): what the driver would put there, and their device plugin.

The driver root holds a stand-in for NVML that is compiled here and the simulated ``nvidia-imex``. The device
plugin speaks kubelet's real protocol; it runs in the test's process, since its sockets are files of the box.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import shutil
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream

from interlace.sim import imex
from testbed.box import run_outside
from testbed.node import Node

pb: Any = importlib.import_module("tests.node.proto.deviceplugin_pb2")
DRIVER_ROOT = "/run/nvidia/driver"
"""On the node; where the GPU Operator has it."""
SEEN = Path("/driver-root")
"""In our containers."""
PROC_DEVICES = "proc-devices"
BOOT_ID = "boot-id"
FAULTS = f"{DRIVER_ROOT}/imex-faults.json"
"""On the node: faults of the simulated ``nvidia-imex``."""
CHANNELS = "/dev/nvidia-caps-imex-channels"
"""In containers."""
RESOURCE = "nvidia.com/gpu"
_PLUGINS = "/var/lib/kubelet/device-plugins"
_LIMIT = 60.0
_SOURCE = Path(__file__).parent / "native/nvml_stub.c"


def free_major() -> int:
    """A number of character devices that no driver of this machine has: opening one gives ENXIO."""
    taken = {line.split()[0] for line in Path("/proc/devices").read_text().splitlines() if line[:3].strip().isdigit()}
    return next(number for number in range(234, 255) if str(number) not in taken)


async def compile_nvml(folder: Path) -> Path:
    """The stand-in for NVML; needs gcc, as the testbed's runc does."""
    library = folder / "libnvidia-ml.so.1"
    await run_outside("gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(_SOURCE))
    return library


def equip(node: Node, *, nvml: Path, clique: str, gpus: int, major: int) -> None:
    """Lay out the driver root on the node; ``clique`` is ``<cluster uuid>.<number>``."""
    root = node.box.path(DRIVER_ROOT)
    libraries = root / "usr/lib64"
    libraries.mkdir(parents=True)
    shutil.copyfile(nvml, libraries / nvml.name)
    cluster, _, number = clique.rpartition(".")
    (libraries / "nvml-stub.txt").write_text(f"{gpus} {uuid.UUID(cluster).hex} {number}\n")
    real = Path("/proc/devices").read_text()
    devices = real.replace("Character devices:\n", f"Character devices:\n{major} nvidia-caps-imex-channels\n")
    (root / PROC_DEVICES).write_text(devices)
    show_boot(node)
    imex.install(
        root,
        hosts_file=Path("/etc/hosts"),
        faults=SEEN / "imex-faults.json",
        start_delay=0.1,
        interpreter="/usr/local/bin/python3",
        seen=SEEN,
        session=Path("/run/simulated-imex-session"),
    )


def show_boot(node: Node) -> None:
    """Let the agent see the boot id that kubelet sees; again after each boot."""
    node.box.path(f"{DRIVER_ROOT}/{BOOT_ID}").write_text(f"{node.boot_id}\n")


def stand_in(daemons: dict[str, Any]) -> None:
    """Let the agents of this DaemonSet read what the machine cannot have for them alone."""
    (container,) = daemons["spec"]["template"]["spec"]["containers"]
    for name, file in (("ALT_PROC_DEVICES_PATH", PROC_DEVICES), ("ALT_BOOT_ID_PATH", BOOT_ID)):
        container["env"].append({"name": name, "value": str(SEEN / file)})


def is_asked_for(node: Node) -> bool:
    """Whether kubelet takes device plugins; after a reboot its socket is still there and nobody listens."""
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(str(node.box.path(f"{_PLUGINS}/kubelet.sock")))
        return True
    return False


@asynccontextmanager
async def device_plugin(node: Node, *, gpus: int) -> AsyncIterator[None]:
    """Offer ``gpus`` GPUs to kubelet, which has to be running; containers get nothing for them."""
    server = Server([_DevicePlugin(gpus)])
    await server.start(path=str(node.box.path(f"{_PLUGINS}/gpus.sock")))
    try:
        channel = Channel(path=str(node.box.path(f"{_PLUGINS}/kubelet.sock")))
        try:
            async with asyncio.timeout(_LIMIT):
                await UnaryUnaryMethod(channel, "/v1beta1.Registration/Register", pb.RegisterRequest, pb.Empty)(
                    pb.RegisterRequest(version="v1beta1", endpoint="gpus.sock", resource_name=RESOURCE)
                )
        finally:
            channel.close()
        yield
    finally:
        server.close()
        async with asyncio.timeout(_LIMIT):
            await server.wait_closed()


class _DevicePlugin:
    def __init__(self, gpus: int) -> None:
        self._gpus = gpus

    async def options(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        await stream.send_message(pb.DevicePluginOptions())

    async def watch(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        devices = [pb.Device(ID=f"gpu-{number}", health="Healthy") for number in range(self._gpus)]
        await stream.send_message(pb.ListAndWatchResponse(devices=devices))
        await asyncio.Event().wait()

    async def allocate(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        assert request is not None
        answers = [pb.ContainerAllocateResponse() for _ in request.container_requests]
        await stream.send_message(pb.AllocateResponse(container_responses=answers))

    def __mapping__(self) -> dict[str, Handler]:
        one, many = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        return {
            "/v1beta1.DevicePlugin/GetDevicePluginOptions": Handler(
                self.options, one, pb.Empty, pb.DevicePluginOptions
            ),
            "/v1beta1.DevicePlugin/ListAndWatch": Handler(self.watch, many, pb.Empty, pb.ListAndWatchResponse),
            "/v1beta1.DevicePlugin/Allocate": Handler(self.allocate, one, pb.AllocateRequest, pb.AllocateResponse),
        }

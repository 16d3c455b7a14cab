"""NVIDIA's own driver under test: its controller, a plugin a node, and its daemon pods.

Needs its programs (``compute-domain-controller``, ``-kubelet-plugin``, ``-daemon``) and its source tree, which are
not part of this repository; without them nobody can try this module. The recorded runs in ``results/upstream`` were
made with the older form of it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from bench.domains.boxes import Box, start_box
from bench.domains.daemons import DaemonPods
from bench.domains.natives import compile_native, compile_nvml, fabric_env, install_nvml
from bench.domains.ours import EVICTION, NODE_GRACE, SYNC_BACKOFF
from bench.domains.series import Series
from bench.domains.world import World
from interlace.api.computedomain import CHANNEL_CLASS, DAEMON_CLASS, DRIVER
from interlace.sim import audit
from interlace.sim.cluster import Cluster, ClusterSettings, run_cluster
from interlace.sim.kubelet.hardware import Tray
from interlace.sim.kubelet.node import CDI, PLUGINS, REGISTRAR
from interlace.sim.kubelet.programs import Programs
from interlace.sim.kubelet.settings import KubeletSettings
from interlace.sim.kubelet.token import TokenRequest

NAMESPACE = "dra-driver"
DAEMON = "compute-domain-daemon"
ACCOUNTS: Mapping[str, str] = {
    "controller": "controller",
    "kubelet-plugin": "plugin",
    "compute-domain-daemon-service-account": "daemon",
}
"""Service account to component."""
_STOP = 10.0
_TOKEN_LIFE = 36_000


class MissingProgramsError(Exception):
    """The known driver's programs or sources are not where they were said to be."""


def component(user: str) -> str:
    """Which component a user of the API server is."""
    account = user.removeprefix(f"system:serviceaccount:{NAMESPACE}:")
    return ACCOUNTS.get(account) or audit.component(user, namespace=NAMESPACE)


def cluster_objects(source: Path) -> list[dict[str, Any]]:
    """What is installed: its CRDs, device classes, and accounts with every right (rights are not under test)."""
    objects: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
    for path in sorted(source.glob("deployments/helm/*/crds/*.yaml")):
        objects += [document for document in yaml.safe_load_all(path.read_text()) if document]
    if len(objects) == 1:
        raise MissingProgramsError(f"{source} holds no deployments/helm/*/crds/*.yaml; give its source tree")
    attributes = f'device.attributes["{DRIVER}"]'
    for name, test in (
        (DAEMON_CLASS, f'{attributes}.type == "daemon"'),
        (CHANNEL_CLASS, f'{attributes}.type == "channel" && {attributes}.id == 0'),
    ):
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}" && {test}'}}
        spec = {"selectors": [selector]}
        objects.append(
            {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}
        )
    objects += [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}
        for name in ACCOUNTS
    ]
    objects.append(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAMESPACE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE} for name in ACCOUNTS],
        }
    )
    return objects


def plugin_env(tray: Tray, *, driver_root: Path, kubeconfig: Path) -> dict[str, str]:
    """Environment of the plugin of one node."""
    return {
        "PATH": "/usr/bin:/bin",
        "KUBECONFIG": str(kubeconfig),
        "NODE_NAME": tray.name,
        "NAMESPACE": NAMESPACE,
        "CDI_ROOT": str(tray.root / CDI),
        "NVIDIA_DRIVER_ROOT": str(driver_root),
        "DRIVER_ROOT_CTR_PATH": str(driver_root),
        "KUBELET_REGISTRAR_DIRECTORY_PATH": str(tray.root / REGISTRAR),
        "KUBELET_PLUGINS_DIRECTORY_PATH": str(tray.root / PLUGINS),
        "ALT_PROC_DEVICES_PATH": str(tray.root / "proc/devices"),
        "NVIDIA_CDI_HOOK_PATH": "/usr/bin/true",
        **fabric_env(tray.clique, gpus=tray.gpus),
    }


class _Running:
    """A cluster with the known driver in it."""

    def __init__(self, cluster: Cluster, *, daemons: DaemonPods) -> None:
        self.cluster = cluster
        self.controller: list[int] = []
        self.plugins: list[int] = []
        self._daemons = daemons

    def component(self, user: str) -> str:
        return component(user)

    async def calm(self) -> None:
        """Its programs do nothing periodically that could fill a machine."""

    async def imex_starts(self) -> list[float]:
        """It does not say."""
        return []

    def processes(self) -> dict[str, list[int]]:
        daemons = [box.pid for box in self._daemons.boxes.values()]
        return {"controller": self.controller, "plugin": self.plugins, "daemon": daemons}


class Known:
    """The known driver."""

    name = "upstream"
    components = ("controller", "plugin", "daemon")

    def __init__(self, *, tell: Callable[[str], None] = lambda _line: None) -> None:
        self._tell = tell

    @asynccontextmanager
    async def start(self, series: Series, *, nodes: int) -> AsyncIterator[World]:
        """Raises MissingProgramsError, NativeError, and what `run_cluster` raises."""
        programs, source = _parts(series)
        with tempfile.TemporaryDirectory(prefix="interlace-bench-") as folder:
            async with self._run(series, nodes=nodes, programs=programs, source=source, natives=Path(folder)) as world:
                yield world

    @asynccontextmanager
    async def _run(
        self, series: Series, *, nodes: int, programs: Path, source: Path, natives: Path
    ) -> AsyncIterator[World]:
        nsbox = await compile_native("nsbox", natives / "nsbox")
        imex = await compile_native("imex", natives / "nvidia-imex")
        (natives / "nvidia-imex-ctl").symlink_to(imex.name)
        driver_root = natives / "root"
        _build_driver_root(driver_root, nvml=await compile_nvml(natives))
        daemons = DaemonPods(
            nsbox=nsbox, natives=natives, programs=programs, imex_start=series.imex_start, names=[DAEMON]
        )
        settings = ClusterSettings(
            server="real",
            nodes=nodes,
            per_clique=series.per_clique,
            node_grace=NODE_GRACE,
            eviction=EVICTION,
            platform_rate=series.platform_rate,
            kubelet=KubeletSettings(volume_wait=series.volume_wait, sync_backoff=SYNC_BACKOFF),
        )
        async with (
            run_cluster(
                settings, programs=Programs(foreign=daemons), objects=cluster_objects(source), tell=self._tell
            ) as cluster,
            AsyncExitStack() as stack,
        ):
            running = _Running(cluster, daemons=daemons)
            folder = cluster.folder
            binds = {str(path): path for path in (folder, programs, natives)} | {"/templates": source / "templates"}

            async def start(name: str, program: str, env: dict[str, str]) -> Box:
                box = await start_box(
                    [str(programs / program), "-v", "4"],
                    nsbox=nsbox,
                    root=folder / "boxes" / name,
                    log=folder / "logs" / f"{name}.log",
                    env=env,
                    binds=binds,
                )
                stack.push_async_callback(box.stop, grace=_STOP)
                return box

            controller = {
                "PATH": "/usr/bin:/bin",
                "KUBECONFIG": str(await _write_kubeconfig(cluster, "controller")),
                "POD_NAME": "controller-0",
                "NAMESPACE": NAMESPACE,
                "IMAGE_NAME": "registry.k8s.io/pause:3.10",
                "LOG_VERBOSITY_CD_DAEMON": "4",
                "MAX_NODES_PER_IMEX_DOMAIN": str(series.per_clique),
            }
            running.controller = [(await start("controller", "compute-domain-controller", controller)).pid]
            kubeconfig = await _write_kubeconfig(cluster, "kubelet-plugin")
            for name in cluster.gpu_nodes:
                env = plugin_env(cluster.fleet.nodes[name].tray, driver_root=driver_root, kubeconfig=kubeconfig)
                running.plugins.append((await start(f"plugin-{name}", "compute-domain-kubelet-plugin", env)).pid)
            await cluster.signal.until(
                "a ResourceSlice of every plugin",
                lambda: len({item.spec.node_name for item in cluster.slices.items()}) == nodes,
                within=60 + nodes,
            )
            yield running


def _parts(series: Series) -> tuple[Path, Path]:
    programs, source = series.driver_programs, series.driver_source
    if programs is None or source is None:
        raise MissingProgramsError("give --driver-programs and --driver-source; see bench/domains/README.md")
    if not (programs / DAEMON).exists():
        raise MissingProgramsError(f"{programs} holds no {DAEMON}; give the folder of the driver's programs")
    return programs.absolute(), source.absolute()


def _build_driver_root(root: Path, *, nvml: Path) -> None:
    """What the plugin looks for below a driver root; needs root for the device nodes."""
    for folder in ("usr/bin", "dev", "proc/driver/nvidia/capabilities"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    install_nvml(nvml, driver_root=root)
    (root / "usr/lib64/libcuda.so.1").touch()
    smi = root / "usr/bin/nvidia-smi"
    smi.write_text("#!/bin/sh\nexit 0\n")
    smi.chmod(0o755)
    for name, minor in (("nvidiactl", 255), ("nvidia0", 0)):
        if not (root / "dev" / name).exists():
            os.mknod(root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(195, minor))
    (root / "proc/driver/nvidia/capabilities/fabric-imex-mgmt").write_text(
        "DeviceFileMinor: 3\nDeviceFileMode: 256\nDeviceFileModify: 1\n"
    )


async def _write_kubeconfig(cluster: Cluster, account: str) -> Path:
    """A kubeconfig with a token of ``account``."""
    answer = await cluster.client.create(
        TokenRequest,
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_LIFE},
        },
        namespace=NAMESPACE,
        name=account,
        subresource="token",
    )
    authority = cluster.folder / "ca.crt"
    authority.write_bytes(cluster.plane.credentials("unused").ca or b"")
    path = cluster.folder / f"{account}.kubeconfig"
    path.touch(mode=0o600)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [
            {"name": "bench", "cluster": {"server": cluster.plane.url, "certificate-authority": str(authority)}}
        ],
        "users": [{"name": "bench", "user": {"token": answer.status.token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path

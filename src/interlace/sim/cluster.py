"""A whole simulated cluster: control plane, our components installed from ``deploy/``, hollow nodes.

The control plane is the embedded one with its stand-ins, or a real one; everything above it is
the same. Invariant: when the context is left, every process, socket and folder that it made is
gone, however it is left.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlace.api.computedomain import DRIVER, ComputeDomain
from interlace.api.core import Node, Pod
from interlace.api.resource import GROUP, ResourceClaim, ResourceSlice
from interlace.kube.client import Client
from interlace.kube.informer import Informer
from interlace.kube.untyped import apply_manifest
from interlace.kube.versions import NEWEST
from interlace.manifests import manifests
from interlace.sim.kubelet.fleet import Fleet
from interlace.sim.kubelet.hardware import build_trays, claim_networks, control_machine
from interlace.sim.kubelet.output import Finite
from interlace.sim.kubelet.programs import Programs
from interlace.sim.kubelet.settings import KubeletSettings
from interlace.sim.observing import NotReachedError, Signal
from interlace.sim.plane import Plane

NAMESPACE = "interlace-system"
_USER = "platform-engineer"
_LONGEST_FOLDER = 107 - len(
    "/il-12345678/tray-000/var/lib/kubelet/plugins_registry/compute-domain.nvidia.com-12345678-reg.sock"
)
"""The kernel takes 107 bytes for the path of a socket."""


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate."""

    server: Literal["embedded", "real"] = "embedded"
    resource_version: str = NEWEST
    """In which ``resource.k8s.io`` is served. Older than v1 on a real API server: with stand-ins for the platform,
    because the real scheduler and controller manager want v1."""
    device_status: bool = True
    """Feature gate DRAResourceClaimDeviceStatus."""
    nodes: int = 18
    per_clique: int = 18
    fabric: bool = True
    replicas: int = 2
    """Of the controller."""
    imex_start: float = 0.05
    """Seconds until a simulated ``nvidia-imex`` is READY."""
    node_grace: float = 4.0
    """Seconds without a Lease renewal until a node counts as lost."""
    eviction: int = 1
    """Seconds until pods of a lost node are evicted."""
    platform_rate: int | None = 500
    """Client rate of a real scheduler and controller-manager, requests a second; None is their default."""
    kubelet: KubeletSettings = KubeletSettings(lease=1.0)
    separate: frozenset[str] = frozenset()
    """Components that run as processes of their own."""


class Cluster:
    """A running cluster, with what a scenario watches."""

    def __init__(self, *, settings: ClusterSettings, plane: Plane, fleet: Fleet, client: Client, folder: Path) -> None:
        self.settings = settings
        self.plane = plane
        self.fleet = fleet
        self.client = client
        self.folder = folder
        self.signal = Signal()
        self.domains = Informer(client, ComputeDomain)
        self.pods = Informer(client, Pod)
        self.nodes = Informer(client, Node)
        self.claims = Informer(client, ResourceClaim)
        self.slices = Informer(client, ResourceSlice, fields=f"spec.driver={DRIVER}")

    @property
    def gpu_nodes(self) -> list[str]:
        """Names of the machines with GPUs, in order."""
        return [name for name, node in self.fleet.nodes.items() if node.tray.gpus]

    async def observe(self) -> None:
        """Keep the informers running, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in (self.domains, self.pods, self.nodes, self.claims, self.slices):
                informer.on_change(self.signal.fire)
                group.create_task(informer.run())

    async def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply, as ``kubectl apply --server-side`` would."""
        return await apply_manifest(self.client, manifest, manager="platform-engineer")

    def our_pods(self, component: str) -> list[Pod]:
        """Pods of one of our components."""
        return [
            pod
            for pod in self.pods.items()
            if pod.metadata.namespace == NAMESPACE
            and pod.metadata.labels.get("app.kubernetes.io/component") == component
        ]

    def missing(self) -> str:
        """What the installation still lacks, for people; empty when it is complete."""
        trays = len(self.gpu_nodes)
        ready = {name: sum(pod.ready for pod in self.our_pods(name)) for name in ("agent", "imex-host", "controller")}
        wanted = {"agent": trays, "imex-host": trays, "controller": self.settings.replicas}
        slices = sum(1 for _ in self.slices.items())
        late = [f"{name} {ready[name]}/{wanted[name]} ready" for name in wanted if ready[name] < wanted[name]]
        return ", ".join(late + ([f"{slices}/{trays} slices"] if slices < trays else []))

    async def until_installed(self, *, within: float = 60.0) -> None:
        """Wait until our components are Ready on every node and every tray publishes its slice."""
        await self.signal.until("the installation", lambda: not self.missing(), within=within, instead=self.missing)


@asynccontextmanager
async def run_cluster(
    settings: ClusterSettings,
    *,
    folder: Path | None = None,
    programs: Programs | None = None,
    objects: Sequence[dict[str, Any]] | None = None,
    finite: Finite | None = None,
    tell: Callable[[str], None] = lambda _line: None,
    show: Callable[[Cluster], None] = lambda _cluster: None,
) -> AsyncIterator[Cluster]:
    """Start a cluster, install our components, yield it, and take everything down again.

    ``programs`` says how components run, by default as the settings have it. ``objects`` are installed instead
    of our components, and the caller waits for them. ``finite`` runs Pods that end by themselves. ``tell`` gets a
    line for each step, ``show`` the cluster before the installation. Raises NotReachedError if that does not come
    up, and what the control plane raises if its programs are missing.
    """
    state = Path(tempfile.mkdtemp(prefix="il-", dir=folder or _roomy_folder()))
    try:
        with claim_networks(settings.nodes + 1) as networks:
            trays = build_trays(networks[1:], root=state, per_clique=settings.per_clique, fabric=settings.fabric)
            programs = programs or Programs(imex_start=settings.imex_start, separate=settings.separate)
            async with _start_plane(settings, state=state, tell=tell) as plane:
                fleet = Fleet(
                    [control_machine(networks[0], root=state), *trays],
                    plane=plane,
                    programs=programs,
                    settings=settings.kubelet,
                )
                if finite is not None:
                    fleet.run_finite(finite)
                config = plane.credentials(_USER, groups=["system:masters"])
                async with (
                    Client(config, user_agent="interlace-demo", qps=1000, burst=2000) as client,
                    asyncio.TaskGroup() as group,
                ):
                    cluster = Cluster(settings=settings, plane=plane, fleet=fleet, client=client, folder=state)
                    tasks = [group.create_task(fleet.run())]
                    tell("installing our components from deploy/" if objects is None else "installing objects")
                    ours = manifests(namespace=NAMESPACE, replicas=settings.replicas)
                    for manifest in ours if objects is None else objects:
                        await cluster.apply(manifest)
                    tasks.append(group.create_task(cluster.observe()))
                    show(cluster)
                    if objects is None:
                        await cluster.until_installed(within=60 + settings.nodes)
                    # All of it stays: the garbage collector's looking through it would hold up every node at once.
                    gc.collect()
                    gc.freeze()
                    try:
                        yield cluster
                    finally:
                        gc.unfreeze()
                        for task in tasks:
                            task.cancel()
    finally:
        shutil.rmtree(state, ignore_errors=True)


def _roomy_folder() -> Path:
    """The user's folder for temporary files, or /tmp where its path is too long for the sockets below it."""
    try:
        chosen = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise OSError(f"{error.strerror}; set TMPDIR to a folder that may be written") from None
    return chosen if len(os.fsencode(chosen)) <= _LONGEST_FOLDER else Path("/tmp")  # noqa: S108  mkdtemp makes it ours


@asynccontextmanager
async def _start_plane(settings: ClusterSettings, *, state: Path, tell: Callable[[str], None]) -> AsyncIterator[Plane]:
    older = settings.resource_version != NEWEST
    if settings.server == "real":
        from testbed.flags import Settings  # noqa: PLC0415  only in a checkout
        from testbed.plane import ControlPlane  # noqa: PLC0415

        tell(
            "starting real etcd and kube-apiserver, and a simulated scheduler and controllers"
            if older
            else "starting real etcd, kube-apiserver, kube-scheduler and kube-controller-manager"
        )
        wanted = Settings(
            client_qps=settings.platform_rate,
            node_monitor_grace_period=settings.node_grace,
            toleration_seconds=settings.eviction,
            feature_gates={} if settings.device_status else _WITHOUT_DEVICE_STATUS,
        )
        if older:
            served = {f"{GROUP}/{NEWEST}": False, f"{GROUP}/{settings.resource_version}": True}
            wanted = dataclasses.replace(
                wanted, scheduler=False, controller_manager=False, authorization=("RBAC",), runtime_config=served
            )
        async with ControlPlane(state_dir=state / "plane", settings=wanted) as plane:
            if not older:
                yield plane
                return
            async with Client(
                plane.credentials(_USER, groups=["system:masters"]), user_agent="interlace-demo"
            ) as client:
                await apply_manifest(client, _NODES_MAY, manager=_USER)
            async with _stand_ins(plane, settings=settings):
                yield plane
        return
    from interlace.sim.apiserver import ApiServer  # noqa: PLC0415

    tell("starting the embedded (simulated) API server, scheduler and controllers")
    embedded = ApiServer(
        state_dir=state / "plane", resource_version=settings.resource_version, device_status=settings.device_status
    )
    async with embedded as server, _stand_ins(server, settings=settings):
        yield server


@asynccontextmanager
async def _stand_ins(plane: Plane, *, settings: ClusterSettings) -> AsyncIterator[None]:
    from interlace.sim.platform.run import run_platform  # noqa: PLC0415

    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            run_platform(plane, node_grace=settings.node_grace, toleration=float(settings.eviction))
        )
        try:
            yield
        finally:
            task.cancel()


_WITHOUT_DEVICE_STATUS = {
    "DRAResourceClaimDeviceStatus": False,
    "DRAResourceClaimGranularStatusAuthorization": False,
    "DRADeviceBindingConditions": False,
}
"""The others need the first."""
_NODES_MAY = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "nodes-without-node-authorizer"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
}
"""The Node authorizer wants v1 and is left out with it."""

__all__ = ["Cluster", "ClusterSettings", "NotReachedError", "run_cluster"]

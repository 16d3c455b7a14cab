"""One hollow node: its Node object, its Lease, and a worker for each pod bound to it.

The node authenticates as ``system:node:<name>`` and reads only its own pods, as a kubelet
does. ``run`` is the time from switching the machine on until it is switched off: cancelling
it is a power cut, so nothing is reported and nothing is cleaned up in the API.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from interlace.api.computedomain import NODE_CLIQUE_LABEL
from interlace.api.core import Lease, Node
from interlace.kube.client import Client
from interlace.kube.errors import AlreadyExists, KubeError, NotFound
from interlace.kube.events import Recorder
from interlace.kube.informer import Informer
from interlace.kube.log import get_logger
from interlace.sim.kubelet.dra import Plugins
from interlace.sim.kubelet.hardware import Tray
from interlace.sim.kubelet.output import Finite, serve_logs
from interlace.sim.kubelet.podobject import BoundPod
from interlace.sim.kubelet.pods import PodWorker
from interlace.sim.kubelet.process import end_processes
from interlace.sim.kubelet.programs import Programs
from interlace.sim.kubelet.settings import KubeletSettings
from interlace.sim.kubelet.token import TokenRequest
from interlace.sim.plane import Plane

_log = get_logger("simulated-kubelet")

REGISTRAR = "var/lib/kubelet/plugins_registry"
PLUGINS = "var/lib/kubelet/plugins"
CDI = "var/run/cdi"
_LEASES = "kube-node-lease"
_STATUS_BEATS = 10
"""Renewals of the Lease to one look at the own Node."""
TOKEN_LIFE = 3607
"""Seconds, as kubelet asks for by default."""
TOKEN_RENEWAL = 0.8
"""Part of its life after which kubelet replaces a token."""
TOKEN_RETRY = 10.0


class HollowNode:
    """A simulated machine with a simulated kubelet."""

    def __init__(self, tray: Tray, *, plane: Plane, programs: Programs, settings: KubeletSettings) -> None:
        self.tray = tray
        self.plane = plane
        self.programs = programs
        self.settings = settings
        self.workers: dict[str, PodWorker] = {}
        """By pod uid."""
        self.on_pod: Callable[[PodWorker, str], None] = lambda _worker, _what: None
        self.finite: Finite | None = None
        """Runs programs that end by themselves; with it the node has a port for their logs."""
        self.boot_id = ""
        self.plugins = Plugins(tray.root / REGISTRAR)
        self.client: Client
        self.recorder: Recorder
        self.http: aiohttp.ClientSession
        self._pods_seen = 0
        self._group: asyncio.TaskGroup

    @property
    def cdi_root(self) -> Path:
        """Where drivers put CDI specs."""
        return self.tray.root / CDI

    def next_address(self) -> str:
        """An address for one more pod; they come round after 250."""
        self._pods_seen += 1
        return f"{self.tray.network}.{self._pods_seen % 250 + 2}"

    def pod_dir(self, pod: BoundPod) -> Path:
        """Folder of the pod on the machine, as below ``/var/lib/kubelet/pods``."""
        return self.tray.root / "var/lib/kubelet/pods" / pod.metadata.uid

    def worker(self, *, component: str) -> PodWorker | None:
        """The worker of our own program ``component`` on this node, if one runs."""
        for worker in self.workers.values():
            if any(record.component == component for record in worker.records):
                return worker
        return None

    async def run(self) -> None:
        """Boot, register, serve pods; until cancelled. Raises KubeError if it cannot register."""
        self._boot()
        config = self.plane.credentials(f"system:node:{self.tray.name}", groups=["system:nodes"])
        async with (
            Client(config, user_agent=f"simulated-kubelet/{self.tray.name}") as self.client,
            aiohttp.ClientSession() as self.http,
            contextlib.AsyncExitStack() as stack,
        ):
            self.recorder = Recorder(self.client, component="simulated-kubelet", host=self.tray.name)
            port = await stack.enter_async_context(serve_logs(self)) if self.finite is not None else None
            await self._register(port)
            pods = Informer(self.client, BoundPod, fields=f"spec.nodeName={self.tray.name}")
            pods.on_change(self._on_pod)
            async with asyncio.TaskGroup() as self._group:
                self._group.create_task(self.recorder.run())
                self._group.create_task(self._beat())
                self._group.create_task(self.plugins.run(every=self.settings.plugin_scan))
                self._group.create_task(pods.run())

    async def cut_power(self) -> None:
        """What a power cut does to the machine itself; call it after ``run`` was cancelled."""
        await end_processes(self.tray.root)
        self.workers.clear()
        await self.plugins.close()
        for volatile in ("run", "var/run", REGISTRAR):
            shutil.rmtree(self.tray.root / volatile, ignore_errors=True)

    # the machine

    def _boot(self) -> None:
        root = self.tray.root
        for folder in (REGISTRAR, PLUGINS, CDI, "run", "etc"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        self.boot_id = str(uuid.uuid4())
        self.programs.equip(self)

    async def _register(self, port: int | None) -> None:
        name = self.tray.name
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "arm64",
            "interlace.dev/simulated": "true",
        }
        if self.tray.gpus:
            labels["nvidia.com/gpu.present"] = "true"
        if self.tray.clique:
            labels[NODE_CLIQUE_LABEL] = self.tray.clique
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels | self.tray.labels},
        }
        with contextlib.suppress(AlreadyExists):
            await self.client.create(Node, node)
        capacity = {"cpu": "144", "memory": "960Gi", "pods": "110"}
        if self.tray.gpus:
            capacity["nvidia.com/gpu"] = str(self.tray.gpus)
        status: dict[str, Any] = {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [
                {"type": "InternalIP", "address": self.tray.address},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "bootID": self.boot_id,
                "machineID": name,
                "systemUUID": name,
                "kernelVersion": "simulated",
                "osImage": "simulated",
                "containerRuntimeVersion": "simulated://0",
                "kubeletVersion": self.plane.version,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "arm64",
            },
            "conditions": [_ready()],
        }
        if port is not None:
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
        await self.client.merge_patch(Node, name, {"status": status}, subresource="status")
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": _LEASES},
            "spec": self._lease_spec(),
        }
        with contextlib.suppress(AlreadyExists):
            await self.client.create(Lease, lease, namespace=_LEASES)

    def _lease_spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.tray.name,
            "leaseDurationSeconds": int(4 * self.settings.lease),
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }

    async def _beat(self) -> None:
        """Renew the Lease, and see to it that the Node is called Ready: after a late renewal nobody else will."""
        loop, renewed = asyncio.get_running_loop(), float("-inf")
        for beat in itertools.count(1):
            before = renewed
            try:
                await self.client.merge_patch(Lease, self.tray.name, {"spec": self._lease_spec()}, namespace=_LEASES)
                renewed = loop.time()
                if beat % _STATUS_BEATS == 0 or before + 2 * self.settings.lease < renewed:
                    await self._stay_ready()
            except KubeError as error:
                _log.warning("lease not renewed", node=self.tray.name, error=str(error))
            await asyncio.sleep(self.settings.lease)

    async def _stay_ready(self) -> None:
        """As a kubelet does every 10 s: say again what the control plane has written over."""
        with contextlib.suppress(NotFound):
            node = await self.client.get(Node, self.tray.name)
            if any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
                patch = {"status": {"conditions": [_ready()]}}
                await self.client.merge_patch(Node, self.tray.name, patch, subresource="status")
                _log.warning("called Ready again", node=self.tray.name)

    # pods

    def _on_pod(self, old: BoundPod | None, new: BoundPod | None) -> None:
        if new is None:
            if old is not None and (worker := self.workers.get(old.metadata.uid)):
                worker.vanish()
            return
        worker = self.workers.get(new.metadata.uid)
        if worker is not None:
            worker.update(new)
        elif new.status.phase not in {"Succeeded", "Failed"} or new.metadata.deletion_timestamp:
            worker = PodWorker(new, node=self)
            self.workers[new.metadata.uid] = worker
            self.on_pod(worker, "bound")
            self._group.create_task(self._serve(worker))

    async def _serve(self, worker: PodWorker) -> None:
        try:
            await worker.run()
        finally:
            self.workers.pop(worker.pod.metadata.uid, None)
            shutil.rmtree(self.pod_dir(worker.pod), ignore_errors=True)

    async def service_account_env(self, pod: BoundPod, pod_dir: Path) -> dict[str, str]:
        """Write the pod's token and CA as kubelet does and return the variables that point to the server."""
        if not any(self.programs.runs(container.get("command", [])) for container in pod.spec.containers):
            return {}
        folder = pod_dir / "serviceaccount"
        folder.mkdir(parents=True, exist_ok=True)
        config = self.plane.credentials("unused")
        (folder / "ca.crt").write_bytes(config.ca or b"")
        (folder / "namespace").write_text(pod.metadata.namespace)
        await self._renew_token(pod, folder)
        host, _, port = self.plane.url.removeprefix("https://").partition(":")
        return {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "INTERLACE_SERVICE_ACCOUNT_DIR": str(folder),
        }

    async def keep_token(self, pod: BoundPod, pod_dir: Path) -> None:
        """Renew the pod's token when most of its life is over, until cancelled."""
        wait = TOKEN_LIFE * TOKEN_RENEWAL
        while True:
            await asyncio.sleep(wait)
            try:
                await self._renew_token(pod, pod_dir / "serviceaccount")
                wait = TOKEN_LIFE * TOKEN_RENEWAL
            except KubeError as error:
                _log.warning("token not renewed", pod=pod.metadata.name, error=str(error))
                wait = TOKEN_RETRY

    async def _renew_token(self, pod: BoundPod, folder: Path) -> None:
        """Put a new token in place of the old one, in one step."""
        token = await self._request_token(pod, pod.spec.service_account_name or "default")
        new = folder / "token.new"
        new.touch(mode=0o600)
        new.write_text(token)
        new.rename(folder / "token")

    async def _request_token(self, pod: BoundPod, account: str) -> str:
        """A token of ``account`` bound to ``pod`` (and so to this node), from the TokenRequest API."""
        answer = await self.client.create(
            TokenRequest,
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "expirationSeconds": TOKEN_LIFE,
                    "boundObjectRef": {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": pod.metadata.name,
                        "uid": pod.metadata.uid,
                    },
                },
            },
            namespace=pod.metadata.namespace,
            name=account,
            subresource="token",
        )
        return answer.status.token


def _ready() -> dict[str, str]:
    """The condition of a Node whose kubelet runs."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "Ready",
        "status": "True",
        "reason": "SimulatedKubelet",
        "message": "simulated kubelet is running",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }

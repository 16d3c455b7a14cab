"""One node around a real agent: API objects, an imex-host that obeys, and kubelet's side of the sockets."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import aiohttp
import msgspec

from interlace.api.computedomain import (
    API_VERSION,
    CHANNEL_CLASS,
    CLIQUE_LABEL,
    DOMAIN_LABEL,
    DOMAIN_NAME_ANNOTATION,
    DOMAIN_NAMESPACE_ANNOTATION,
    DRIVER,
    ComputeDomainClique,
)
from interlace.api.core import Namespace, Node, Pod
from interlace.api.resource import ResourceClaim, ResourceSlice
from interlace.imex.order import Order, Release, State, decode, encode
from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.untyped import Discovery, apply_manifest
from interlace.manifests import manifests
from interlace.node import agent
from interlace.node.facts import FabricState, GpuFabric
from interlace.node.settings import AgentSettings
from interlace.sim.kubelet.dra import Claim, Plugins
from interlace.sim.kubelet.token import TokenRequest
from interlace.sim.plane import AuditRecord, Plane
from tests.holding import hold
from tests.waiting import eventually

SYSTEM = "interlace-system"
TEAM = "team"
CLUSTER = "8d9b8a9e-0b63-4c2f-9d34-3e5f7f1f0a11"
WITHIN = 20.0
_numbers = itertools.count(1)


class Gpus:
    """GPUs whose fabric can change."""

    def __init__(self, clique: int) -> None:
        self.gpus = [
            GpuFabric(
                uuid="GPU-1", state=FabricState.COMPLETED, cluster_uuid=CLUSTER, clique=clique, product="simulated"
            )
        ]

        self.fault: Exception | None = None
        self._once: tuple[Exception, asyncio.Event] | None = None
        self._seen: asyncio.Event | None = None

    def read_once(self, fault: Exception) -> asyncio.Event:
        """Fail once; the event is set at the second good reading after it, when the first has had its effect."""
        self._once = fault, asyncio.Event()
        return self._once[1]

    async def read(self) -> list[GpuFabric]:
        if self._seen is not None and self._once is None:
            self._seen.set()
        if self._once is not None:
            fault, seen = self._once
            if self._seen is seen:
                self._once = None
            else:
                self._seen = seen
                raise fault
        if self.fault is not None:
            raise self.fault
        return self.gpus


class Host:
    """The imex-host's socket; with ``prompt`` it is ready for an order at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.prompt = True
        self.peers: Literal["Unknown", "Connected"] = "Connected"
        self.state = State()
        self.heard: list[Order | Release] = []
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self) -> None:
        server = await asyncio.start_unix_server(self._talk, str(self.path))
        async with server:
            await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        writer.write(encode(self.state))
        try:
            while line := await reader.readline():
                message = decode(line)
                assert isinstance(message, Order | Release)
                self.heard.append(message)
                if self.prompt:
                    self.obey()
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def obey(self) -> None:
        """Do what was said last."""
        last = self.heard[-1]
        if isinstance(last, Order):
            self.say(State(domain=last.domain, index=last.index, phase="Ready", peers=self.peers))
        elif last.domain == self.state.domain:
            self.say(State())

    def say(self, state: State) -> None:
        self.state = state
        for writer in self._writers:
            writer.write(encode(state))


class World:
    """A node of its own within a shared control plane."""

    def __init__(self, plane: Plane, admin: Client, folder: Path) -> None:
        number = next(_numbers)
        self.plane = plane
        self.admin = admin
        self.node = f"tray-{number}"
        self.clique = f"{CLUSTER}.{number}"
        self.gpus = Gpus(number)
        self.folder = folder
        self.host = Host(folder / "host.sock")
        (folder / "devices").write_text("Character devices:\n235 nvidia-caps-imex-channels\n")
        self.settings = AgentSettings(
            node_name=self.node,
            namespace=SYSTEM,
            cdi_root=folder / "cdi",
            plugins_dir=folder / "p",
            registrar_dir=folder / "r",
            proc_devices=folder / "devices",
            proc_params=folder / "params",
            imex_socket=self.host.path,
            http_host="127.0.0.1",
            fabric_interval=0.1,
            fabric_interval_unsettled=0.1,
            report_after=0.5,
        )
        self.settings.registrar_dir.mkdir()
        self.kubelet = Plugins(self.settings.registrar_dir)
        self.config: Config | None = None

    async def prepare_node(self) -> None:
        """A Node, the agent's pod on it, and the token that kubelet would give the pod."""
        await self.admin.create(Node, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}})
        pod = await self.pod(f"agent-{self.node}", namespace=SYSTEM, serviceAccountName="interlace-agent")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid}
        answer = await self.admin.create(
            TokenRequest,
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": 3607, "boundObjectRef": bound},
            },
            namespace=SYSTEM,
            name="interlace-agent",
            subresource="token",
        )
        config = self.plane.credentials("unused")
        self.config = Config(server=config.server, ca=config.ca, token=answer.status.token)

    async def pod(self, name: str, *, namespace: str = TEAM, **spec: Any) -> Pod:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"nodeName": self.node, "containers": [{"name": "c", "image": "example.com/c:1"}], **spec},
        }
        return await self.admin.create(Pod, body, namespace=namespace)

    async def claim(self, domain: str, **more: Any) -> Claim:
        """A claim of the domain, allocated here and reserved for a pod that exists; ``more``: opaque parameters."""
        name = f"worker-{next(_numbers)}"
        opaque = {
            "driver": DRIVER,
            "parameters": dict(
                sorted(
                    {
                        "apiVersion": API_VERSION,
                        "kind": "ComputeDomainChannelConfig",
                        "domainID": domain,
                        **more,
                    }.items()
                )
            ),
        }
        request = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
        await self.admin.create(
            ResourceClaim,
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": TEAM, "labels": {DOMAIN_LABEL: domain}},
                "spec": {"devices": {"requests": [request], "config": [{"requests": ["channel"], "opaque": opaque}]}},
            },
            namespace=TEAM,
        )
        pod = await self.pod(name, resourceClaims=[{"name": "channel", "resourceClaimName": name}])
        result = {"request": "channel", "driver": DRIVER, "pool": self.node, "device": "channel-0"}
        config = {"source": "FromClaim", "requests": ["channel"], "opaque": opaque}
        # The server takes from here which node's agent may report.
        only = {"key": "metadata.name", "operator": "In", "values": [self.node]}
        here = {"nodeSelectorTerms": [{"matchFields": [only]}]}
        made = await self.admin.merge_patch(
            ResourceClaim,
            name,
            {
                "status": {
                    "allocation": {"devices": {"results": [result], "config": [config]}, "nodeSelector": here},
                    "reservedFor": [{"resource": "pods", "name": name, "uid": pod.metadata.uid}],
                }
            },
            namespace=TEAM,
            subresource="status",
        )
        return Claim(namespace=TEAM, name=name, uid=made.metadata.uid)

    async def join(self, domain: str, *, index: int = 0, namespace: str = TEAM) -> None:
        """What the controller writes for a member."""
        name = f"{domain}.{self.clique}"
        row = {"nodeName": self.node, "ipAddress": "10.0.0.1", "cliqueID": self.clique, "index": index}
        await self.admin.apply(
            ComputeDomainClique,
            {
                "apiVersion": API_VERSION,
                "kind": "ComputeDomainClique",
                "metadata": {
                    "name": name,
                    "namespace": SYSTEM,
                    "labels": {DOMAIN_LABEL: domain, CLIQUE_LABEL: self.clique},
                    "annotations": {DOMAIN_NAME_ANNOTATION: "dom", DOMAIN_NAMESPACE_ANNOTATION: namespace},
                },
                "daemons": [row],
            },
            name=name,
            namespace=SYSTEM,
            manager="test",
        )

    async def leave(self, domain: str) -> None:
        await self.admin.delete(ComputeDomainClique, f"{domain}.{self.clique}", namespace=SYSTEM)

    def agent(self, **changes: Any) -> AbstractAsyncContextManager[asyncio.Task[None]]:
        """The agent as a task, registered with kubelet when the context is entered."""
        return hold(self._agent(**changes))

    @asynccontextmanager
    async def _agent(self, **changes: Any) -> AsyncIterator[asyncio.Task[None]]:
        assert self.config is not None
        settings = msgspec.structs.replace(self.settings, **changes)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(agent.serve(settings, config=self.config, facts=self.gpus))
            try:
                await eventually(self.kubelet.names, within=WITHIN, what="registration")
                yield task
            finally:
                task.cancel()

    async def published(self) -> ResourceSlice:
        """The slice, once there is one."""
        found = await eventually(self.slice, within=WITHIN, what="the slice")
        assert found is not None
        return found

    async def slice(self) -> ResourceSlice | None:
        found = await self.admin.list(ResourceSlice, fields=f"spec.nodeName={self.node}")
        return found.items[0] if found.items else None

    async def attributes(self) -> dict[str, str | int | None]:
        """Attributes of the one device."""
        found = await self.slice()
        if found is None:
            return {}
        [device] = found.spec.devices
        return {name: a.string if a.int_ is None else a.int_ for name, a in device.attributes.items()}

    async def conditions(self, claim: Claim) -> dict[str, tuple[str, str]]:
        """What the claim's status says of our device."""
        found = await self.admin.get(ResourceClaim, claim.name, namespace=TEAM)
        return {c.type: (c.status, c.reason) for device in found.status.devices for c in device.conditions or ()}

    async def prepare(self, claim: Claim, *, deadline: float = WITHIN) -> list[str]:
        return await self.kubelet.prepare(DRIVER, [claim], deadline=deadline)

    async def unprepare(self, claim: Claim) -> None:
        await self.kubelet.unprepare(DRIVER, [claim], deadline=WITHIN)

    def specs(self) -> list[str]:
        return sorted(path.name for path in self.settings.cdi_root.glob("*"))

    def requests(self) -> list[AuditRecord]:
        """Requests of this node's agent, watches apart."""
        user = f"system:serviceaccount:{SYSTEM}:interlace-agent"
        mine = [record for record in self.plane.audit() if record.user == user and record.verb != "watch"]
        return [r for r in mine if self.node in r.name or r.namespace == TEAM or r.verb == "list"]


async def install(plane: Plane) -> None:
    """What the manifests install, but no workloads: CRDs, classes, accounts and rights."""
    async with Client(plane.credentials("admin", groups=["system:masters"]), user_agent="test") as admin:
        discovery = Discovery(admin)
        workloads = {"Deployment", "DaemonSet"}
        for manifest in [m for m in manifests(namespace=SYSTEM) if m["kind"] not in workloads]:
            await eventually(
                partial(apply_manifest, admin, manifest, manager="test", discovery=discovery), within=WITHIN
            )
        await admin.create(Namespace, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        # A controller of a whole cluster makes it; the embedded server has none here.
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": TEAM}}
        await apply_manifest(admin, account, manager="test", discovery=discovery)


@asynccontextmanager
async def run_world(plane: Plane) -> AsyncIterator[World]:
    """A world with its kubelet and host running. Its folder is short: socket paths may have 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="il-"))
    try:
        async with Client(plane.credentials("admin", groups=["system:masters"]), user_agent="test") as admin:
            world = World(plane, admin, folder)
            await world.prepare_node()
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(world.host.serve()), group.create_task(world.kubelet.run(every=0.02))]
                try:
                    yield world
                finally:
                    for task in tasks:
                        task.cancel()
                    await world.kubelet.close()
    finally:
        shutil.rmtree(folder)


async def ask(port: int, path: str) -> tuple[int, str]:
    """An HTTP question to the agent."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()

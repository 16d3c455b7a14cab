"""Thin nodes: ``python -m bench.scale.thin SPEC`` plays many machines to an API server from one process. Simulated.

For API server, scheduler and controller a thin node is a node as any other: Node, Lease, ResourceSlice, the Pods of
our DaemonSets, the requests and the two watches that its agent has. There are no files, no sockets, no
``nvidia-imex`` and no agent behind it: nothing is prepared, only said to be, once the node stands in the node map.
Invariant: a line ``ready`` on stdout says that all nodes are registered and watched; the process dies with its parent.
"""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from interlace.api.computedomain import CLIQUE_LABEL, DRIVER, NODE_CLIQUE_LABEL, ComputeDomainClique
from interlace.api.core import Lease, Node
from interlace.api.resource import ResourceClaim, ResourcePool, ResourceSlice, ResourceSliceSpec
from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound
from interlace.kube.informer import Informer
from interlace.kube.log import configure
from interlace.kube.program import until_signal
from interlace.kube.queue import WorkQueue, work
from interlace.node.demand import ClaimRef, our_devices
from interlace.node.fabric import Fabric
from interlace.node.offer import devices
from interlace.node.slices import slice_name
from interlace.node.standing import Standing, Verdict, body
from interlace.sim.kubelet.podobject import BoundPod

READY: Final = "ready"
THIN: Final = "interlace.dev/thin"
"""Label of thin nodes."""
AT_ONCE: Final = 24
"""Requests on their way."""
LATE: Final = 3.0
"""Periods after which a renewal is so late that the control plane may have acted on it."""
_LEASES: Final = "kube-node-lease"
_PR_SET_PDEATHSIG: Final = 1


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: what of a ``Config`` control planes use."""

    ca: bytes
    token: str | None = None
    cert: bytes | None = None
    key: bytes | None = None

    @classmethod
    def of(cls, config: Config) -> Login:
        """Raises TypeError for credentials that are not in memory."""
        cert, key = config.client_cert, config.client_key
        if isinstance(cert, Path) or isinstance(key, Path) or config.ca is None:
            raise TypeError("credentials of a control plane are in memory")
        return cls(ca=config.ca, token=config.token, cert=cert, key=key)

    def config(self, server: str) -> Config:
        """The whole."""
        return Config(server=server, ca=self.ca, token=self.token, client_cert=self.cert, client_key=self.key)


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What to play."""

    server: str
    kubelet: Login
    agent: Login
    namespace: str
    """Of our components."""
    count: int
    per_clique: int
    rack: str
    """uuid of the fabric: the cliques of thin nodes are their own."""
    lease: float


class ThinNode(msgspec.Struct, frozen=True, kw_only=True):
    """One machine."""

    name: str
    clique: str
    number: int

    @property
    def address(self) -> str:
        """Of its only Pods' host; nothing listens there."""
        return f"10.{self.number >> 8 & 255}.{self.number & 255}.1"


def build(spec: Spec) -> list[ThinNode]:
    """All of them."""
    return [
        ThinNode(name=f"thin-{number:04d}", clique=f"{spec.rack}.{number // spec.per_clique}", number=number)
        for number in range(spec.count)
    ]


class Player:
    """Plays the nodes of a spec until cancelled."""

    def __init__(self, spec: Spec, *, kubelet: Client, agent: Client) -> None:
        self._spec = spec
        self._kubelet = kubelet
        self._agent = agent
        self._nodes = {node.name: node for node in build(spec)}
        self._pods: Informer[BoundPod] = Informer(kubelet, BoundPod)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(base=0.2, cap=5.0)
        self._rows: dict[str, set[tuple[str, int]]] = defaultdict(set)
        """Node to uid of a domain and index, as the node's own watch shows it."""
        self._told: dict[str, str] = {}
        """Uid of a Pod to what was said of it last."""
        self._addresses: dict[str, int] = defaultdict(int)
        self._renewed: dict[str, float] = {}
        """Node to when its Lease was renewed last, in loop time."""

    async def run(self) -> None:
        """Register, say that it is done, and go on."""
        limit = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for node in self._nodes.values():
                group.create_task(self._register(node, limit))
        self._pods.on_change(self._pod_changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(work(self._queue, self._play, workers=AT_ONCE))
            group.create_task(self._beat())
            for some in _batches(list(self._nodes.values())):
                watches: list[Informer[Any]] = []
                for node in some:
                    watches += [self._follow_cliques(node), self._follow_slice(node)]
                for watch in watches:
                    group.create_task(watch.run())
                for watch in watches:  # a thousand handshakes at once would fail each other
                    await watch.synced()
            print(READY, flush=True)

    def _follow_cliques(self, node: ThinNode) -> Informer[ComputeDomainClique]:
        watch = Informer(
            self._agent,
            ComputeDomainClique,
            namespace=self._spec.namespace,
            labels=f"{CLIQUE_LABEL}={node.clique}",
        )
        watch.on_change(lambda old, new: self._clique_changed(node.name, old, new))
        return watch

    def _follow_slice(self, node: ThinNode) -> Informer[ResourceSlice]:
        return Informer(self._agent, ResourceSlice, fields=f"spec.nodeName={node.name},spec.driver={DRIVER}")

    async def _register(self, node: ThinNode, limit: asyncio.Semaphore) -> None:
        labels = {
            "kubernetes.io/hostname": node.name,
            "kubernetes.io/os": "linux",
            "interlace.dev/simulated": "true",
            THIN: "true",
            "nvidia.com/gpu.present": "true",
            NODE_CLIQUE_LABEL: node.clique,
        }
        capacity = {"cpu": "144", "memory": "960Gi", "pods": "110", "nvidia.com/gpu": "4"}
        spec = ResourceSliceSpec(
            driver=DRIVER,
            node_name=node.name,
            pool=ResourcePool(name=node.name, generation=1, resource_slice_count=1),
            devices=devices(Fabric(clique=node.clique)),
        )
        resource, name = ResourceSlice.resource, slice_name(node.name)
        slice_ = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
        lease = {"metadata": {"name": node.name, "namespace": _LEASES}, "spec": _lease(node.name, self._spec.lease)}
        async with limit:
            await self._create(Node, {"metadata": {"name": node.name, "labels": labels}})
            status = {
                "capacity": capacity,
                "allocatable": capacity,
                "addresses": [{"type": "InternalIP", "address": node.address}],
                "conditions": [_condition("Ready", good=True)],
            }
            await self._kubelet.merge_patch(Node, node.name, {"status": status}, subresource="status")
            await self._create(Lease, lease, namespace=_LEASES)
            await self._agent.apply(ResourceSlice, slice_, name=name, manager=DRIVER)

    async def _create(self, kind: type[Any], content: dict[str, Any], *, namespace: str | None = None) -> None:
        try:
            await self._kubelet.create(kind, content, namespace=namespace)
        except AlreadyExists:
            return

    async def _beat(self) -> None:
        """Renew all Leases, evenly over the time."""
        loop, names = asyncio.get_running_loop(), list(self._nodes)
        limit = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            began = loop.time()
            for number in range(sys.maxsize):
                due = began + number * self._spec.lease / len(names)
                await asyncio.sleep(max(0.0, due - loop.time()))
                async with limit:
                    pass  # no more renewals than connections are on their way
                group.create_task(self._renew(names[number % len(names)], limit))

    async def _renew(self, name: str, limit: asyncio.Semaphore) -> None:
        async with limit:
            try:
                await self._kubelet.merge_patch(
                    Lease, name, {"spec": _lease(name, self._spec.lease)}, namespace=_LEASES
                )
                now, before = asyncio.get_running_loop().time(), self._renewed.get(name, 0.0)
                self._renewed[name] = now
                if before and now - before > LATE * self._spec.lease:  # the node may have been called lost meanwhile
                    status = {"conditions": [_condition("Ready", good=True)]}
                    await self._kubelet.merge_patch(Node, name, {"status": status}, subresource="status")
            except KubeError as error:
                print(f"lease of {name} not renewed: {error}", file=sys.stderr)

    def _clique_changed(self, node: str, old: ComputeDomainClique | None, new: ComputeDomainClique | None) -> None:
        rows = self._rows[node]
        for clique in (old, new):
            if clique is None:
                continue
            uid = clique.metadata.name.partition(".")[0]
            found = {(uid, row.index) for row in clique.daemons if row.node_name == node}
            if clique is old:
                rows -= found
            else:
                rows |= found
        if new is not None and any(row.node_name == node for row in new.daemons):
            for pod in self._pods.items():
                if pod.spec.node_name == node and pod.spec.resource_claims:
                    self._queue.add((pod.metadata.namespace, pod.metadata.name))

    def _pod_changed(self, old: BoundPod | None, new: BoundPod | None) -> None:
        if new is None:
            if old is not None:
                self._told.pop(old.metadata.uid, None)
        elif new.spec.node_name in self._nodes:
            self._queue.add((new.metadata.namespace, new.metadata.name))

    async def _play(self, key: tuple[str, str]) -> None:
        """Bring one Pod to where it should be."""
        pod = self._pods.get(key[1], key[0])
        if pod is None:
            return
        node, uid = self._nodes[pod.spec.node_name], pod.metadata.uid
        wanted = "end" if pod.metadata.deletion_timestamp else "run"
        if self._told.get(uid) == wanted:
            return
        try:
            if wanted == "end":
                await self._kubelet.delete(
                    BoundPod, pod.metadata.name, namespace=pod.metadata.namespace, uid=uid, grace_period=0
                )
            elif await self._prepare(pod, node):
                await self._say_running(pod, node)
            else:
                return
        except (NotFound, Conflict, Invalid):
            return  # gone, or not allocated any more
        self._told[uid] = wanted

    async def _prepare(self, pod: BoundPod, node: ThinNode) -> bool:
        """The two requests of an agent for each claim; False while the node is in no node map of its domain."""
        for entry in pod.status.resource_claim_statuses:
            if entry.resource_claim_name is None:
                continue
            claim = await self._agent.get(ResourceClaim, entry.resource_claim_name, namespace=pod.metadata.namespace)
            domain = claim.metadata.labels.get("resource.nvidia.com/computeDomain", "")
            index = next((index for uid, index in self._rows[node.name] if uid == domain), None)
            held = our_devices(claim, node=node.name)
            if index is None or not held:
                return False
            meta = claim.metadata
            standing = Standing(
                claim=ClaimRef(namespace=meta.namespace, name=meta.name, uid=meta.uid),
                devices=held,
                domain=domain,
                clique=node.clique,
                index=index,
                ready=Verdict(good=True, reason="Prepared", message="said by a thin node (simulated)"),
            )
            await self._agent.apply(
                ResourceClaim,
                body(standing, since={"Ready": _now()}),
                name=meta.name,
                namespace=meta.namespace,
                manager=DRIVER,
                subresource="status",
            )
        return len(pod.status.resource_claim_statuses) >= len(pod.spec.resource_claims)

    async def _say_running(self, pod: BoundPod, node: ThinNode) -> None:
        self._addresses[node.name] += 1
        address = node.address.removesuffix(".1") + f".{self._addresses[node.name] % 250 + 2}"
        status = {
            "phase": "Running",
            "hostIP": node.address,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": _now(),
            "conditions": [_condition(kind, good=True) for kind in ("PodScheduled", "ContainersReady", "Ready")],
        }
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        await self._kubelet.merge_patch(
            BoundPod, pod.metadata.name, patch, namespace=pod.metadata.namespace, subresource="status"
        )


def _batches(nodes: list[ThinNode]) -> Iterator[list[ThinNode]]:
    for first in range(0, len(nodes), AT_ONCE):
        yield nodes[first : first + AT_ONCE]


def _lease(name: str, period: float) -> dict[str, Any]:
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"holderIdentity": name, "leaseDurationSeconds": int(4 * period), "renewTime": moment}


def _condition(kind: str, *, good: bool) -> dict[str, Any]:
    return {"type": kind, "status": "True" if good else "False", "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def play(spec: Spec) -> None:
    """Until cancelled."""
    async with (
        Client(spec.kubelet.config(spec.server), user_agent="thin-kubelet", qps=0) as kubelet,
        Client(spec.agent.config(spec.server), user_agent="interlace-agent/thin", qps=0) as agent,
    ):
        await Player(spec, kubelet=kubelet, agent=agent).run()


def main() -> None:
    """Entry point."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    configure("error", json=False)
    spec = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Spec)
    asyncio.run(until_signal(play(spec)))


if __name__ == "__main__":
    main()

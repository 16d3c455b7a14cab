"""The scheduler's book-keeping: what is on the nodes and which devices are given, including what is only decided.

Invariant: from the decision until the server's answer has come back through the watch, a pod counts on its node
and a device counts as taken; so nothing is given twice while writes are under way.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import msgspec

from interlace.sim.platform.devicekinds import Allocation, ResourceClaim
from interlace.sim.platform.kinds import Node, Pod
from interlace.sim.platform.scheduling.devices import DeviceId
from interlace.sim.platform.scheduling.snapshot import NodeInfo, PodInfo, Snapshot, amounts, describe

_DIGITS = re.compile(r"(\d+)")


class NodeLedger:
    """Nodes with the pods on them; a node's value is rebuilt only when something on it changed."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._room: dict[str, dict[str, int]] = {}
        self._pods: defaultdict[str, dict[str, PodInfo]] = defaultdict(dict)
        self._place: dict[str, str] = {}
        self._assumed: set[str] = set()
        self._built: dict[str, NodeInfo] = {}
        self._order: list[str] = []

    def set_node(self, node: Node) -> None:
        name = node.metadata.name
        if name not in self._nodes:
            self._order = sorted([*self._order, name], key=_natural)
        self._nodes[name] = node
        self._room[name] = amounts(node.status.allocatable or node.status.capacity, {})
        self._built.pop(name, None)

    def drop_node(self, name: str) -> None:
        if self._nodes.pop(name, None) is not None:
            self._order.remove(name)
            del self._room[name]
        self._built.pop(name, None)

    def set_pod(self, pod: Pod) -> None:
        """Take over what the server says; a pod without a node keeps the node that was decided for it."""
        uid = pod.metadata.uid
        if pod.finished:
            self.drop_pod(uid)
        elif pod.spec.node_name:
            self._put(describe(pod), pod.spec.node_name)
            self._assumed.discard(uid)

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count the pod on the node although the binding is still to be written."""
        self._put(pod, node)
        self._assumed.add(pod.uid)

    def forget(self, uid: str) -> None:
        """The binding failed: undo ``assume``, unless the server has shown the pod on its node meanwhile."""
        if uid in self._assumed:
            self.drop_pod(uid)

    def drop_pod(self, uid: str) -> None:
        self._assumed.discard(uid)
        node = self._place.pop(uid, None)
        if node is not None:
            self._pods[node].pop(uid, None)
            if not self._pods[node]:
                del self._pods[node]
            self._built.pop(node, None)

    def is_placed(self, uid: str) -> bool:
        """Whether the pod counts on a node."""
        return uid in self._place

    def snapshot(self, namespaces: Mapping[str, Mapping[str, str]]) -> Snapshot:
        """Everything as immutable values, nodes in natural order of their names."""
        for name in self._order:
            if name not in self._built:
                self._built[name] = self._build(name)
        return Snapshot(nodes=tuple(self._built[name] for name in self._order), namespaces=namespaces)

    def _put(self, pod: PodInfo, node: str) -> None:
        before = self._place.get(pod.uid)
        if before is not None and before != node:
            self.drop_pod(pod.uid)
        self._pods[node][pod.uid] = pod
        self._place[pod.uid] = node
        self._built.pop(node, None)

    def _build(self, name: str) -> NodeInfo:
        node = self._nodes[name]
        pods = tuple(self._pods[name].values()) if name in self._pods else ()
        requested: dict[str, int] = {}
        for pod in pods:
            for resource, amount in pod.requests.items():
                requested[resource] = requested.get(resource, 0) + amount
        return NodeInfo(
            name=name,
            labels=node.metadata.labels,
            taints=tuple(node.spec.taints),
            unschedulable=node.spec.unschedulable,
            allocatable=self._room[name],
            requested=requested,
            pods=pods,
        )


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in _DIGITS.split(name) if part)


class DeviceLedger:
    """Who holds which device, and claims whose allocation is decided or written but not yet seen."""

    def __init__(self) -> None:
        self._holders: defaultdict[DeviceId, set[str]] = defaultdict(set)
        self._seen: dict[str, tuple[int, tuple[DeviceId, ...]]] = {}
        self._pending: dict[str, tuple[DeviceId, ...]] = {}
        self._written: dict[str, ResourceClaim] = {}

    @property
    def taken(self) -> AbstractSet[DeviceId]:
        """All devices that somebody holds or is about to hold (a live view)."""
        return self._holders.keys()

    def set_claim(self, claim: ResourceClaim) -> None:
        """Take over what the server says."""
        self._update(claim.metadata.uid, version(claim), devices_of(allocation_of(claim)))

    def drop_claim(self, uid: str) -> None:
        """The claim is gone, and whatever it held is free."""
        held = self._held(uid)
        self._written.pop(uid, None)
        self._seen.pop(uid, None)
        self._pending.pop(uid, None)
        self._move(uid, held)

    def reserve(self, uid: str, allocation: Allocation) -> None:
        """Hold the devices of a decision."""
        held = self._held(uid)
        self._pending[uid] = devices_of(allocation)
        self._move(uid, held)

    def settle(self, claim: ResourceClaim) -> None:
        """The server answered a write with ``claim``: it counts until the watch has shown it, or something newer."""
        uid = claim.metadata.uid
        if uid in self._seen:
            self._written[uid] = claim
            self._update(uid, *self._seen[uid])

    def release(self, uid: str) -> None:
        """The decision was not written: give its devices back."""
        if uid not in self._written:
            held = self._held(uid)
            self._pending.pop(uid, None)
            self._move(uid, held)

    def is_pending(self, uid: str) -> bool:
        """Whether devices are decided for the claim and the write is under way."""
        return uid in self._pending and uid not in self._written

    def newest(self, claim: ResourceClaim) -> ResourceClaim:
        """The newer of the claim that the watch has shown and the one that the server answered."""
        written = self._written.get(claim.metadata.uid)
        return written if written is not None and version(written) > version(claim) else claim

    def _update(self, uid: str, seen: int, devices: tuple[DeviceId, ...]) -> None:
        held = self._held(uid)
        self._seen[uid] = (seen, devices)
        written = self._written.get(uid)
        if written is not None and seen >= version(written):
            del self._written[uid]
            self._pending.pop(uid, None)
        self._move(uid, held)

    def _held(self, uid: str) -> set[DeviceId]:
        _, seen = self._seen.get(uid, (0, ()))
        return {*seen, *self._pending.get(uid, ())}

    def _move(self, uid: str, before: set[DeviceId]) -> None:
        """Bring the index from what the claim held to what it holds."""
        now = self._held(uid)
        for device in before - now:
            self._holders[device].discard(uid)
            if not self._holders[device]:
                del self._holders[device]
        for device in now - before:
            self._holders[device].add(uid)


def version(claim: ResourceClaim) -> int:
    """The resourceVersion, which compares as a number within one resource (as Kubernetes 1.35 and later promise)."""
    return int(claim.metadata.resource_version or 0)


def allocation_of(claim: ResourceClaim) -> Allocation | None:
    """The decoded allocation."""
    return msgspec.json.decode(claim.status.allocation, type=Allocation) if claim.allocated else None


def devices_of(allocation: Allocation | None) -> tuple[DeviceId, ...]:
    """The devices that an allocation takes; administrative access takes none."""
    if allocation is None:
        return ()
    return tuple(
        (result.driver, result.pool, result.device) for result in allocation.devices.results if not result.admin_access
    )

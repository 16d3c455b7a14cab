"""Stand-in for kube-scheduler (simulated): one decision after the other, writes side by side.

The writes are those of the real one, in its order: the claim's finalizer (PUT), allocation and reservation in
one PUT of the claim's status, then POST of the binding. Invariant: between a decision and its echo in the
watch, the ledgers hold what was decided. Pods are taken in order of arrival; priorities and preemption are not
simulated.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Mapping

from interlace.api.core import ObjectReference
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, KubeError, NotFound
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.sim.apiserver.quantity import QuantityError
from interlace.sim.platform.conditions import with_condition
from interlace.sim.platform.devicekinds import Allocation, DeviceClass, ResourceClaim, ResourceSlice
from interlace.sim.platform.kinds import Binding, Node, Pod, controller_of
from interlace.sim.platform.scheduling import consumption
from interlace.sim.platform.scheduling.consumption import Use, Waiting
from interlace.sim.platform.scheduling.cycle import Offer, Placed, Refused, decide
from interlace.sim.platform.scheduling.devices import Pool, SelectorError, Unsatisfiable, pools_by_node
from interlace.sim.platform.scheduling.ledger import DeviceLedger, NodeLedger
from interlace.sim.platform.scheduling.matching import CelMatcher
from interlace.sim.platform.scheduling.snapshot import describe
from interlace.sim.platform.views import Key, Views, key_of

COMPONENT = "simulated-scheduler"
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 10.0
"""Back-off of a pod that no node takes, in seconds (podInitialBackoffSeconds, podMaxBackoffSeconds)."""
_PATIENCE = 0.5
"""Seconds that a pod may wait for its claims before its status says so."""
_RETRY_ANYWAY = 30.0
"""Seconds after which a parked pod is looked at even if nothing changed."""
_WRITE_ATTEMPTS = 4

log = get_logger(COMPONENT)


@dataclasses.dataclass(slots=True, kw_only=True)
class _Parked:
    """A pod that could not be placed."""

    failures: int
    since: float
    gated: bool
    """It waits for a claim, so nothing else helps."""


class Scheduler:
    """Places pods that no scheduler but the default one is asked for; ``run`` until cancelled."""

    def __init__(self, views: Views, *, client: Client, recorder: Recorder) -> None:
        self._views = views
        self._client = client
        self._recorder = recorder
        self._queue: WorkQueue[Key] = WorkQueue()
        self._nodes = NodeLedger()
        self._devices = DeviceLedger()
        self._matches = CelMatcher()
        self._parked: dict[Key, _Parked] = {}
        self._pools: Mapping[str, tuple[Pool, ...]] | None = None
        self._writes: asyncio.TaskGroup | None = None
        views.pods.on_change(self._pod_changed)
        views.nodes.on_change(self._node_changed)
        views.claims.on_change(self._claim_changed)
        views.slices.on_change(self._slice_changed)
        views.classes.on_change(self._class_changed)

    async def run(self) -> None:
        """Schedule until cancelled; the views must have synced."""
        async with asyncio.TaskGroup() as writes:
            self._writes = writes
            await work(self._queue, self._schedule, workers=1)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                self._nodes.drop_pod(old.metadata.uid)
                self._parked.pop(key_of(old), None)
                if old.spec.node_name:
                    self._move()
            return
        try:
            self._nodes.set_pod(new)
        except QuantityError as error:
            log.warning("pod not counted", pod="/".join(key_of(new)), reason=str(error))
        if new.spec.node_name:
            if old is None or not old.spec.node_name or new.finished != old.finished:
                self._move()
        elif old is None or _asks_anew(old, new):
            self._queue.add(key_of(new))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None:
            if old is not None:
                self._nodes.drop_node(old.metadata.name)
            return
        if old is not None and (old.spec, old.metadata.labels, old.status.allocatable) == (
            new.spec,
            new.metadata.labels,
            new.status.allocatable,
        ):
            return
        self._nodes.set_node(new)
        self._move()

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is None:
            if old is not None:
                self._devices.drop_claim(old.metadata.uid)
                self._move()
            return
        self._devices.set_claim(new)
        owner = controller_of(new.metadata)
        if old is not None and old.allocated and not new.allocated:
            self._move()
        elif owner is None:
            self._move(gated=True)
        elif old is None and (owner_key := (new.metadata.namespace, owner.name)) in self._parked:
            self._queue.add(owner_key)

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:  # noqa: ARG002
        self._pools = None
        self._move()

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:  # noqa: ARG002
        self._move()

    def _move(self, *, gated: bool = False) -> None:
        """Something changed that may help: look at parked pods again, each not before its back-off is over."""
        now = time.monotonic()
        for key, parked in self._parked.items():
            if parked.gated:
                if gated:
                    self._queue.add(key)
                continue
            wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (parked.failures - 1)) - (now - parked.since)
            self._queue.add_after(key, max(0.0, wait))

    async def _schedule(self, key: Key) -> float | None:
        namespace, name = key
        pod = self._views.pods.get(name, namespace)
        if pod is None or not _wants_scheduling(pod) or self._nodes.is_placed(pod.metadata.uid):
            self._parked.pop(key, None)
            return None
        try:
            use = consumption.consider(pod, lambda claim: self._find(claim, namespace), self._devices.is_pending)
            info = describe(pod)
            snapshot = self._nodes.snapshot(
                {n.metadata.name: n.metadata.labels for n in self._views.namespaces.items()}
            )
            answer = decide(info, snapshot, demand=use.demand, offer=self._offer())
        except Waiting as waiting:
            return await self._wait(key, pod, str(waiting))
        except Unsatisfiable as refusal:
            nodes = len(self._views.nodes)
            return await self._refuse(key, pod, f"0/{nodes} nodes are available: {refusal}.")
        except SelectorError as error:
            message = f'running "DynamicResources" filter plugin: {error}'
            return await self._refuse(key, pod, message, reason="SchedulerError")
        except QuantityError as error:
            return await self._refuse(key, pod, f"pod {namespace}/{name}: {error}", reason="SchedulerError")
        if isinstance(answer, Refused):
            if answer.claims_elsewhere and await self._move_claim(use, pod):
                return 0.0
            return await self._refuse(key, pod, answer.message)
        self._parked.pop(key, None)
        self._nodes.assume(info, answer.node)
        to_allocate = use.to_allocate()
        for claim, allocation in zip(to_allocate, answer.allocations, strict=True):
            self._devices.reserve(claim.metadata.uid, allocation)
        if self._writes is None:
            raise RuntimeError("the scheduler does not run")
        self._writes.create_task(self._commit(key, pod, use, answer))
        return None

    def _find(self, name: str, namespace: str) -> ResourceClaim | None:
        claim = self._views.claims.get(name, namespace)
        return self._devices.newest(claim) if claim is not None else None

    def _offer(self) -> Offer:
        if self._pools is None:
            self._pools = pools_by_node(self._views.slices.items())
        classes = {item.metadata.name: item for item in self._views.classes.items()}
        return Offer(pools=self._pools, taken=self._devices.taken, classes=classes, matches=self._matches)

    async def _commit(self, key: Key, pod: Pod, use: Use, placed: Placed) -> None:
        """Write a decision; if that fails, take it back."""
        namespace, name = key
        allocations = dict(zip((c.metadata.uid for c in use.to_allocate()), placed.allocations, strict=True))
        written: list[ResourceClaim] = []
        body = {
            "metadata": {"name": name, "namespace": namespace, "uid": pod.metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": placed.node},
        }
        try:
            for claim in use.claims:
                written.append(await self._reserve(claim, pod, allocations))  # noqa: PERF401 - kept if a later one fails
            await self._client.create(Binding, body, namespace=namespace, name=name, subresource="binding")
        except KubeError as error:
            await self._take_back(key, pod, use, written, error)
            return
        self._recorder.event(
            _reference(pod), reason="Scheduled", message=f"Successfully assigned {namespace}/{name} to {placed.node}"
        )

    async def _reserve(self, claim: ResourceClaim, pod: Pod, allocations: Mapping[str, Allocation]) -> ResourceClaim:
        """Finalizer, then allocation and reservation; after a conflict, again on what is there now."""
        uid, namespace, name = claim.metadata.uid, claim.metadata.namespace, claim.metadata.name
        allocation = allocations.get(uid)
        for attempt in range(_WRITE_ATTEMPTS):
            try:
                if allocation is not None and consumption.FINALIZER not in claim.metadata.finalizers:
                    claim = await self._client.replace(
                        ResourceClaim, name, consumption.protected(claim), namespace=namespace
                    )
                claim = await self._client.replace(
                    ResourceClaim,
                    name,
                    consumption.reserved(claim, pod, allocation),
                    namespace=namespace,
                    subresource="status",
                )
            except Conflict:
                if attempt == _WRITE_ATTEMPTS - 1:
                    raise
                claim = await self._client.get(ResourceClaim, name, namespace=namespace)
                if claim.metadata.uid != uid or (allocation is not None and claim.allocated):
                    raise
            else:
                break
        self._devices.settle(claim)
        return claim

    async def _take_back(self, key: Key, pod: Pod, use: Use, written: list[ResourceClaim], error: KubeError) -> None:
        """Forget a decision that could not be written; written allocations stay, reservations go."""
        self._nodes.forget(pod.metadata.uid)
        for claim in use.to_allocate():
            self._devices.release(claim.metadata.uid)
        for claim in written:
            try:
                answer = await self._client.replace(
                    ResourceClaim,
                    claim.metadata.name,
                    consumption.unreserved(claim, pod.metadata.uid),
                    namespace=claim.metadata.namespace,
                    subresource="status",
                )
                self._devices.settle(answer)
            except (Conflict, NotFound):
                log.debug("claim changed meanwhile, left to the claim controller", claim=claim.metadata.name)
            except KubeError as problem:
                log.warning("reservation left to the claim controller", claim=claim.metadata.name, reason=str(problem))
        if isinstance(error, NotFound) and self._views.pods.get(key[1], key[0]) is None:
            return
        await self._refuse(key, pod, f"binding rejected: {error}", reason="SchedulerError")
        self._move()

    async def _move_claim(self, use: Use, pod: Pod) -> bool:
        """Take back an allocation that keeps the pod from nodes that would fit, if nobody else uses it."""
        claim = consumption.movable(use.claims, pod.metadata.uid)
        if claim is None:
            return False
        try:
            answer = await self._client.replace(
                ResourceClaim,
                claim.metadata.name,
                consumption.deallocated(claim),
                namespace=claim.metadata.namespace,
                subresource="status",
            )
        except KubeError as error:
            log.warning("claim not deallocated", claim=claim.metadata.name, reason=str(error))
            return False
        self._devices.settle(answer)
        return True

    async def _wait(self, key: Key, pod: Pod, message: str) -> float:
        """Park a pod whose claims are not there; its status says so only after a while."""
        parked = self._parked.get(key)
        now = time.monotonic()
        if parked is None or not parked.gated:
            parked = self._parked[key] = _Parked(failures=1, since=now, gated=True)
        if now - parked.since < _PATIENCE:
            return _PATIENCE
        await self._report(pod, message, reason="Unschedulable")
        return _RETRY_ANYWAY

    async def _refuse(self, key: Key, pod: Pod, message: str, *, reason: str = "Unschedulable") -> float:
        """Park a pod that no node takes, and say why."""
        before = self._parked.get(key)
        failures = before.failures + 1 if before is not None and not before.gated else 1
        self._parked[key] = _Parked(failures=failures, since=time.monotonic(), gated=False)
        self._recorder.event(_reference(pod), reason="FailedScheduling", message=message, warning=True)
        await self._report(pod, message, reason=reason)
        return _RETRY_ANYWAY

    async def _report(self, pod: Pod, message: str, *, reason: str) -> None:
        conditions = with_condition(
            pod.status.conditions, type="PodScheduled", status="False", reason=reason, message=message
        )
        if conditions is None:
            return
        # Nobody else writes conditions of a pod without a node, and the only worker waits here: no version is needed.
        body = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": conditions}}
        try:
            await self._client.merge_patch(
                Pod, pod.metadata.name, body, namespace=pod.metadata.namespace, subresource="status"
            )
        except (Conflict, NotFound):
            log.debug("pod gone before its condition was written", pod=pod.metadata.name)
        except KubeError as error:
            log.warning("condition not written", pod=pod.metadata.name, reason=str(error))


def _wants_scheduling(pod: Pod) -> bool:
    return (
        pod.active
        and not pod.spec.node_name
        and pod.spec.scheduler_name in {"", "default-scheduler"}
        and not pod.spec.scheduling_gates
    )


def _asks_anew(old: Pod, new: Pod) -> bool:
    """Whether an update may change the answer; the pod's own conditions do not."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
    )


def _reference(pod: Pod) -> ObjectReference:
    return ObjectReference(
        api_version="v1",
        kind="Pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
    )

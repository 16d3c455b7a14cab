"""Stand-ins for the DaemonSet, StatefulSet and Job controllers (simulated): shells around the plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from interlace.api.meta import Object
from interlace.kube.client import Client
from interlace.kube.errors import AlreadyExists, NotFound
from interlace.kube.events import Recorder
from interlace.kube.informer import Informer
from interlace.kube.queue import WorkQueue, work
from interlace.sim.platform.kinds import Node, Pod
from interlace.sim.platform.views import Key, Views, key_of
from interlace.sim.platform.workloadkinds import DaemonSet, Job, StatefulSet
from interlace.sim.platform.workloads import daemonset, job, statefulset
from interlace.sim.platform.workloads.podkeeper import PodKeeper
from interlace.sim.platform.workloads.podmaking import PodMaker
from interlace.sim.platform.workloads.sets import STATUS_PAUSE

T = TypeVar("T", bound=Object)
Owner_contra = TypeVar("Owner_contra", bound=Object, contravariant=True)
_WORKERS = 3


class Behaviour(Protocol[Owner_contra]):
    """What tells one workload kind from another."""

    def step(
        self, owner: Owner_contra, pods: Sequence[Pod]
    ) -> tuple[list[Mapping[str, Any]], Sequence[Pod], float | None]:
        """Bodies of pods to make, pods to delete, and seconds after which to look again."""
        ...

    def status(self, owner: Owner_contra, pods: Sequence[Pod]) -> msgspec.Struct:
        """The status to write."""
        ...


class Workloads(Generic[T]):
    """One controller: pods follow the plan of each object; ``run`` until cancelled."""

    def __init__(
        self,
        views: Views,
        informer: Informer[T],
        *,
        kind: type[T],
        behaviour: Behaviour[T],
        client: Client,
        recorder: Recorder,
    ) -> None:
        self._informer = informer
        self._kind = kind
        self._behaviour = behaviour
        self._client = client
        name = kind.resource.kind
        self.queue: WorkQueue[Key] = WorkQueue(name=f"simulated-{name.lower()}")
        self._keeper = PodKeeper(views, client=client, recorder=recorder, kind=name, enqueue=self._pod_changed)
        informer.on_change(self._changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        await work(self.queue, self._sync, workers=_WORKERS)

    def _changed(self, old: T | None, new: T | None) -> None:
        if new is not None:
            if old is None or old.metadata.generation != new.metadata.generation:
                self.queue.add(key_of(new))
        elif old is not None:
            self._keeper.forget(key_of(old))

    def _pod_changed(self, key: Key, counts_anew: bool) -> None:  # noqa: FBT001 - a callback
        self.queue.add_after(key, 0.0 if counts_anew else STATUS_PAUSE)

    async def _sync(self, key: Key) -> float | None:
        owner = self._informer.get(key[1], key[0])
        if owner is None:
            return None
        again: float | None = None
        try:
            if self._keeper.settled(key):
                bodies, doomed, again = self._behaviour.step(owner, self._keeper.pods_of(owner))
                await self._keeper.delete(owner, doomed)
                await self._keeper.create(owner, bodies)
        except AlreadyExists:
            # A pod of the name is still terminating; its end calls again.
            again = STATUS_PAUSE
        finally:
            await self._write_status(key)
        return again

    async def _write_status(self, key: Key) -> None:
        owner = self._informer.get(key[1], key[0])
        if owner is None:
            return
        status = self._behaviour.status(owner, self._keeper.pods_of(owner))
        if status == getattr(owner, "status", None):
            return
        try:
            await self._client.merge_patch(
                self._kind, key[1], {"status": msgspec.to_builtins(status)}, namespace=key[0], subresource="status"
            )
        except NotFound:
            self._keeper.forget(key)


class _Daemons:
    def __init__(self, maker: PodMaker, nodes: Callable[[], Sequence[Node]]) -> None:
        self._maker = maker
        self._nodes = nodes

    def step(
        self, owner: DaemonSet, pods: Sequence[Pod]
    ) -> tuple[list[Mapping[str, Any]], Sequence[Pod], float | None]:
        plan = daemonset.plan(owner, self._nodes(), pods)
        labels = {daemonset.REVISION_LABEL: daemonset.revision(owner)}
        bodies: list[Mapping[str, Any]] = [
            self._maker.make(owner.spec.template, owner=owner, labels=labels, spec=daemonset.pod_spec(owner, node))
            for node in plan.create
        ]
        return (bodies, plan.delete, None)

    def status(self, owner: DaemonSet, pods: Sequence[Pod]) -> msgspec.Struct:
        return daemonset.status(owner, self._nodes(), pods)


class _Stateful:
    def __init__(self, maker: PodMaker) -> None:
        self._maker = maker

    def step(
        self, owner: StatefulSet, pods: Sequence[Pod]
    ) -> tuple[list[Mapping[str, Any]], Sequence[Pod], float | None]:
        plan = statefulset.plan(owner, pods)
        bodies: list[Mapping[str, Any]] = []
        for number in plan.create:
            name = statefulset.pod_name(owner, number)
            spec = (
                {"hostname": name, "subdomain": owner.spec.service_name}
                if owner.spec.service_name
                else {"hostname": name}
            )
            labels = statefulset.labels(owner, number)
            bodies.append(self._maker.make(owner.spec.template, owner=owner, name=name, labels=labels, spec=spec))
        return (bodies, plan.delete, None)

    def status(self, owner: StatefulSet, pods: Sequence[Pod]) -> msgspec.Struct:
        return statefulset.status(owner, pods)


class _Jobs:
    def __init__(self, maker: PodMaker) -> None:
        self._maker = maker

    def step(self, owner: Job, pods: Sequence[Pod]) -> tuple[list[Mapping[str, Any]], Sequence[Pod], float | None]:
        plan = job.plan(owner, pods)
        pause = job.wait_left(pods) if plan.create else 0.0
        if pause > 0:
            return ([], plan.delete, pause)
        bodies: list[Mapping[str, Any]] = []
        for index in plan.create:
            if index is None:
                bodies.append(self._maker.make(owner.spec.template, owner=owner))
                continue
            mark = {job.INDEX_ANNOTATION: str(index)}
            body = self._maker.make(
                owner.spec.template,
                owner=owner,
                labels=mark,
                annotations=mark,
                spec={"hostname": f"{owner.metadata.name}-{index}"},
            )
            body["metadata"]["generateName"] = f"{owner.metadata.name}-{index}-"
            bodies.append(body)
        return (bodies, plan.delete, None)

    def status(self, owner: Job, pods: Sequence[Pod]) -> msgspec.Struct:
        return job.status(owner, pods)


def daemon_sets(views: Views, *, client: Client, recorder: Recorder, maker: PodMaker) -> Workloads[DaemonSet]:
    """The DaemonSet controller, which also looks again when nodes change."""
    made: Workloads[DaemonSet] = Workloads(
        views,
        views.daemon_sets,
        kind=DaemonSet,
        behaviour=_Daemons(maker, views.nodes.items),
        client=client,
        recorder=recorder,
    )

    def node_changed(old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and (old.metadata.labels, old.spec) == (new.metadata.labels, new.spec):
            return
        for daemon_set in views.daemon_sets.items():
            made.queue.add(key_of(daemon_set))

    views.nodes.on_change(node_changed)
    return made


def stateful_sets(views: Views, *, client: Client, recorder: Recorder, maker: PodMaker) -> Workloads[StatefulSet]:
    """The StatefulSet controller."""
    return Workloads(
        views, views.stateful_sets, kind=StatefulSet, behaviour=_Stateful(maker), client=client, recorder=recorder
    )


def jobs(views: Views, *, client: Client, recorder: Recorder, maker: PodMaker) -> Workloads[Job]:
    """The Job controller."""
    return Workloads(views, views.jobs, kind=Job, behaviour=_Jobs(maker), client=client, recorder=recorder)

"""Stand-ins for the Deployment and ReplicaSet controllers (simulated): shells around the plans."""

from __future__ import annotations

import msgspec

from interlace.kube.client import Client
from interlace.kube.errors import AlreadyExists, NotFound
from interlace.kube.events import Recorder
from interlace.kube.queue import WorkQueue, work
from interlace.sim.platform.kinds import controller_of
from interlace.sim.platform.views import Key, Views, key_of
from interlace.sim.platform.workloadkinds import Deployment, ReplicaSet
from interlace.sim.platform.workloads import deployment as deployments
from interlace.sim.platform.workloads import replicaset as replica_sets
from interlace.sim.platform.workloads.podkeeper import PodKeeper
from interlace.sim.platform.workloads.podmaking import PodMaker

STATUS_PAUSE = 0.05
"""Seconds for which changes that touch the status alone are gathered."""
_WORKERS = 5


class ReplicaSets:
    """Keeps as many pods as each ReplicaSet asks for; ``run`` until cancelled."""

    def __init__(self, views: Views, *, client: Client, recorder: Recorder, maker: PodMaker) -> None:
        self._views = views
        self._client = client
        self._maker = maker
        self._queue: WorkQueue[Key] = WorkQueue(name="simulated-replicaset")
        self._keeper = PodKeeper(
            views, client=client, recorder=recorder, kind=ReplicaSet.resource.kind, enqueue=self._pod_changed
        )
        views.replica_sets.on_change(self._changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        await work(self._queue, self._sync, workers=_WORKERS)

    def _changed(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        if new is None:
            if old is not None:
                self._keeper.forget(key_of(old))
        elif old is None or old.spec != new.spec or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp:
            self._queue.add(key_of(new))

    def _pod_changed(self, key: Key, counts_anew: bool) -> None:  # noqa: FBT001 - a callback
        self._queue.add_after(key, 0.0 if counts_anew else STATUS_PAUSE)

    async def _sync(self, key: Key) -> None:
        namespace, name = key
        replica_set = self._views.replica_sets.get(name, namespace)
        if replica_set is None:
            return
        try:
            if self._keeper.settled(key):
                plan = replica_sets.plan(replica_set, self._keeper.pods_of(replica_set))
                await self._keeper.delete(replica_set, plan.delete)
                body = self._maker.make(replica_set.spec.template, owner=replica_set)
                await self._keeper.create(replica_set, [body] * plan.create)
        finally:
            await self._write_status(key)

    async def _write_status(self, key: Key) -> None:
        replica_set = self._views.replica_sets.get(key[1], key[0])
        if replica_set is None:
            return
        status = replica_sets.status(replica_set, self._keeper.pods_of(replica_set))
        if status == replica_set.status:
            return
        try:
            await self._client.merge_patch(
                ReplicaSet, key[1], {"status": status}, namespace=key[0], subresource="status"
            )
        except NotFound:
            self._keeper.forget(key)


class Deployments:
    """Keeps the ReplicaSets of each Deployment; ``run`` until cancelled."""

    def __init__(self, views: Views, *, client: Client) -> None:
        self._views = views
        self._client = client
        self._queue: WorkQueue[Key] = WorkQueue(name="simulated-deployment")
        views.deployments.on_change(self._changed)
        views.replica_sets.on_change(self._set_changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        await work(self._queue, self._sync, workers=_WORKERS)

    def _changed(self, old: Deployment | None, new: Deployment | None) -> None:
        if new is not None and (
            old is None
            or old.spec != new.spec
            or old.metadata.generation != new.metadata.generation
            or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        ):
            self._queue.add(key_of(new))

    def _set_changed(self, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        changed = new or old
        owner = controller_of(changed.metadata) if changed is not None else None
        if changed is None or owner is None or owner.kind != Deployment.resource.kind:
            return
        key = (changed.metadata.namespace, owner.name)
        only_status = old is not None and new is not None and old.spec == new.spec
        self._queue.add_after(key, STATUS_PAUSE if only_status else 0.0)

    async def _sync(self, key: Key) -> None:
        namespace, name = key
        deployment = self._views.deployments.get(name, namespace)
        if deployment is None:
            return
        sets = self._sets_of(deployment)
        plan = deployments.plan(deployment, sets)
        if plan.create is not None:
            try:
                await self._client.create(ReplicaSet, plan.create, namespace=namespace)
            except AlreadyExists:
                known = self._views.replica_sets.get(plan.create["metadata"]["name"], namespace)
                if known is not None and known not in sets:
                    raise
        for replica_set, replicas in plan.scale:
            await self._patch(replica_set, {"spec": {"replicas": replicas}})
        if plan.revise is not None:
            replica_set, revision = plan.revise
            await self._patch(replica_set, {"metadata": {"annotations": {deployments.REVISION: revision}}})
        for replica_set in plan.delete:
            await self._client.delete(
                ReplicaSet, replica_set.metadata.name, namespace=namespace, uid=replica_set.metadata.uid
            )
        if plan.revision and deployment.metadata.annotations.get(deployments.REVISION) != plan.revision:
            annotations = {deployments.REVISION: plan.revision}
            await self._client.merge_patch(
                Deployment, name, {"metadata": {"annotations": annotations}}, namespace=namespace
            )
        status = deployments.status(deployment, self._sets_of(deployment))
        if status != deployment.status:
            try:
                await self._client.merge_patch(
                    Deployment, name, {"status": msgspec.to_builtins(status)}, namespace=namespace, subresource="status"
                )
            except NotFound:
                return

    async def _patch(self, replica_set: ReplicaSet, body: dict[str, object]) -> None:
        await self._client.merge_patch(
            ReplicaSet, replica_set.metadata.name, body, namespace=replica_set.metadata.namespace
        )

    def _sets_of(self, deployment: Deployment) -> list[ReplicaSet]:
        return self._views.replica_sets.by("owner", deployment.metadata.uid)

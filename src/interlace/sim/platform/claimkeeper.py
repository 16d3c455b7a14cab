"""Stand-in for the resourceclaim controller (simulated): makes claims for pods and frees them afterwards.

Invariant: a claim is made once for an entry of a pod, whatever the caches lag; conflicts are left to the queue.
"""

from __future__ import annotations

import asyncio

import msgspec

from interlace.api.core import ObjectReference
from interlace.kube.client import Client
from interlace.kube.errors import Conflict, KubeError, NotFound
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger
from interlace.kube.queue import WorkQueue, work
from interlace.sim.platform.claims import is_done, made_for, make_claim, unmet, upkeep
from interlace.sim.platform.devicekinds import ResourceClaim, ResourceClaimTemplate
from interlace.sim.platform.kinds import Pod
from interlace.sim.platform.scheduling.consumption import FINALIZER
from interlace.sim.platform.views import Key, Views, key_of

_MANAGER = "ResourceClaimController"
_WORKERS = 10
_AFTER_CONFLICT = 0.02

log = get_logger("simulated-resource-claim-controller")


class ClaimKeeper:
    """Keeps claims and pods in step; ``run`` until cancelled."""

    def __init__(self, views: Views, *, client: Client, recorder: Recorder) -> None:
        self._views = views
        self._client = client
        self._recorder = recorder
        self._pods: WorkQueue[Key] = WorkQueue()
        self._claims: WorkQueue[Key] = WorkQueue()
        self._made: dict[tuple[str, str], str] = {}
        """Pod uid and entry: name of the claim, until the watch has shown the pod's status."""
        views.pods.on_change(self._pod_changed)
        views.claims.on_change(self._claim_changed)
        views.templates.on_change(self._template_changed)

    async def run(self) -> None:
        """Work until cancelled; the views must have synced."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work(self._pods, self._sync_pod, workers=_WORKERS))
            tasks.create_task(work(self._claims, self._sync_claim, workers=_WORKERS))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        if pod is None or not pod.spec.resource_claims:
            return
        if new is None or is_done(new):
            self._enqueue_claims(pod)
            for entry in pod.spec.resource_claims:
                self._made.pop((pod.metadata.uid, entry.name), None)
        elif unmet(new):
            self._pods.add(key_of(new))
        else:
            for entry in pod.spec.resource_claims:
                self._made.pop((pod.metadata.uid, entry.name), None)

    def _enqueue_claims(self, pod: Pod) -> None:
        names = {entry.resource_claim_name for entry in pod.spec.resource_claims}
        names |= {entry.resource_claim_name for entry in pod.status.resource_claim_statuses}
        for name in names:
            if name is not None:
                self._claims.add((pod.metadata.namespace, name))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:  # noqa: ARG002
        if new is not None and (new.metadata.deletion_timestamp or new.status.reserved_for or new.metadata.finalizers):
            self._claims.add(key_of(new))

    def _template_changed(self, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> None:
        if old is None and new is not None:
            for pod in self._views.pods.items():
                if pod.metadata.namespace == new.metadata.namespace and any(
                    entry.resource_claim_template_name == new.metadata.name for entry in unmet(pod)
                ):
                    self._pods.add(key_of(pod))

    async def _sync_pod(self, key: Key) -> None:
        namespace, name = key
        pod = self._views.pods.get(name, namespace)
        if pod is None:
            return
        entries = unmet(pod)
        if not entries:
            return
        made: dict[str, str] = {}
        for entry in entries:
            claim = await self._claim_for(pod, entry.name, entry.resource_claim_template_name or "")
            if claim is not None:
                made[entry.name] = claim
        if made:
            await self._tell(pod, made)

    async def _claim_for(self, pod: Pod, entry: str, template_name: str) -> str | None:
        """Name of the claim, made if need be; None while there is no template."""
        known = self._made.get((pod.metadata.uid, entry)) or made_for(
            pod, entry, self._views.claims.by("owner", pod.metadata.uid)
        )
        if known is not None:
            return known
        namespace = pod.metadata.namespace
        template = self._views.templates.get(template_name, namespace)
        if template is None:
            self._complain(pod, f'failed to get ResourceClaimTemplate "{template_name}" in namespace {namespace}')
            return None
        try:
            claim = await self._client.create(ResourceClaim, make_claim(pod, entry, template), namespace=namespace)
        except KubeError as error:
            self._complain(pod, f"PodResourceClaim {entry}: {error}")
            raise
        self._made[pod.metadata.uid, entry] = claim.metadata.name
        return claim.metadata.name

    def _complain(self, pod: Pod, message: str) -> None:
        about = ObjectReference(
            api_version="v1",
            kind="Pod",
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            uid=pod.metadata.uid,
        )
        self._recorder.event(about, reason="FailedResourceClaimCreation", message=message, warning=True)

    async def _tell(self, pod: Pod, made: dict[str, str]) -> None:
        """Names of the claims into the pod's status, by server-side apply; the manager's older entries stay in it."""
        templates = {e.name for e in pod.spec.resource_claims if e.resource_claim_template_name is not None}
        before = {
            entry.name: entry.resource_claim_name
            for entry in pod.status.resource_claim_statuses
            if entry.name in templates and entry.resource_claim_name is not None
        }
        body = {
            "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid},
            "status": {
                "resourceClaimStatuses": [
                    {"name": entry, "resourceClaimName": claim} for entry, claim in {**before, **made}.items()
                ]
            },
        }
        try:
            await self._client.apply(
                Pod,
                body,
                name=pod.metadata.name,
                namespace=pod.metadata.namespace,
                manager=_MANAGER,
                subresource="status",
            )
        except NotFound:
            log.debug("pod gone before its claims were told", pod=pod.metadata.name)

    async def _sync_claim(self, key: Key) -> float | None:
        namespace, name = key
        claim = self._views.claims.get(name, namespace)
        if claim is None:
            return None
        todo = upkeep(claim, lambda pod: self._views.pods.get(pod, namespace))
        try:
            if todo.status is not None:
                claim = await self._client.replace(
                    ResourceClaim, name, todo.status, namespace=namespace, subresource="status"
                )
            if todo.release:
                finalizers = [entry for entry in claim.metadata.finalizers if entry != FINALIZER]
                metadata = msgspec.structs.replace(claim.metadata, finalizers=finalizers)
                await self._client.replace(
                    ResourceClaim, name, msgspec.structs.replace(claim, metadata=metadata), namespace=namespace
                )
            if todo.delete:
                await self._client.delete(ResourceClaim, name, namespace=namespace, uid=claim.metadata.uid)
        except NotFound:
            log.debug("claim gone before its upkeep", claim=name)
        except Conflict:
            # Usually the garbage collector, which deletes the claim at the same moment.
            return _AFTER_CONFLICT
        return None

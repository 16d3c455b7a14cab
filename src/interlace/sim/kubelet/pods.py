"""The life of one pod on a hollow node, in kubelet's order.

Up: claims prepared (all drivers), CDI edits resolved, containers started, probes, status.
Down: containers stopped, claims unprepared, status reported, object deleted. A pod that
vanished from the API (forced deletion) is stopped and unprepared all the same. Invariant:
Unprepare is called exactly for what Prepare was tried for, after the containers of all pods
that share the claim have ended; what the API has to be told is told until it has answered.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aiohttp

from interlace.api.core import ObjectReference
from interlace.api.resource import ResourceClaim
from interlace.kube.errors import Conflict, KubeError, NotFound, ServerError, TooManyRequests, Unreachable
from interlace.kube.log import get_logger
from interlace.sim.kubelet.cdi import ContainerEdits, UnresolvableDeviceError, resolve
from interlace.sim.kubelet.container import ContainerRecord, describe
from interlace.sim.kubelet.dra import Claim, PluginError
from interlace.sim.kubelet.output import Output
from interlace.sim.kubelet.podobject import BoundPod
from interlace.sim.kubelet.stopping import run_until

if TYPE_CHECKING:
    from interlace.sim.kubelet.node import HollowNode

_log = get_logger("simulated-kubelet")


class PodWorker:
    """One pod; ``run`` ends when the pod is gone from the node."""

    def __init__(self, pod: BoundPod, *, node: HollowNode) -> None:
        self.pod = pod
        self.node = node
        self.ip = node.next_address()
        self.records: list[ContainerRecord] = []
        self.prepared_at: float | None = None
        """Wall clock of the last successful Prepare of all claims, None before."""
        self.prepare_calls = 0
        self._claims: dict[str, list[Claim]] = {}
        self._changed = asyncio.Event()
        self._deleted = asyncio.Event()
        self._vanished = False
        self._reporting = asyncio.Lock()
        self._told_ready = False
        self._told_version = 0
        self._overruled = asyncio.Event()
        self._restarts: dict[str, int] = {}
        self._states: dict[str, dict[str, Any]] = {}
        self._ready: dict[str, bool] = {}
        self._kill = {container["name"]: asyncio.Event() for container in pod.spec.containers}
        self._code: int | None = None
        """With which a finite program ended."""
        self.output = Output()

    def update(self, pod: BoundPod) -> None:
        """A newer object of the same pod."""
        if pod.metadata.annotations != self.pod.metadata.annotations or pod.spec != self.pod.spec:
            self._changed.set()
        if _shows_ready(pod) != self._told_ready:
            self._overruled.set()
        self.pod = pod
        if pod.metadata.deletion_timestamp:
            self._deleted.set()

    def vanish(self) -> None:
        """The object is gone from the API."""
        self._vanished = True
        self._deleted.set()

    def kill(self, container: str) -> None:
        """End a container's program as if it had crashed; it is started again."""
        self._kill[container].set()

    async def run(self) -> None:
        """Bring the pod up, keep it, take it down."""
        if self.pod.metadata.deletion_timestamp:
            self._deleted.set()
        while not self._deleted.is_set() and self._code is None:
            try:
                await run_until(self._deleted, self._up())
            except* (KubeError, PluginError) as group:
                # as kubelet does: what failed (a claim, a token, a status) is tried again, Prepare included
                _log.warning("pod is tried again", pod=self.pod.metadata.name, error=str(group.exceptions[0]))
                await asyncio.sleep(self.node.settings.sync_backoff)
        self.output.close()
        await self._stop()
        if self._code is not None:
            await self._ended(self._code)
            await self._deleted.wait()
        await self._down()

    # up

    async def _up(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._report("Pending", reason="ContainerCreating"))
            await asyncio.sleep(self.node.settings.volume_wait)
            edits = await self._prepare()
        await asyncio.sleep(self.node.settings.sandbox)
        pod_dir = self.node.pod_dir(self.pod)
        env = await self.node.service_account_env(self.pod, pod_dir)
        self.records = [
            describe(
                self.pod,
                container,
                edits=edits,
                root=self.node.tray.root,
                pod_dir=pod_dir,
                pod_ip=self.ip,
                host_ip=self.node.tray.address,
                extra_env=env,
            )
            for container in self.pod.spec.containers
        ]
        specs = {container["name"]: container for container in self.pod.spec.containers}
        async with asyncio.TaskGroup() as group:
            for record in self.records:
                spec, runs = specs[record.name], self.node.programs.runs(record.command)
                self._states[record.name] = {"running": {"startedAt": _now()}}
                self._ready[record.name] = not (runs and spec.get("readinessProbe"))
                if runs:
                    group.create_task(self._keep(record))
                    group.create_task(self._probe(record, spec))
            if env:
                group.create_task(self.node.keep_token(self.pod, pod_dir))
            await self._report("Running")
            correct = group.create_task(self._correct())
            self.node.on_pod(self, "running")
            finite = self.node.finite
            if finite is not None and finite.takes(self.pod):
                self._code = await finite.run(self.pod, write=self.output.write)
                correct.cancel()
            else:
                await self._deleted.wait()

    async def _prepare(self) -> ContainerEdits:
        """Prepare all claims, again and again as kubelet would; returns what CDI adds."""
        self.node.on_pod(self, "called")
        while True:
            self._changed.clear()
            try:
                await self._read_claims()
                ids: list[str] = []
                for driver, claims in self._claims.items():
                    self.prepare_calls += 1
                    ids += await self.node.plugins.prepare(driver, claims, deadline=self.node.settings.prepare_deadline)
                edits = resolve(ids, root=self.node.cdi_root)
            except (PluginError, UnresolvableDeviceError) as error:
                self.node.recorder.event(
                    self.reference, reason="FailedPrepareDynamicResources", message=str(error), warning=True
                )
                low, high = self.node.settings.retry
                try:
                    async with asyncio.timeout(random.uniform(low, high)):
                        await self._changed.wait()
                except TimeoutError:
                    pass
            except KubeError as error:  # here, so that the status that is being told is not withdrawn with it
                _log.warning("claims are read again", pod=self.pod.metadata.name, error=str(error))
                await asyncio.sleep(self.node.settings.sync_backoff)
            else:
                self.prepared_at = datetime.now(UTC).timestamp()
                self.node.on_pod(self, "prepared")
                return edits

    async def _read_claims(self) -> None:
        made = {entry.name: entry.resource_claim_name for entry in self.pod.status.resource_claim_statuses}
        claims: dict[str, list[Claim]] = {}
        for entry in self.pod.spec.resource_claims:
            name = entry.resource_claim_name or made.get(entry.name)
            if name is None:
                message = f"pod {self.pod.metadata.name}: no claim was made for {entry.name}"
                raise PluginError(message)
            claim = await self.node.client.get(ResourceClaim, name, namespace=self.pod.metadata.namespace)
            if claim.status.allocation is None or all(
                user.uid != self.pod.metadata.uid for user in claim.status.reserved_for
            ):
                message = f"claim {name} is not allocated and reserved for pod {self.pod.metadata.name}"
                raise PluginError(message)
            for driver in dict.fromkeys(result.driver for result in claim.status.allocation.devices.results):
                claims.setdefault(driver, []).append(
                    Claim(namespace=claim.metadata.namespace, name=claim.metadata.name, uid=claim.metadata.uid)
                )
        self._claims = claims

    async def _keep(self, record: ContainerRecord) -> None:
        """Run a program of ours; start it again when it ends, with back-off."""
        failures = 0
        while True:
            killed = self._kill[record.name]
            killed.clear()
            try:
                await run_until(killed, self.node.programs.run(record, node=self.node))
                reason = "Killed" if killed.is_set() else "Completed"
            except Exception as error:  # noqa: BLE001  a program's failure is its container's state, not ours
                reason = "Error"
                _log.warning("container failed", pod=self.pod.metadata.name, error=f"{type(error).__name__}: {error}")
            failures += 1
            self._restarts[record.name] = failures
            self._ready[record.name] = False
            self._states[record.name] = {"waiting": {"reason": "CrashLoopBackOff", "message": reason}}
            await self._report("Running")
            await asyncio.sleep(self.node.settings.restart_backoff * min(2 ** (failures - 1), 32))
            self._states[record.name] = {"running": {"startedAt": _now()}}

    async def _probe(self, record: ContainerRecord, spec: dict[str, Any]) -> None:
        """The readiness probe, as kubelet does it; an exec startup probe comes before it, on its own grid."""
        probe, startup = spec.get("readinessProbe"), spec.get("startupProbe") or {}
        if "exec" in startup:
            while not await self._ask(record, startup, spec):  # noqa: ASYNC110  a probe asks, nothing tells
                await asyncio.sleep(startup.get("periodSeconds", 10))
        if not probe:
            return
        failed = 0
        while True:
            good = await self._ask(record, probe, spec)
            failed = 0 if good else failed + 1
            before = self._ready[record.name]
            if good or failed >= probe.get("failureThreshold", 3):
                self._ready[record.name] = good
            if self._ready[record.name] != before:
                await self._report("Running")
            # until the first success kubelet probes quickly after the start as well
            await asyncio.sleep(probe.get("periodSeconds", 10) if self._ready[record.name] else 0.2)

    async def _ask(self, record: ContainerRecord, probe: dict[str, Any], spec: dict[str, Any]) -> bool:
        limit = float(probe.get("timeoutSeconds", 1))
        if "exec" in probe:
            return await self.node.programs.execute(record, probe["exec"]["command"], limit=limit)
        target = probe["httpGet"]
        port = target["port"]
        if isinstance(port, str):
            port = next(item["containerPort"] for item in spec.get("ports", []) if item["name"] == port)
        url = f"http://{self.ip}:{port}{target.get('path', '/')}"
        try:
            async with self.node.http.get(url, timeout=aiohttp.ClientTimeout(total=limit)) as answer:
                return answer.status < 400
        except (aiohttp.ClientError, TimeoutError):
            return False

    # down

    def uses(self, claim: Claim) -> bool:
        """Whether Prepare was tried for ``claim``, and its Unprepare is still to come."""
        return any(claim in claims for claims in self._claims.values())

    async def _stop(self) -> None:
        """No container runs any more: unprepare what no other pod uses."""
        others = [worker for worker in self.node.workers.values() if worker is not self]
        for driver, held in self._claims.items():
            # As kubelet: the last pod on the node unprepares what several share.
            claims = [claim for claim in held if not any(other.uses(claim) for other in others)]
            while claims:
                try:
                    await self.node.plugins.unprepare(driver, claims, deadline=self.node.settings.prepare_deadline)
                    break
                except PluginError as error:
                    self.node.recorder.event(
                        self.reference, reason="FailedUnprepareDynamicResources", message=str(error), warning=True
                    )
                    await asyncio.sleep(self.node.settings.unprepare_retry)
        self._claims = {}
        self.records = []
        self.node.on_pod(self, "gone")

    async def _ended(self, code: int) -> None:
        """The containers have ended, and the pod shows it."""
        reason = "Error" if code else "Completed"
        for name in list(self._states):
            self._states[name] = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": _now()}}
            self._ready[name] = False
        await self._report("Failed" if code else "Succeeded")

    async def _down(self) -> None:
        """The object goes last."""
        if self._vanished:
            return
        if self._code is None:
            await self._ended(0)
        await self._insist(
            lambda: self.node.client.delete(
                BoundPod,
                self.pod.metadata.name,
                namespace=self.pod.metadata.namespace,
                uid=self.pod.metadata.uid,
                grace_period=0,
            )
        )

    # status

    @property
    def reference(self) -> ObjectReference:
        """The pod, for events."""
        return ObjectReference(
            api_version="v1",
            kind="Pod",
            namespace=self.pod.metadata.namespace,
            name=self.pod.metadata.name,
            uid=self.pod.metadata.uid,
        )

    async def _report(self, phase: str, *, reason: str = "") -> None:
        """Write the status as it is when its turn comes: an older one must never land after a newer one."""
        async with self._reporting:
            await self._insist(lambda: self._write_status(phase, reason=reason))

    async def _correct(self) -> None:
        """As kubelet: say again how it is when the API shows something else.

        The node life cycle makes Pods of a node unready whose Lease was late, and leaves it to kubelet to undo that.
        """
        while True:
            await self._overruled.wait()
            self._overruled.clear()
            async with self._reporting:  # what is being told is not shown yet
                older = int(self.pod.metadata.resource_version or 0) <= self._told_version
            if not older and _shows_ready(self.pod) != self._told_ready:
                await self._report("Running")

    async def _insist(self, tell: Callable[[], Awaitable[object]]) -> None:
        """Tell the API server until it has answered, whatever that is."""
        while True:
            try:
                await tell()
            except (Unreachable, TooManyRequests, ServerError) as error:
                _log.warning("not told, will try again", pod=self.pod.metadata.name, error=str(error))
                await asyncio.sleep(self.node.settings.sync_backoff)
            except (NotFound, Conflict):  # gone, and perhaps another one of that name is there
                return
            except KubeError as error:
                _log.warning("the server refuses", pod=self.pod.metadata.name, error=str(error))
                return
            else:
                return

    async def _write_status(self, phase: str, *, reason: str) -> None:
        ready = phase == "Running" and all(self._ready.get(c["name"], False) for c in self.pod.spec.containers)
        self._told_ready = ready
        waiting = {"waiting": {"reason": reason or "ContainerCreating"}}
        status: dict[str, Any] = {
            "phase": phase,
            "hostIP": self.node.tray.address,
            "startTime": _now(),
            "conditions": [
                {"type": kind, "status": "True" if value else "False", "lastTransitionTime": _now()}
                for kind, value in (
                    ("PodScheduled", True),
                    ("Initialized", True),
                    ("ContainersReady", ready),
                    ("Ready", ready),
                )
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container.get("image", ""),
                    "imageID": "",
                    "ready": self._ready.get(container["name"], False) and phase == "Running",
                    "started": phase == "Running",
                    "restartCount": self._restarts.get(container["name"], 0),
                    "state": self._states.get(container["name"], waiting),
                }
                for container in self.pod.spec.containers
            ],
        }
        if phase == "Running":
            status |= {"podIP": self.ip, "podIPs": [{"ip": self.ip}]}
        written = await self.node.client.merge_patch(
            BoundPod,
            self.pod.metadata.name,
            {"metadata": {"uid": self.pod.metadata.uid}, "status": status},
            namespace=self.pod.metadata.namespace,
            subresource="status",
        )
        self._told_version = int(written.metadata.resource_version or 0)


def _shows_ready(pod: BoundPod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

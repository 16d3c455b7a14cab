"""One measurement on a cluster: its objects made, its Pods watched, its logs read, everything deleted again.

Needs the rights of an ordinary user of a namespace. Invariant: whatever happens after the first object was created
(an error, a deadline, a cancellation), the objects are deleted before this returns; should this process be killed, the
objects belong to the Job, and Kubernetes deletes the Job some time after it has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final, Literal

import msgspec

from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.kube.client import Client
from interlace.kube.errors import BadRequest, Forbidden, Invalid, KubeError, NotFound
from interlace.kube.informer import Informer
from interlace.kube.untyped import Discovery, Untyped, untyped
from interlace.verify.podlogs import JobLogs, ProbePod, job_logs

JOB_LABEL: Final = "batch.kubernetes.io/job-name"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_CLEANING: Final = 60.0
"""Seconds that deleting may take."""
_AGAIN: Final = 0.3
_PEEK: Final = 2.0
"""Seconds between two looks at the log of the first Pod. A followed log would be cut by load balancers, which end
connections that are silent for minutes, as a test at large sizes is."""
_PEEKED: Final = 20
"""Lines of one look."""

Phase = Literal["waiting", "starting", "measuring", "over"]
Object = dict[str, Any]


class JobStatus(Struct, frozen=True):
    """``batch/v1.JobStatus`` in part."""

    conditions: list[dict[str, Any]] = []


class TestJob(Struct, frozen=True):
    """``batch/v1.Job`` of a test."""

    __test__: ClassVar[bool] = False
    resource: ClassVar[Resource] = Resource("batch", "v1", "jobs", "Job", True)
    metadata: ObjectMeta = ObjectMeta()
    status: JobStatus = JobStatus()

    @property
    def end(self) -> str:
        """``Complete``, ``Failed``, or nothing yet."""
        ends = [each["type"] for each in self.status.conditions if each.get("status") == "True"]
        return next((kind for kind in ("Complete", "Failed") if kind in ends), "")


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a measurement is."""

    phase: Phase
    text: str = ""
    """What it waits for, or the newest line of its log."""
    lines: tuple[str, ...] = ()
    """New lines of the first Pod's log."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Deadlines in seconds."""

    placing: float = 60.0
    """Until all Pods have a node."""
    whole: float = 1800.0
    """Until the Job has ended."""
    peek: float = _PEEK


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a measurement."""

    end: Literal["complete", "failed", "late", "not placed"]
    why: str
    """A clause; empty if it is complete."""
    logs: JobLogs
    seconds: float
    """From the start of the Job."""
    hosts: Mapping[str, str] = {}
    """Pod to node."""


class LeftBehindError(Exception):
    """Objects could not be deleted; the message names them."""


async def launch(
    client: Client,
    objects: Sequence[Object],
    *,
    limits: Limits,
    tell: Callable[[Progress], None] = lambda _progress: None,
) -> Launched:
    """Make ``objects``, of which one is a suspended Job; run it; delete all. ``tell`` is called with what is new.

    Raises the errors of ``kube`` if an object is refused, and LeftBehindError.
    """
    job = next(each for each in objects if each["kind"] == "Job")
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    async with _made(client, objects):
        started = time.monotonic()
        await client.merge_patch(TestJob, name, {"spec": {"suspend": False}}, namespace=namespace)
        watched = _Watched(client, name, namespace=namespace, wanted=int(job["spec"]["completions"]))
        end, why = await watched.until_over(limits, tell)
        seconds = time.monotonic() - started
        logs = await job_logs(client, name, namespace=namespace)
        hosts = watched.hosts()
        tell(Progress(phase="over", text=why))
    return Launched(end=end, why=why, logs=logs, seconds=seconds, hosts=hosts)


@asynccontextmanager
async def _made(client: Client, objects: Sequence[Object]) -> AsyncIterator[None]:
    """The objects, the Job first and the others owned by it; all are gone afterwards."""
    discovery = Discovery(client)
    made: list[tuple[type[Untyped], Object]] = []
    ordered = sorted(objects, key=lambda each: each["kind"] != "Job")
    owner: list[Object] = []
    try:
        for each in ordered:
            kind = untyped(await discovery.resolve(each["apiVersion"], each["kind"]))
            body = {**each, "metadata": {**each["metadata"], "ownerReferences": owner}} if owner else each
            made.append((kind, each))  # before it is: a request that is cut off may have been heard
            try:
                answer = await client.create(kind, body, namespace=each["metadata"]["namespace"])
            except (BadRequest, Forbidden, Invalid, NotFound):  # the server says that it is not there
                made.pop()
                raise
            if each["kind"] == "Job":
                owner = [{"apiVersion": each["apiVersion"], "kind": "Job", "name": answer.metadata.name,
                          "uid": answer.metadata.uid}]  # fmt: skip
        yield
    finally:
        await _delete(client, made)


async def _delete(client: Client, made: Sequence[tuple[type[Untyped], Object]]) -> None:
    """Delete and wait until all is gone, Pods included. Raises LeftBehindError."""
    left = list(made)
    told: set[str] = set()  # kinds: of each there is one
    why = "they were still there"
    try:
        async with asyncio.timeout(_CLEANING):
            while left:
                for kind, each in list(left):
                    meta = each["metadata"]
                    try:
                        if each["kind"] not in told:
                            await client.delete(
                                kind, meta["name"], namespace=meta["namespace"], propagation="Background"
                            )
                            told.add(each["kind"])
                        await client.get(kind, meta["name"], namespace=meta["namespace"])
                    except NotFound:
                        left.remove((kind, each))
                    except Forbidden as error:  # on its way, and not ours to look at
                        why = str(error)
                        if each["kind"] in told:
                            left.remove((kind, each))
                    except KubeError as error:
                        why = str(error)
                if left:
                    await asyncio.sleep(_AGAIN)
            job = next((each["metadata"] for _, each in made if each["kind"] == "Job"), None)
            while job is not None and await _pods(client, job):  # noqa: ASYNC110  deleted ones tell nobody
                await asyncio.sleep(_AGAIN)
    except TimeoutError:
        names = ", ".join(f"{each['kind']} {each['metadata']['namespace']}/{each['metadata']['name']}"
                          for _, each in left) or "its Pods"  # fmt: skip
        raise LeftBehindError(
            f"{names} could not be deleted within {_CLEANING:.0f} s: {why}; delete them with kubectl"
        ) from None


async def _pods(client: Client, job: Mapping[str, Any]) -> bool:
    labels = f"{JOB_LABEL}={job['name']}"
    return bool((await client.list(ProbePod, namespace=job["namespace"], labels=labels)).items)


class _Watched:
    """The Job and its Pods while it runs."""

    def __init__(self, client: Client, name: str, *, namespace: str, wanted: int) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace
        self._wanted = wanted
        self._changed = asyncio.Event()
        self._jobs = Informer(client, TestJob, namespace=namespace, fields=f"metadata.name={name}")
        self._pods = Informer(client, ProbePod, namespace=namespace, labels=f"{JOB_LABEL}={name}")
        for informer in (self._jobs, self._pods):
            informer.on_change(lambda *_: self._changed.set())

    def hosts(self) -> dict[str, str]:
        """Pod to node."""
        return {pod.metadata.name: pod.spec.node_name for pod in self._pods.items()}

    async def until_over(
        self, limits: Limits, tell: Callable[[Progress], None]
    ) -> tuple[Literal["complete", "failed", "late", "not placed"], str]:
        """How it ended, and why."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.run()) for each in (self._jobs, self._pods)]
            tasks.append(group.create_task(self._peek(limits.peek, tell)))
            try:
                async with asyncio.timeout(limits.placing) as placing, asyncio.timeout(limits.whole):
                    told = ""
                    while not (end := self._end()):
                        self._changed.clear()
                        text = self._waits()
                        if not text and placing.when() is not None:
                            placing.reschedule(None)
                        if text != told:
                            told = text
                            tell(Progress(phase="waiting" if text else "starting", text=text))
                        await self._changed.wait()
                return end
            except TimeoutError:
                if self._waits():
                    return "not placed", f"within {limits.placing:.0f} s not all Pods found a node: {self._waits()}"
                return "late", f"it had not ended after {limits.whole:.0f} s"
            finally:
                for task in tasks:
                    task.cancel()

    def _end(self) -> tuple[Literal["complete", "failed"], str] | None:
        job = next(iter(self._jobs.items()), None)
        if job is None or not job.end:
            return None
        if job.end == "Complete":
            return "complete", ""
        said = next((each.get("message", "") for each in job.status.conditions if each["type"] == "Failed"), "")
        return "failed", f"its Job failed: {said}" if said else "its Job failed"

    def _waits(self) -> str:
        """What keeps Pods from having a node; empty if all have one."""
        pods = self._pods.items()
        placed = [pod for pod in pods if pod.spec.node_name]
        if len(placed) >= self._wanted:
            return ""
        said = [
            each.message
            for pod in pods
            for each in pod.status.conditions
            if each.type == "PodScheduled" and each.status == "False" and each.message
        ]
        return said[0] if said else f"{len(placed)} of {self._wanted} Pods have a node"

    async def _peek(self, every: float, tell: Callable[[Progress], None]) -> None:
        """Tell new lines of the first Pod's log, until cancelled."""
        seen: list[str] = []
        while True:
            await asyncio.sleep(every)
            first = next((pod for pod in self._pods.items() if pod.metadata.annotations.get(INDEX) == "0"), None)
            if first is None or not first.spec.node_name:
                continue
            path = ProbePod.resource.path(self._namespace, first.metadata.name, "log")
            query = {"tailLines": str(_PEEKED), "container": first.spec.containers[0].name}
            try:
                text = await self._client.request("GET", path, query=query, headers={"Accept": "*/*"})
            except KubeError:  # not started yet; what matters is read at the end
                continue
            lines = text.decode(errors="replace").splitlines()
            new = lines[lines.index(seen[-1]) + 1 :] if seen and seen[-1] in lines else lines
            if new:
                seen = lines
                tell(Progress(phase="measuring", text=new[-1], lines=tuple(new)))

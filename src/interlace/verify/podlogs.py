"""The logs of a test that ran as a Job: those of its Pods' containers, and what Kubernetes says of the Pods.

Read with the rights of the caller: Pods and their logs must be readable, events need not be. Invariant: each
container is a source of its own, and every line has the time at which the container wrote it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

import msgspec

from interlace.api.core import Event, PodCondition
from interlace.api.meta import ObjectMeta, Resource, Struct
from interlace.kube.client import Client
from interlace.kube.errors import BadRequest, Forbidden, NotFound
from interlace.verify.events import LogEvent
from interlace.verify.reader import read
from interlace.verify.run import Run

LABELS: Final = (
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
)
"""Labels that name the Job of a Pod: Job, older Job, MPIJob, JobSet."""
MOST_BYTES: Final = 64 * 2**20
"""Of one container's log."""
_AT_A_TIME: Final = 8


class Container(Struct, frozen=True):
    """``v1.Container``: the name alone."""

    name: str = ""


class Waiting(Struct, frozen=True):
    """``v1.ContainerStateWaiting``."""

    reason: str = ""
    message: str = ""


class Terminated(Struct, frozen=True):
    """``v1.ContainerStateTerminated``."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class State(Struct, frozen=True):
    """``v1.ContainerState``."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True):
    """``v1.ContainerStatus`` in part."""

    name: str = ""
    state: State = State()
    last_state: State = State()


class ProbePodSpec(Struct, frozen=True):
    """What is read of a test's Pod."""

    node_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []


class ProbePodStatus(Struct, frozen=True):
    """What is read of its status."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class ProbePod(Struct, frozen=True):
    """``v1.Pod`` of a test, with its containers."""

    resource: ClassVar[Resource] = Resource("", "v1", "pods", "Pod", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: ProbePodSpec = ProbePodSpec()
    status: ProbePodStatus = ProbePodStatus()


class JobLogs(msgspec.Struct, frozen=True, kw_only=True):
    """What the Pods of a Job said."""

    runs: tuple[Run, ...]
    events: tuple[LogEvent, ...]
    pods: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """What could not be read, and why, one sentence each."""


async def job_logs(client: Client, name: str, *, namespace: str, most_bytes: int = MOST_BYTES) -> JobLogs:
    """Read the logs of the Pods of Job, MPIJob or JobSet ``name``, each up to ``most_bytes``.

    No Pods: ``pods`` is empty. A container that has not started has no log, and its state is an event. Raises the
    errors of ``kube``, in a group.
    """
    pods = await _pods(client, name, namespace=namespace)
    gate = asyncio.Semaphore(_AT_A_TIME)
    async with asyncio.TaskGroup() as group:
        told = group.create_task(_told(client, pods, namespace=namespace))
        tasks = [
            (pod, container.name, group.create_task(_log(client, pod, container.name, most=most_bytes, gate=gate)))
            for pod in pods
            for container in (*pod.spec.init_containers, *pod.spec.containers)
        ]
    runs: list[Run] = []
    events: list[LogEvent] = [event for pod in pods for event in states(pod)]
    missing: list[str] = []
    events += told.result()[0]
    missing += told.result()[1]
    for pod, container, task in tasks:
        source = f"{pod.metadata.name}/{container}"
        text = task.result()
        if len(text) >= most_bytes:
            missing.append(f"the log of {source} was cut at {most_bytes} bytes")
        runs += await asyncio.to_thread(_read, text, source, events)
    return JobLogs(
        runs=tuple(runs),
        events=tuple(events),
        pods=tuple(pod.metadata.name for pod in pods),
        missing=tuple(missing),
    )


def states(pod: ProbePod) -> Iterator[LogEvent]:
    """What Kubernetes says of a Pod that does not run as it should, as lines of a log."""
    source, born = f"pod/{pod.metadata.name}", pod.metadata.creation_timestamp
    status = pod.status
    if status.reason or status.message:
        yield LogEvent(line=0, level="", text=f"{status.reason}: {status.message}", time=born, source=source)
    for condition in status.conditions:
        if condition.status == "False" and condition.reason in ("Unschedulable", "SchedulingGated"):
            when = condition.last_transition_time or born
            yield LogEvent(line=0, level="", text=f"{condition.reason}: {condition.message}", time=when, source=source)
    for container in (*status.init_container_statuses, *status.container_statuses):
        where = f"{source}/{container.name}"
        for state in (container.last_state, container.state):
            if state.waiting is not None and state.waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
                text = f"waiting: {state.waiting.reason}: {state.waiting.message}"
                yield LogEvent(line=0, level="", text=text, time=born, source=where)
            if state.terminated is not None and state.terminated.exit_code:
                end = state.terminated
                text = f"terminated: {end.reason}: exit code {end.exit_code} {end.message}".rstrip()
                yield LogEvent(line=0, level="", text=text, time=end.finished_at or born, source=where)


async def _pods(client: Client, name: str, *, namespace: str) -> Sequence[ProbePod]:
    for label in LABELS:
        found = await client.list(ProbePod, namespace=namespace, labels=f"{label}={name}")
        if found.items:
            return sorted(found.items, key=lambda pod: pod.metadata.name)
    return ()


async def _log(client: Client, pod: ProbePod, container: str, *, most: int, gate: asyncio.Semaphore) -> bytes:
    """A container's log with times; empty where there is none."""
    path = ProbePod.resource.path(pod.metadata.namespace, pod.metadata.name, "log")
    query = {"container": container, "timestamps": "true", "limitBytes": str(most)}
    async with gate:
        try:
            return await client.request("GET", path, query=query, headers={"Accept": "*/*"})
        except (BadRequest, NotFound):  # not started yet, or gone
            return b""


async def _told(client: Client, pods: Sequence[ProbePod], *, namespace: str) -> tuple[list[LogEvent], list[str]]:
    """Warnings among the events about these Pods, and what may not be read."""
    names = {pod.metadata.name for pod in pods}
    if not names:
        return [], []
    try:
        found = await client.list(Event, namespace=namespace, fields="type=Warning")
    except Forbidden:
        return [], [f"events of namespace {namespace} may not be read"]
    return [
        LogEvent(
            line=0,
            level="",
            text=f"{event.reason}: {event.message}",
            time=event.first_timestamp or event.last_timestamp or event.metadata.creation_timestamp,
            source=f"pod/{event.involved_object.name}/events",
        )
        for event in found.items
        if event.involved_object.name in names and event.type == "Warning"
    ], []


def _read(text: bytes, source: str, events: list[LogEvent]) -> list[Run]:
    return list(read([text], source=source, events=events.append, begun=True))

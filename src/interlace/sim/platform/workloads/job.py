"""What a Job does: run pods until enough have succeeded or too many have failed.

Invariant: an index, or a place among the completions, is never held by two active pods. Success and failure are
counted from the pods that are still there; the finalizers by which the real controller counts deleted ones, pod
failure policies and deadlines are not simulated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from interlace.sim.platform.conditions import seconds_since, timestamp, with_condition
from interlace.sim.platform.kinds import Pod
from interlace.sim.platform.workloadkinds import Job, JobStatus

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
"""Seconds between a failed pod and the next one, doubled with each failure (the real controller: 10 to 600)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Pods to start (an index each, None without indexes), pods that go."""

    create: tuple[int | None, ...] = ()
    delete: tuple[Pod, ...] = ()


def ended(job: Job) -> bool:
    """Whether the Job is complete or has failed."""
    return any(c.get("type") in {"Complete", "Failed"} and c.get("status") == "True" for c in job.status.conditions)


def outcome(job: Job, pods: Sequence[Pod]) -> str:
    """``Complete``, ``Failed`` or nothing yet."""
    succeeded, failed, _ = _sort(pods)
    if job.spec.completion_mode == "Indexed":
        complete = len(_indexes(succeeded)) >= (job.spec.completions or 0)
    elif job.spec.completions is None:
        # A work queue: one success, and all others have ended.
        complete = bool(succeeded) and not any(pod.active for pod in pods)
    else:
        complete = len(succeeded) >= job.spec.completions
    if complete:
        return "Complete"
    return "Failed" if len(failed) > job.spec.backoff_limit else ""


def wait_left(pods: Sequence[Pod]) -> float:
    """Seconds that have to pass until the next pod may start after the newest failure."""
    _, failed, _ = _sort(pods)
    if not failed:
        return 0.0
    pause = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (len(failed) - 1))
    ends = [str(pod.ready_condition.get("lastTransitionTime") or pod.metadata.creation_timestamp) for pod in failed]
    return max(0.0, pause - seconds_since(max(ends)))


def plan(job: Job, pods: Sequence[Pod]) -> Plan:
    """From the pods that the Job controls to what is to be done."""
    active = [pod for pod in pods if pod.active]
    if job.metadata.deletion_timestamp is not None or (ended(job) and not active):
        return Plan()
    if ended(job) or job.spec.suspend or outcome(job, pods):
        return Plan(delete=tuple(active))
    succeeded, _, _ = _sort(pods)
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    if len(active) > parallelism:
        return Plan(delete=tuple(active[parallelism:]))
    room = parallelism - len(active)
    if job.spec.completion_mode == "Indexed":
        # A terminating pod keeps its index until it is gone.
        held = _indexes([*succeeded, *(pod for pod in pods if not pod.finished)])
        missing = [n for n in range(job.spec.completions or 0) if n not in held]
        return Plan(create=tuple(missing[:room]))
    if job.spec.completions is None:
        return Plan(create=(None,) * room if not succeeded else ())
    return Plan(create=(None,) * max(0, min(room, job.spec.completions - len(succeeded) - len(active))))


def status(job: Job, pods: Sequence[Pod]) -> JobStatus:
    """The status for these pods; a Job that has ended keeps what it says."""
    if ended(job):
        return job.status
    succeeded, failed, active = _sort(pods)
    result = outcome(job, pods)
    conditions = [dict(condition) for condition in job.status.conditions]
    completed_at = job.status.completion_time
    if result and not active:
        for kind, reason, message in _ENDINGS[result]:
            conditions = (
                with_condition(conditions, type=kind, status="True", reason=reason, message=message) or conditions
            )
        if result == "Complete":
            completed_at = timestamp()
    return JobStatus(
        active=len(active),
        ready=sum(1 for pod in active if pod.ready),
        succeeded=len(succeeded),
        failed=len(failed),
        terminating=sum(1 for pod in pods if pod.terminating and not pod.finished),
        completed_indexes=ranges(_indexes(succeeded)) if job.spec.completion_mode == "Indexed" else "",
        start_time=job.status.start_time or (None if job.spec.suspend else timestamp()),
        completion_time=completed_at,
        conditions=conditions,
    )


_ENDINGS = {
    "Complete": (
        ("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"),
        ("Complete", "CompletionsReached", "Reached expected number of succeeded pods"),
    ),
    "Failed": (
        ("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
        ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
    ),
}


def _sort(pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod], list[Pod]]:
    """Succeeded, failed, active."""
    succeeded: list[Pod] = []
    failed: list[Pod] = []
    active: list[Pod] = []
    for pod in pods:
        if pod.status.phase == "Succeeded":
            succeeded.append(pod)
        elif pod.status.phase == "Failed":
            failed.append(pod)
        elif not pod.terminating:
            active.append(pod)
    return (succeeded, failed, active)


def _indexes(pods: Iterable[Pod]) -> set[int]:
    texts = (pod.metadata.annotations.get(INDEX_ANNOTATION, "") for pod in pods)
    return {int(text) for text in texts if text.isdecimal()}


def ranges(numbers: Iterable[int]) -> str:
    """``1,3-5,7`` (JobStatus.completedIndexes)."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(str(end) for end in part) for part in parts)

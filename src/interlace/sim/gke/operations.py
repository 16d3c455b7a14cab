"""Long-running operations: what a mutation answers, and what happens when its time has come.

Invariant: an operation changes the store twice at most, when it starts (by its caller) and once when it is due; the
order of what becomes due is the order of the due times.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from interlace.sim.gke.errors import NUMBER

COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
CONTAINER: Final = "https://container.googleapis.com/v1/"
_PACIFIC: Final = timezone(timedelta(hours=-8))
_PHASES: Final = (("CLUSTER_CONFIGURING", 9), ("CLUSTER_DEPLOYING", 12), ("CLUSTER_HEALTHCHECKING", 2))


class OperationFailed(Exception):
    """Why an operation ends with an error: raised by what it does when it is due."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        http: tuple[int, str] | None = None,
        details: tuple[dict[str, Any], ...] = (),
        canonical: str = "RESOURCE_EXHAUSTED",
        message_too: bool = True,
    ) -> None:
        """``message_too`` False leaves the older field ``statusMessage`` out, as the container API may."""
        super().__init__(message)
        self.message = message
        self.code = code
        self.http = http
        self.details = details
        self.canonical = canonical
        self.message_too = message_too


@dataclass(slots=True, kw_only=True)
class Operation:
    """One operation. ``scope`` is ``global``, ``regions/R``, ``zones/Z`` or, of container, ``locations/L``.

    ``target`` is the relative name of the resource, ``lock`` what it keeps others from, times are those of the clock.
    """

    service: str
    name: str
    number: int
    project: str
    scope: str
    type: str
    target: str
    target_id: str
    started: float
    due: float
    effect: Callable[[], None]
    lock: str = ""
    done: bool = False
    ended: float = 0.0
    failure: OperationFailed | None = None

    @property
    def location(self) -> str:
        return self.scope.rpartition("/")[2]

    @property
    def path(self) -> str:
        return f"projects/{self.project}/{self.scope}/operations/{self.name}"

    def progress(self, now: float) -> float:
        """Share of its time that has passed."""
        whole = self.due - self.started
        return 1.0 if self.done else min(0.99, max(0.0, (now - self.started) / whole)) if whole > 0 else 0.0


@dataclass(slots=True)
class Operations:
    """All operations, running and done. ``epoch`` is the wall-clock time of moment 0 of the clock."""

    epoch: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    _all: dict[str, Operation] = field(default_factory=dict)

    def start(
        self,
        *,
        service: str,
        project: str,
        scope: str,
        type: str,
        target: str,
        target_id: str = "0",
        now: float,
        seconds: float,
        effect: Callable[[], None],
        lock: str = "",
    ) -> Operation:
        """A new running operation that will do ``effect`` after ``seconds``."""
        number = len(self._all) + 1
        stamp = int((self.epoch + timedelta(seconds=now)).timestamp() * 1000)
        digest = hashlib.sha256(f"{number} {target}".encode()).hexdigest()
        tail = f"{digest[:13]}-{digest[13:21]}-{digest[21:29]}" if service == "compute" else _uuid(digest)
        operation = Operation(
            service=service,
            name=f"operation-{stamp}-{tail}",
            number=number,
            project=project,
            scope=scope,
            type=type,
            target=target,
            target_id=target_id,
            started=now,
            due=now + seconds,
            effect=effect,
            lock=lock,
        )
        self._all[operation.name] = operation
        return operation

    def settle(self, now: float) -> None:
        """Do what is due at ``now``."""
        for operation in sorted(self.running(), key=lambda each: (each.due, each.number)):
            if operation.due <= now:
                self.finish(operation)

    def finish(self, operation: Operation) -> None:
        """End ``operation``, whatever its due time."""
        if operation.done:
            return
        operation.done, operation.ended = True, operation.due
        try:
            operation.effect()
        except OperationFailed as failure:
            operation.failure = failure

    def running(self) -> list[Operation]:
        return [each for each in self._all.values() if not each.done]

    def holding(self, lock: str) -> Iterator[Operation]:
        """Running operations whose lock is ``lock`` or below it."""
        return (each for each in self.running() if each.lock == lock or each.lock.startswith(f"{lock}/"))

    def find(self, name: str) -> Operation | None:
        return self._all.get(name)

    def all(self, service: str, project: str) -> list[Operation]:
        return [each for each in self._all.values() if (each.service, each.project) == (service, project)]

    def document(self, operation: Operation, now: float) -> dict[str, Any]:
        """The operation as its API shows it."""
        return self._compute(operation, now) if operation.service == "compute" else self._container(operation, now)

    def _moment(self, at: float) -> datetime:
        return self.epoch + timedelta(seconds=at)

    def compute_time(self, at: float) -> str:
        """``at`` as compute writes times."""
        return self._moment(at).astimezone(_PACIFIC).isoformat(timespec="milliseconds")

    def container_time(self, at: float) -> str:
        """``at`` as the container API writes times of operations."""
        return f"{self._moment(at).astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"

    def _compute(self, operation: Operation, now: float) -> dict[str, Any]:
        base = f"{COMPUTE}projects/{operation.project}"
        share = operation.progress(now)
        document: dict[str, Any] = {
            "kind": "compute#operation",
            "id": str(8_500_000_000_000_000_000 + operation.number),
            "name": operation.name,
            "operationType": operation.type,
            "targetLink": f"{COMPUTE}{operation.target}",
            "targetId": operation.target_id,
            "status": "DONE" if operation.done else "RUNNING",
            "user": "admin@example.com",
            "progress": int(share * 100),
            "insertTime": self.compute_time(operation.started),
            "startTime": self.compute_time(operation.started),
            "selfLink": f"{base}/{operation.scope}/operations/{operation.name}",
        }
        kind, _, place = operation.scope.partition("/")
        if place:
            document[kind.removesuffix("s")] = f"{base}/{operation.scope}"
        if operation.done:
            document["endTime"] = self.compute_time(operation.ended)
        failure = operation.failure
        if failure is not None:
            error: dict[str, Any] = {"code": failure.code, "message": failure.message}
            if failure.details:
                error["errorDetails"] = list(failure.details)
            code, text = failure.http or (400, "BAD REQUEST")
            document |= {"error": {"errors": [error]}, "httpErrorStatusCode": code, "httpErrorMessage": text}
        return document

    def _container(self, operation: Operation, now: float) -> dict[str, Any]:
        document: dict[str, Any] = {
            "name": operation.name,
            "zone": operation.location,
            "location": operation.location,
            "operationType": operation.type,
            "status": "DONE" if operation.done else "RUNNING",
            "selfLink": container_link(operation.path, numbered=True),
            "targetLink": container_link(operation.target, numbered=True),
            "startTime": self.container_time(operation.started),
        }
        if operation.done:
            document["endTime"] = self.container_time(operation.ended)
        if operation.type == "CREATE_CLUSTER" and operation.failure is None:
            document["progress"] = {"metrics": list(_metrics(operation.progress(now)))}
        failure = operation.failure
        if failure is not None:
            if failure.message_too:
                document["statusMessage"] = failure.message
            document["error"] = {
                "code": 8 if failure.canonical == "RESOURCE_EXHAUSTED" else 9,
                "message": failure.message,
            }
            if failure.code and failure.message_too:
                condition = {"code": failure.code, "canonicalCode": failure.canonical, "message": failure.message}
                document["nodepoolConditions"] = [condition]
        return document


def container_link(path: str, *, numbered: bool) -> str:
    """URL of a container resource: ``zones/`` when its location is a zone; ``numbered`` as operations write it."""
    parts = path.split("/")
    if numbered:
        parts[1] = NUMBER
    if parts[3].count("-") == 2:
        parts[2] = "zones"
    return CONTAINER + "/".join(parts)


def _metrics(share: float) -> Iterator[Mapping[str, str]]:
    whole = sum(total for _, total in _PHASES)
    left = int(share * whole)
    for name, total in _PHASES:
        yield {"name": name, "intValue": str(min(left, total))}
        yield {"name": f"{name}_TOTAL", "intValue": str(total)}
        left = max(0, left - total)


def _uuid(digest: str) -> str:
    return str(uuid.UUID(digest[:32]))

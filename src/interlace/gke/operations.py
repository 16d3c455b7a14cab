"""Long-running operations: what an answer says about one, and waiting until it has ended.

Invariant: an operation has failed if any of its fields says so: ``error`` of either API, ``statusMessage``, the HTTP
status, or a condition of its node pool. Waiting ends with the operation or at its deadline, and never undoes anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from interlace.gke.bodies.requests import QUERY
from interlace.gke.failures import Late, OperationFailed
from interlace.gke.places import key_of
from interlace.gke.request import Request
from interlace.gke.resource import Key

FIRST_LOOK: Final = 0.2
"""Seconds until the second look at an operation of Kubernetes Engine; later ones come after a part of its age."""
SLOWEST_LOOK: Final = 5.0
_PART: Final = 0.1


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """``scope`` is ``global``, ``regions/R``, ``zones/Z`` or ``locations/L``; ``target`` what it works on, if ours."""

    service: str
    scope: str
    name: str
    kind: str = ""
    """``insert``, ``delete``, ``CREATE_CLUSTER`` and so on."""
    target: Key | None = None
    done: bool = False
    code: str = ""
    message: str = ""
    """The error; empty where it went well or has not ended."""
    progress: float | None = None
    """From 0 to 1, if the API says."""
    detail: str = ""

    @property
    def path(self) -> str:
        """What the journal keeps: ``SERVICE SCOPE NAME``."""
        return f"{self.service} {self.scope} {self.name}"


class Asker(Protocol):
    """The part of a client that is needed here."""

    async def ask(self, request: Request) -> Any:
        """The decoded body of a good answer."""
        ...


def read_operation(body: Any, *, service: str) -> Operation | None:
    """The operation in an answer; None if it is none."""
    if not isinstance(body, Mapping) or not body.get("name") or "status" not in body:
        return None
    if service == "compute":
        if body.get("kind") not in {None, "compute#operation"} or not body.get("operationType"):
            return None
        code, message = _compute_error(body)
        share = body.get("progress")
        progress = share / 100 if isinstance(share, int | float) else None
        scope = _compute_scope(body)
    else:
        code, message = _container_error(body)
        progress = _container_progress(body.get("progress"))
        scope = f"locations/{body.get('location') or body.get('zone') or ''}"
    return Operation(
        service=service,
        scope=scope,
        name=str(body["name"]),
        kind=str(body.get("operationType") or ""),
        target=key_of(str(body.get("targetLink") or "")),
        done=body["status"] == "DONE",
        code=code,
        message=message,
        progress=progress,
        detail=str(body.get("detail") or ""),
    )


def from_path(path: str) -> Operation | None:
    """The operation that a line of the journal names."""
    parts = path.split(" ")
    return Operation(service=parts[0], scope=parts[1], name=parts[2]) if len(parts) == 3 else None


def look(operation: Operation, *, project: str, version: str = "v1") -> Request:
    """The request that reads an operation; of Compute the one that answers as soon as it has ended."""
    if operation.service == "compute":
        path = f"/compute/{version}/projects/{project}/{operation.scope}/operations/{operation.name}/wait"
        return Request(service="compute", method="POST", path=path, query=dict(QUERY))
    path = f"/{version}/projects/{project}/{operation.scope}/operations/{operation.name}"
    return Request(service="container", method="GET", path=path, query=dict(QUERY))


async def finish(
    client: Asker,
    operation: Operation,
    *,
    project: str,
    version: str = "v1",
    what: str,
    within: float,
    told: Callable[[Operation], None] = lambda _: None,
) -> Operation:
    """Wait until ``operation`` has ended well. ``told`` is called with what each look shows.

    Raises OperationFailed, Late after ``within`` seconds, and the errors of a client.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not operation.done:
        asked = loop.time()
        request = look(operation, project=project, version=version)
        answer = read_operation(await client.ask(request), service=operation.service)
        if answer is not None:
            operation = answer
            told(operation)
        now = loop.time()
        if operation.done:
            break
        if now - began >= within:
            raise Late(what, name=operation.name, seconds=within)
        if now - asked < FIRST_LOOK:  # a server that does not wait with its answer
            await asyncio.sleep(min(max(FIRST_LOOK, _PART * (now - began)), SLOWEST_LOOK, began + within - now))
    if operation.message or operation.code:
        raise OperationFailed(what, code=operation.code, message=operation.message or operation.code)
    return operation


def _compute_scope(body: Mapping[str, Any]) -> str:
    for field, name in (("zone", "zones"), ("region", "regions")):
        if body.get(field):
            return f"{name}/{str(body[field]).rstrip('/').rpartition('/')[2]}"
    return "global"


def _compute_error(body: Mapping[str, Any]) -> tuple[str, str]:
    error = body.get("error")
    errors = error.get("errors") if isinstance(error, Mapping) else None
    if errors:
        return str(errors[0].get("code") or ""), "; ".join(
            str(each.get("message") or each.get("code")) for each in errors
        )
    status = body.get("httpErrorStatusCode")
    if isinstance(status, int) and status >= 400:
        message = str(body.get("httpErrorMessage") or "")
        return message, f"HTTP {status} {message}".strip()
    return "", ""


def _container_error(body: Mapping[str, Any]) -> tuple[str, str]:
    conditions = [each for each in body.get("nodepoolConditions") or [] if isinstance(each, Mapping)]
    conditions += [each for each in body.get("clusterConditions") or [] if isinstance(each, Mapping)]
    error = body.get("error")
    said = error.get("message") if isinstance(error, Mapping) and error.get("code", 2) else ""
    message = said or (body.get("statusMessage") if body.get("status") == "DONE" else "") or ""
    code = next((str(each["code"]) for each in conditions if each.get("code") not in {None, "", "UNKNOWN"}), "")
    if not message and code:
        message = str(conditions[0].get("message") or code)
    return code, str(message)


def _container_progress(progress: Any) -> float | None:
    """Share of the steps that metrics ``X`` of ``X_TOTAL`` name."""
    metrics = progress.get("metrics") if isinstance(progress, Mapping) else None
    counts = {
        str(each.get("name")): _whole(each.get("intValue")) for each in metrics or [] if isinstance(each, Mapping)
    }
    total = sum(value for name, value in counts.items() if name.endswith("_TOTAL"))
    if not total:
        return None
    done = sum(
        min(counts.get(name.removesuffix("_TOTAL"), 0), value)
        for name, value in counts.items()
        if name.endswith("_TOTAL")
    )
    return done / total


def _whole(text: Any) -> int:
    try:
        return max(int(text), 0)
    except (TypeError, ValueError):
        return 0

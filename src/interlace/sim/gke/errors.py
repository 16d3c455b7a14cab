"""How the Google APIs say no: one exception, and the JSON that each service makes of it.

The shapes are those of recorded and reported answers (see docs/sim-gke.md); sentences are close to them, not verified.

Invariant: everything that the simulation refuses is a ``Refusal``; a service decides its shape, nobody its content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

NUMBER: Final = "123456789012"
"""Number of every simulated project, as in the links of the container API."""

STATUS: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        409: "ALREADY_EXISTS",
        412: "FAILED_PRECONDITION",
        429: "RESOURCE_EXHAUSTED",
        503: "UNAVAILABLE",
    }
)
_CONTAINER_REASONS: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "badRequest",
        401: "authError",
        403: "forbidden",
        404: "notFound",
        409: "alreadyExists",
        412: "conditionNotMet",
        429: "rateLimitExceeded",
        503: "backendError",
    }
)
_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_REQUEST_INFO: Final = {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": "0x0123456789abcdef"}
_TITLES: Final = {"compute": "Compute Engine API", "container": "Kubernetes Engine API"}


class Refusal(Exception):
    """An answer that is an error. ``reason`` is that of the ``errors`` list, ``status`` the name of the gRPC code."""

    def __init__(
        self,
        code: int,
        message: str,
        reason: str = "",
        *,
        status: str = "",
        details: tuple[dict[str, Any], ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.status = status
        self.details = details
        self.retry_after = retry_after

    def body(self, service: str) -> dict[str, Any]:
        """The JSON of the error as ``service`` writes it."""
        if service == "compute":
            return {"error": self._compute()}
        if service == "container":
            return {"error": self._container()}
        error: dict[str, Any] = {"code": self.code, "message": self.message, "status": self._status()}
        if self.details:
            error["details"] = list(self.details)
        return {"error": error}

    def _status(self) -> str:
        return self.status or STATUS.get(self.code, "UNKNOWN")

    def _compute(self) -> dict[str, Any]:
        reason = self.reason or "invalid"
        limits = reason in {"quotaExceeded", "accessNotConfigured", "rateLimitExceeded"}
        entry = {"message": self.message, "domain": "usageLimits" if limits else "global", "reason": reason}
        if reason == "conditionNotMet":
            entry |= {"locationType": "header", "location": "If-Match"}
        error: dict[str, Any] = {"code": self.code, "message": self.message, "errors": [entry]}
        if self.details:
            error |= {"status": self._status(), "details": list(self.details)}
        return error

    def _container(self) -> dict[str, Any]:
        reason = "failedPrecondition" if self._status() == "FAILED_PRECONDITION" else _CONTAINER_REASONS[self.code]
        entry = {"message": self.message, "domain": "global", "reason": reason}
        error = {"code": self.code, "message": self.message, "errors": [entry], "status": self._status()}
        disabled = any(detail.get("reason") == "SERVICE_DISABLED" for detail in self.details)
        if not disabled and self.code != 503 and not (self.code == 400 and not self.details):
            error["details"] = [*self.details, _REQUEST_INFO]
        elif self.details:
            error["details"] = list(self.details)
        return error


def not_found(service: str, path: str) -> Refusal:
    """404 for a resource of which ``path`` is the relative name."""
    text = f"Not found: {path}." if service == "container" else f"The resource '{path}' was not found"
    return Refusal(404, text, "notFound")


def already_exists(service: str, path: str) -> Refusal:
    """409 for a resource of which ``path`` is the relative name."""
    text = f"Already exists: {path}." if service == "container" else f"The resource '{path}' already exists"
    return Refusal(409, text, "alreadyExists")


def invalid(field: str, value: str, text: str) -> Refusal:
    """400 of compute for a value that cannot be: ``field`` such as ``resource.name``."""
    return Refusal(400, f"Invalid value for field '{field}': '{value}'. {text}", "invalid")


def bad_request(text: str) -> Refusal:
    """400 of container."""
    return Refusal(400, text, "badRequest")


def check_name(field: str, name: str) -> None:
    """400 of container unless ``name`` can be that of a cluster or a pool. Refusal."""
    if not name:
        raise bad_request(f"{field} is required.")
    if len(name) > 40 or not _NAME.fullmatch(name):
        raise bad_request(
            f'Invalid value for field "{field}": "{name}". Must be 1 to 40 lower case letters, digits or hyphens.'
        )


def in_use(kind: str, path: str, user: str) -> Refusal:
    """400 for a resource that ``user`` still refers to."""
    text = f"The {kind} resource '{path}' is already being used by '{user}'"
    return Refusal(400, text, "resourceInUseByAnotherResource")


def not_ready(path: str) -> Refusal:
    """400 for a resource on which an operation still runs."""
    return Refusal(400, f"The resource '{path}' is not ready", "resourceNotReady")


def disabled(service: str) -> Refusal:
    """403 for an API that the project does not use."""
    title = _TITLES.get(service, f"{service}.googleapis.com")
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "SERVICE_DISABLED",
        "domain": "googleapis.com",
        "metadata": {"service": f"{service}.googleapis.com", "consumer": f"projects/{NUMBER}"},
    }
    text = f"{title} has not been used in project {NUMBER} before or it is disabled."
    return Refusal(403, text, "accessNotConfigured", details=(info,))


def has_operation(operation: str) -> Refusal:
    """400 of container: the cluster, or the pool, has a running operation."""
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "CLUSTER_ALREADY_HAS_OPERATION",
        "domain": "container.googleapis.com",
    }
    text = f"Cluster is running incompatible operation {operation}."
    return Refusal(400, text, status="FAILED_PRECONDITION", details=(info,))


def too_many_operations(cluster: str, limit: int) -> Refusal:
    """429 of container: the cluster's pools have as many operations as are allowed."""
    text = f'Cluster "{cluster}" hits the concurrent operations quota {limit}. Please wait for one of them to finish.'
    return Refusal(429, text)

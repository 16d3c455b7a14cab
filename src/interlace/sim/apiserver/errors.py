"""The one error of the server: a ``Status`` object, worded as the real server words it.

    ApiFault    carries the Status that the client gets, and headers

Invariant: whoever raises it has changed nothing in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlace.sim.apiserver.cause import Cause, summary

Causes = Iterable[Cause]


class ApiFault(Exception):
    """An answer other than success."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.headers = dict(headers or {})
        self.status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
        }
        if reason:
            self.status["reason"] = reason
        if details is not None:
            self.status["details"] = dict(details)
        self.status["code"] = code


def qualified(group: str, resource: str) -> str:
    """``resource.group``, or the resource alone in the core group."""
    return f"{resource}.{group}" if group else resource


def _details(group: str, kind: str, name: str, causes: Causes = ()) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if name:
        out["name"] = name
    if group:
        out["group"] = group
    if kind:
        out["kind"] = kind
    listed = [{key: value for key, value in cause.wire().items() if value} for cause in causes]
    if listed:
        out["causes"] = listed
    return out


def not_found(group: str, resource: str, name: str) -> ApiFault:
    """404 for an object."""
    return ApiFault(
        404,
        "NotFound",
        f'{qualified(group, resource)} "{name}" not found',
        details=_details(group, resource, name),
    )


def no_such_path() -> ApiFault:
    """404 for a path that names no resource of the server."""
    return ApiFault(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(group: str, resource: str, name: str, *, deleting: bool = False) -> ApiFault:
    """409 on create."""
    prefix = "object is being deleted: " if deleting else ""
    return ApiFault(
        409,
        "AlreadyExists",
        f'{prefix}{qualified(group, resource)} "{name}" already exists',
        details=_details(group, resource, name),
    )


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, resource: str, name: str, why: str = MODIFIED) -> ApiFault:
    """409 of optimistic concurrency and of preconditions."""
    return ApiFault(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(group, resource)} "{name}": {why}',
        details=_details(group, resource, name),
    )


def apply_conflict(message: str, causes: Causes) -> ApiFault:
    """409 of server-side apply."""
    return ApiFault(409, "Conflict", message, details=_details("", "", "", causes))


def invalid(group: str, kind: str, name: str, causes: Causes) -> ApiFault:
    """422."""
    listed = list(causes)
    return ApiFault(
        422,
        "Invalid",
        f'{qualified(group, kind)} "{name}" is invalid: {summary(listed)}',
        details=_details(group, kind, name, listed),
    )


def bad_request(message: str) -> ApiFault:
    """400."""
    return ApiFault(400, "BadRequest", message)


def unauthorized() -> ApiFault:
    """401."""
    return ApiFault(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, resource: str, name: str, why: str) -> ApiFault:
    """403 by authorization or by admission."""
    named = f'{qualified(group, resource)} "{name}" is' if name else f"{qualified(group, resource)} is"
    return ApiFault(
        403,
        "Forbidden",
        f"{named} forbidden: {why}" if resource else f"forbidden: {why}",
        details=_details(group, resource, name),
    )


def method_not_allowed() -> ApiFault:
    """405."""
    return ApiFault(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={}
    )


def expired(message: str) -> ApiFault:
    """410 with reason Expired."""
    return ApiFault(410, "Expired", message)


def unsupported_media_type() -> ApiFault:
    """415."""
    return ApiFault(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def too_many_requests(message: str, retry_after: int, *, causes: Causes = ()) -> ApiFault:
    """429 with Retry-After in seconds; 0 leaves the header out."""
    details = _details("", "", "", causes)
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    headers = {"Retry-After": str(retry_after)} if retry_after else {}
    return ApiFault(429, "TooManyRequests", message, details=details, headers=headers)


def too_large_version(wanted: int, current: int) -> ApiFault:
    """504: a version that the server has not reached."""
    return ApiFault(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        headers={"Retry-After": "1"},
    )


def plain(message: str) -> ApiFault:
    """500 with a message alone: what an error becomes that the real server did not foresee."""
    return ApiFault(500, "", message)


def internal(message: str) -> ApiFault:
    """500."""
    return ApiFault(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        details={"causes": [{"message": message}]},
    )

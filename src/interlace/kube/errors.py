"""What can go wrong between us and an API server, as one small tree.

::

    KubeError
     ├── ConfigError         kubeconfig, credentials or in-cluster files: fix the input
     ├── Unreachable         no answer: try again later
     ├── Unreadable          an answer that our structs cannot hold: version skew
     ├── UnknownKind         the server does not serve this kind
     ├── LeadershipLost      the Lease went to somebody else, or could not be renewed
     └── ApiError            the server said no
          ├── BadRequest        400
          ├── Unauthorized      401
          ├── Forbidden         403
          ├── NotFound          404
          ├── Conflict          409: read again, then write again
          │    └── AlreadyExists
          ├── Expired           410: list again
          ├── Invalid           422
          ├── TooManyRequests   429
          └── ServerError       5xx

Invariant: the text of each error is one sentence that a user can act on; the class says what
a program does about it.
"""

from __future__ import annotations

import msgspec

from interlace.api.meta import Status


class KubeError(Exception):
    """Base of the errors of this package."""


class ConfigError(KubeError):
    """The kubeconfig, a credential plugin or the in-cluster files cannot be used."""


class Unreachable(KubeError):
    """No connection, a lost connection, or no answer in time. ``url`` names the server."""

    def __init__(self, message: str, *, url: str) -> None:
        super().__init__(message)
        self.url = url


class Unreadable(KubeError):
    """The server sent something that does not decode as the kind that was asked for."""


class UnknownKind(KubeError):
    """Discovery does not list this kind: its CRD is missing, or the server is too old."""


class LeadershipLost(KubeError):
    """The Lease is no longer ours; what ran under it has been cancelled."""


class ApiError(KubeError):
    """The server refused. ``retry_after`` is in seconds where the server named a wait, else None."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        reason: str = "",
        details: Status | None = None,
        method: str = "",
        path: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{method} {path}: {message} ({status}{f' {reason}' if reason else ''})".removeprefix(" : "))
        self.message = message
        self.status = status
        self.reason = reason
        self.details = details
        self.method = method
        self.path = path
        self.retry_after = retry_after


class BadRequest(ApiError):
    """400: the request itself is wrong."""


class Unauthorized(ApiError):
    """401: the credentials are not accepted, also after they were read again."""


class Forbidden(ApiError):
    """403: no right to do this, or an admission plugin refused."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409: the object changed meanwhile, or another field manager owns a field."""


class AlreadyExists(Conflict):
    """409 with reason ``AlreadyExists``: an object of this name is there."""


class Expired(ApiError):
    """410: the version is no longer in the server's history; list again."""


class Invalid(ApiError):
    """422: the object breaks a rule of its kind."""


class TooManyRequests(ApiError):
    """429: slow down; for an eviction, a disruption budget says not now."""


class ServerError(ApiError):
    """5xx: the server failed; try again later."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}


def api_error(
    status: int, body: bytes | Status, *, method: str, path: str, retry_after: float | None = None
) -> ApiError:
    """The error for an answer with this code; ``body`` may be a ``Status``, its JSON, or any text."""
    told = body if isinstance(body, Status) else _status(body)
    message = told.message or (f"no message, reason {told.reason}" if told.reason else f"the server answered {status}")
    if retry_after is None and told.details is not None and told.details.retry_after_seconds:
        retry_after = float(told.details.retry_after_seconds)
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    if told.reason == "AlreadyExists":
        kind = AlreadyExists
    elif told.reason in ("Expired", "Gone"):
        kind = Expired
    return kind(
        message, status=status, reason=told.reason, details=told, method=method, path=path, retry_after=retry_after
    )


def _status(body: bytes) -> Status:
    try:
        return msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        return Status(message=" ".join(body[:300].decode(errors="replace").split()))

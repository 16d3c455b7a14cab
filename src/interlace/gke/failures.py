"""What goes wrong between us and the Google APIs, as leaves of the tree in `errors`.

::

    GkeError
     ├── Refused
     │    ├── CredentialsError   no credentials, or none that Google takes
     │    └── Unreachable        no connection: nothing was sent
     ├── ApiError                the API said no
     ├── Unsure                  the connection broke after a mutation was sent: it may have been carried out
     ├── OperationFailed         a long-running operation ended with an error
     └── Late                    a long-running operation has not ended in its time; it goes on

Invariant: the text says what Google said, on one line that no terminal takes for a command, and `remedies` adds what
can be done about it.
"""

from __future__ import annotations

from interlace.gke.answers import Refusal
from interlace.gke.errors import GkeError, Refused
from interlace.gke.remedies import advice
from interlace.gke.request import Request
from interlace.rules.words import plain


class CredentialsError(Refused):
    """There are no Google credentials, or they cannot be refreshed."""


class Unreachable(Refused):
    """No connection could be made, so nothing was sent."""


class ApiError(GkeError):
    """The API refused ``request``."""

    def __init__(self, request: Request, refusal: Refusal) -> None:
        cause, remedy = advice(refusal.reason, refusal.message, status=refusal.status)
        super().__init__(
            f"{request.method} {request.path}: {plain(refusal.message)} (HTTP {refusal.status}"
            f"{', ' + plain(refusal.reason) if refusal.reason else ''})",
            cause=cause,
            remedy=remedy,
        )
        self.request = request
        self.refusal = refusal

    @property
    def status(self) -> int:
        return self.refusal.status


class Unsure(GkeError):
    """No answer, or one of a broken server: what was asked for may have happened."""

    def __init__(self, request: Request, why: str) -> None:
        super().__init__(
            f"{request.method} {request.path}: no usable answer ({why})",
            cause="The request may have been carried out",
            remedy="Run the same command again: it looks first",
        )
        self.request = request


class OperationFailed(GkeError):
    """``code`` is the API's word for it, such as ``QUOTA_EXCEEDED`` or ``GCE_STOCKOUT``; may be empty."""

    def __init__(self, what: str, *, code: str, message: str) -> None:
        cause, remedy = advice(code, message)
        super().__init__(f"{what}: {plain(message)}", cause=cause, remedy=remedy)
        self.code = code


class Late(GkeError):
    """The operation ``name`` goes on at Google; nothing was undone."""

    def __init__(self, what: str, *, name: str, seconds: float) -> None:
        super().__init__(
            f"{what}: the operation {name} has not ended within {seconds / 60:.0f} min",
            cause="It goes on at Google",
            remedy="Run the same command again to wait on",
        )
        self.name = name

"""What an answer of a Google API means: the error in it, and whether the same request may be sent again. Pure.

Invariant: a mutation is sent again only where the API surely did not take it, or where it knows the request by its id;
in every other case one has to look first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, Final

import msgspec

from interlace.gke.request import Request

SIMULATED: Final = "x-interlace-simulated"
"""Header by which our own simulation says what it is."""

_BUSY: Final = frozenset({"CLUSTER_ALREADY_HAS_OPERATION", "resourceNotReady"})
_IN_USE: Final = frozenset({"resourceInUseByAnotherResource", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"})
_RATE: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"})
_OPERATION: Final = re.compile(r"\boperation-[0-9a-f-]+\b")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP answer; ``headers`` with names in lower case, ``body`` decoded JSON or None."""

    status: int
    headers: Mapping[str, str] = {}
    body: Any = None

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


class Next(Enum):
    """What to do after an answer that is not good, or after none."""

    AGAIN = "again"
    """Send the same request again after a pause."""
    RENEW = "renew"
    """Renew the credentials, then send it again."""
    LOOK = "look"
    """It may have been carried out: look before anything else."""
    STOP = "stop"
    """It was refused; the same request will be refused again."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The error of an answer. ``reason``: the most telling of its reasons, such as ``SERVICE_DISABLED``."""

    status: int
    reason: str
    message: str

    @property
    def busy(self) -> bool:
        """The cluster or network is at work on something else; the same request will be taken later."""
        return self.reason in _BUSY

    @property
    def in_use(self) -> bool:
        """Something else uses it; after a cluster is gone, what it used is set free only by and by."""
        return self.reason in _IN_USE

    @property
    def operation(self) -> str:
        """Name of the operation that the message names, or an empty string."""
        found = _OPERATION.search(self.message)
        return found[0] if found else ""


def refusal(answer: Answer) -> Refusal:
    """Read an error of Compute or Container; anything else becomes its status and first words."""
    error = answer.body.get("error") if isinstance(answer.body, Mapping) else None
    if not isinstance(error, Mapping):
        text = str(answer.body or "").strip().partition("\n")[0][:200]
        return Refusal(status=answer.status, reason="", message=text or f"HTTP {answer.status}")
    return Refusal(
        status=answer.status,
        reason=_reason(error),
        message=str(error.get("message") or f"HTTP {answer.status}").strip(),
    )


def what_next(request: Request, answer: Answer | None) -> Next:
    """Decide; ``answer`` is None when none came (the connection broke, or time was over)."""
    safe = is_safe(request)
    if answer is None:
        return Next.AGAIN if safe else Next.LOOK
    if answer.status == 401:
        return Next.RENEW
    if answer.status == 429 or (answer.status == 403 and refusal(answer).reason in _RATE):
        return Next.AGAIN
    if answer.status >= 500 or answer.status == 408:
        known = answer.status == 503 and "requestId" in request.query
        return Next.AGAIN if safe or known else Next.LOOK
    return Next.STOP


def is_safe(request: Request) -> bool:
    """Whether the request changes nothing: a read, or waiting for an operation."""
    return request.method == "GET" or (
        request.method == "POST" and request.path.endswith(("/wait", ":testIamPermissions"))
    )


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds that the server asks to wait: a number or a date; None where it says nothing that can be read.

    A date is compared with the server's own clock (its ``Date``), since ours may be wrong.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:9])
    moment = _moment(text)
    if moment is None:
        return None
    since = now or _moment(headers.get("date", "")) or datetime.now(UTC)
    return max((moment - since).total_seconds(), 0.0)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def pause(tries: int, *, asked: float | None, chance: float, first: float = 0.5, longest: float = 30.0) -> float:
    """Seconds before try number ``tries`` + 1: what the server asked, and on top a random part of a growing span.

    ``chance`` from 0 to 1 picks the part, so that many clients do not come back together.
    """
    span = min(longest, first * 2.0 ** min(tries - 1, 16))
    return (asked or 0.0) + chance * span if asked is not None else (0.5 + 0.5 * chance) * span


def _reason(error: Mapping[str, Any]) -> str:
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping) and detail.get("reason"):
            return str(detail["reason"])
    errors = error.get("errors")
    for each in errors if isinstance(errors, list) else ():
        if isinstance(each, Mapping) and each.get("reason"):
            return str(each["reason"])
    return str(error.get("status") or "")

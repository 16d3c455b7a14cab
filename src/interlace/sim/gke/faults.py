"""Faults that can be switched on: what goes wrong, for which requests, how often.

Invariant: a fault strikes only requests that it matches and only while it has times left; without faults the simulation
says no for reasons of its state alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Kind(StrEnum):
    """What goes wrong; ``MEANINGS`` says how."""

    UNAUTHENTICATED = "unauthenticated"
    PERMISSION_DENIED = "permission-denied"
    API_DISABLED = "api-disabled"
    QUOTA = "quota"
    NOT_FOUND = "not-found"
    ALREADY_EXISTS = "already-exists"
    ORG_POLICY = "org-policy"
    RATE_LIMIT = "rate-limit"
    UNAVAILABLE = "unavailable"
    NOT_JSON = "not-json"
    DROPPED_BEFORE = "dropped-before"
    DROPPED_AFTER = "dropped-after"
    HAS_OPERATION = "has-operation"
    TOO_MANY_OPERATIONS = "too-many-operations"
    IN_USE = "in-use"
    QUOTA_AT_COMPLETION = "quota-at-completion"
    STOCKOUT = "stockout"
    PARTIAL_STOCKOUT = "partial-stockout"
    CONDITION_NOT_MET = "condition-not-met"
    ERROR_ONLY = "error-only"
    STUCK = "stuck"
    ENROLLED = "enrolled"
    LEFTOVER_FIREWALLS = "leftover-firewalls"


MEANINGS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.UNAUTHENTICATED: "401: the credentials are not taken.",
        Kind.PERMISSION_DENIED: "403: a permission is missing, and named.",
        Kind.API_DISABLED: "403: the API is off (SERVICE_DISABLED).",
        Kind.QUOTA: "403: a quota, noticed at once.",
        Kind.NOT_FOUND: "404: it is not there.",
        Kind.ALREADY_EXISTS: "409: it is there already.",
        Kind.ORG_POLICY: "412: an org policy forbids it.",
        Kind.RATE_LIMIT: "429: too many requests; with Retry-After where retry-after was given.",
        Kind.UNAVAILABLE: "503: the service is not available; Retry-After as above.",
        Kind.NOT_JSON: "502: an HTML page, as a proxy in between answers.",
        Kind.DROPPED_BEFORE: "The connection ends before anything was done.",
        Kind.DROPPED_AFTER: "The connection ends after the change was made, without an answer.",
        Kind.HAS_OPERATION: "400 of container: CLUSTER_ALREADY_HAS_OPERATION.",
        Kind.TOO_MANY_OPERATIONS: "429 of container: too many operations on the pools of the cluster.",
        Kind.IN_USE: "400 of compute: resourceInUseByAnotherResource.",
        Kind.QUOTA_AT_COMPLETION: "The operation ends with QUOTA_EXCEEDED, or GCE_QUOTA_EXCEEDED and a pool in ERROR.",
        Kind.STOCKOUT: "A node pool stays in ERROR (GCE_STOCKOUT); a reservation is not made.",
        Kind.PARTIAL_STOCKOUT: "As stockout, but one node came up: RUNNING_WITH_ERROR.",
        Kind.CONDITION_NOT_MET: "An org policy stops the nodes of a pool: CONDITION_NOT_MET inside the operation.",
        Kind.ERROR_ONLY: "As quota-at-completion, with the field error alone and no statusMessage.",
        Kind.STUCK: "The operation never ends.",
        Kind.ENROLLED: "A cluster without a channel counts as one of REGULAR before its pools are checked.",
        Kind.LEFTOVER_FIREWALLS: "The firewall rules that GKE made stay when the cluster is deleted.",
    }
)
"""One line for each, for help and documentation."""
ANSWERS: Final = frozenset(
    {
        Kind.UNAUTHENTICATED,
        Kind.PERMISSION_DENIED,
        Kind.API_DISABLED,
        Kind.QUOTA,
        Kind.NOT_FOUND,
        Kind.ALREADY_EXISTS,
        Kind.ORG_POLICY,
        Kind.RATE_LIMIT,
        Kind.UNAVAILABLE,
        Kind.NOT_JSON,
        Kind.DROPPED_BEFORE,
        Kind.HAS_OPERATION,
        Kind.TOO_MANY_OPERATIONS,
        Kind.IN_USE,
    }
)
_MUTATING: Final = "^(POST|PUT|PATCH|DELETE) (?!.*/wait$)"


@dataclass(slots=True, kw_only=True)
class Fault:
    """``match`` is a regular expression searched in ``METHOD /path``; empty: every mutation.

    ``times``: how often it strikes, None for ever; ``after``: how many matching requests pass first; ``retry_after``:
    seconds for the header of a 429 or 503, None for no header.
    """

    kind: Kind
    match: str = ""
    times: int | None = 1
    after: int = 0
    retry_after: float | None = None
    struck: int = field(default=0, init=False)
    _passed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        try:
            re.compile(self.match)
        except re.error as error:
            raise ValueError(f"fault {self.kind}: {self.match!r} is no regular expression: {error}") from None

    def strikes(self, request: str) -> bool:
        """Whether it strikes this request, which counts."""
        if not re.search(self.match or _MUTATING, request):
            return False
        if self.times is not None and self.struck >= self.times:
            return False
        if self._passed < self.after:
            self._passed += 1
            return False
        self.struck += 1
        return True

    @classmethod
    def parse(cls, text: str) -> Fault:
        """From ``KIND[@REGEX][,times=N][,after=N][,retry-after=SECONDS]``; ``times=0`` is for ever. ValueError."""
        head, *options = text.split(",")
        name, _, match = head.partition("@")
        known = {kind.value: kind for kind in Kind}
        if name not in known:
            raise ValueError(f"fault {text!r}: there is no fault {name!r}; known are {', '.join(known)}")
        values: dict[str, float] = {}
        for option in options:
            key, _, number = option.partition("=")
            if key not in {"times", "after", "retry-after"} or not re.fullmatch(r"\d+(\.\d+)?", number):
                raise ValueError(f"fault {text!r}: {option!r} is none of times=N, after=N, retry-after=SECONDS")
            values[key] = float(number)
        times = int(values.get("times", 1))
        return cls(
            kind=known[name],
            match=match,
            times=times or None,
            after=int(values.get("after", 0)),
            retry_after=values.get("retry-after"),
        )


@dataclass(slots=True)
class Faults:
    """The switches that are on, in the order in which they were set."""

    active: list[Fault] = field(default_factory=list)

    def add(
        self,
        kind: Kind | str,
        match: str = "",
        *,
        times: int | None = 1,
        after: int = 0,
        retry_after: float | None = None,
    ) -> Fault:
        """Switch one on. The fault that is returned counts how often it struck."""
        fault = Fault(kind=Kind(kind), match=match, times=times, after=after, retry_after=retry_after)
        self.active.append(fault)
        return fault

    def clear(self) -> None:
        """Switch all off."""
        self.active.clear()

    def striking(self, request: str, kinds: Iterable[Kind]) -> Fault | None:
        """The first fault of ``kinds`` that strikes ``METHOD /path``."""
        wanted = frozenset(kinds)
        return next((each for each in self.active if each.kind in wanted and each.strikes(request)), None)

"""What each admission path decides: from a request and what is known of the cluster to a verdict.

Pure but for what ``Injecting`` and ``Find`` look up. Invariant: nothing here writes, so every path is safe under a dry
run and may be called again (``reinvocationPolicy``); a Pod is refused with the sentence that says what to change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from interlace.api.computedomain import ComputeDomain
from interlace.api.meta import ObjectMeta
from interlace.api.webhook import (
    CHECK_CLAIM_PATH,
    CHECK_DOMAIN_PATH,
    CHECK_PATH,
    COMPLETE_CLAIM_PATH,
    DEVICES_PATH,
    INJECT_PATH,
)
from interlace.fabric.devices import AllowList
from interlace.pods import claims, domains, guard
from interlace.pods.review import ALLOWED, Request, Verdict

Decide = Callable[[Request], Awaitable[Verdict]]


class Injecting(Protocol):
    """Injection of Pods, with what it needs to know of the cluster."""

    async def inject(self, request: Request) -> Verdict:
        """The patch that gives the Pod its fabric."""
        ...

    async def check(self, request: Request) -> Verdict:
        """Whether the Pod, as all webhooks left it, still has its fabric."""
        ...


class _Metadata(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


_metadata: Final = msgspec.json.Decoder(_Metadata | None)


Find = Callable[[str, str], Awaitable[ComputeDomain | None]]
"""The ComputeDomain of a uid in a namespace."""


def routes(*, injecting: Injecting, find: Find, mode: guard.Mode, allowed: AllowList) -> dict[str, Decide]:
    """What is decided under each path."""

    async def devices(request: Request) -> Verdict:
        new, old = (_metadata.decode(raw) for raw in (request.object, request.old_object))
        if new is None:
            return ALLOWED
        return guard.check(new.metadata, old=old.metadata if old is not None else None, allowed=allowed, mode=mode)

    async def complete(request: Request) -> Verdict:
        uid = claims.domain_of(request) if request.operation == "CREATE" else ""
        return claims.complete(request, domain=await find(uid, request.namespace)) if uid else ALLOWED

    def created(check: Callable[[Request], Verdict]) -> Decide:
        async def decide(request: Request) -> Verdict:
            return check(request) if request.operation == "CREATE" else ALLOWED

        return decide

    return {
        INJECT_PATH: injecting.inject,
        CHECK_PATH: injecting.check,
        DEVICES_PATH: devices,
        COMPLETE_CLAIM_PATH: complete,
        CHECK_CLAIM_PATH: created(claims.check),
        CHECK_DOMAIN_PATH: created(domains.check),
    }

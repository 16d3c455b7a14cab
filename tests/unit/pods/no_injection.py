"""Stands where look-ups stand, in tests that must not come to them."""

from __future__ import annotations

from interlace.api.computedomain import ComputeDomain
from interlace.pods.review import Request, Verdict


class NoInjection:
    """Never asked."""

    async def inject(self, request: Request) -> Verdict:
        raise AssertionError(request.uid)

    async def check(self, request: Request) -> Verdict:
        raise AssertionError(request.uid)


async def no_domain(_uid: str, _namespace: str) -> ComputeDomain | None:
    """There is none."""
    return None

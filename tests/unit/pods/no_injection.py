"""Stands where injection stands, in tests that must not come to it."""

from __future__ import annotations

from interlace.pods.review import Request, Verdict


class NoInjection:
    """Never asked."""

    async def inject(self, request: Request) -> Verdict:
        raise AssertionError(request.uid)

    async def check(self, request: Request) -> Verdict:
        raise AssertionError(request.uid)

"""A token bucket: so many requests at once, so many a second afterwards.

Invariant: waiters are served in the order in which they asked, and in any interval of t
seconds at most ``burst + rate * t`` of them pass.
"""

from __future__ import annotations

import asyncio


class TokenBucket:
    """``rate`` tokens a second, at most ``burst`` saved up; a rate of 0 or less means no limit."""

    def __init__(self, *, rate: float, burst: int) -> None:
        if burst < 1:
            raise ValueError(f"a token bucket needs a burst of at least 1, not {burst}")
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    async def take(self) -> None:
        """Wait for one token; a cancelled wait gives its token back."""
        if self._rate <= 0:
            return
        self._fill()
        self._tokens -= 1
        if self._tokens >= 0:
            return
        try:
            await asyncio.sleep(-self._tokens / self._rate)
        except asyncio.CancelledError:
            self._tokens += 1
            raise

    def try_take(self) -> bool:
        """One token now, or False."""
        if self._rate > 0:
            self._fill()
            if self._tokens < 1:
                return False
            self._tokens -= 1
        return True

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._at is not None:
            self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._rate)
        self._at = now

"""Waiting for something to become true in a cluster, with a deadline and a sentence when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class NotReachedError(Exception):
    """A state that was waited for did not come; the message says which and what was there instead."""


class Signal:
    """Wakes all waiters when anything changed: one of them per scenario, fed by informers."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def fire(self, *_args: object) -> None:
        """Something changed; fits as an informer's handler."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def until(
        self, what: str, condition: Callable[[], bool], *, within: float, instead: Callable[[], str] = str
    ) -> None:
        """Return as soon as ``condition`` holds. Raises NotReachedError after ``within`` seconds."""
        try:
            async with asyncio.timeout(within):
                while not condition():
                    waiter = asyncio.get_running_loop().create_future()
                    self._waiters.add(waiter)
                    try:
                        await waiter
                    finally:
                        self._waiters.discard(waiter)
        except TimeoutError:
            found = instead()
            message = f"{what} did not happen within {within:.0f} s" + (f": {found}" if found else "")
            raise NotReachedError(message) from None

"""Switches with which tests make the server misbehave as real ones do.

Invariant: with no switch set the server behaves; each request uses up at most one refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from interlace.sim.apiserver import errors
from interlace.sim.apiserver.reading import Watch
from interlace.sim.apiserver.store import Store


@dataclass(slots=True)
class _Refusal:
    left: int
    resource: str
    make: Callable[[], errors.ApiFault]


class Faults:
    """Misbehaviour on demand."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._refusals: list[_Refusal] = []
        self.watches: set[Watch] = set()
        """The watches that are running."""

    def refuse(self, count: int, make: Callable[[], errors.ApiFault], *, resource: str = "") -> None:
        """Answer the next ``count`` requests (for ``resource`` if given) with an error."""
        self._refusals.append(_Refusal(count, resource, make))

    def throttle(self, count: int, *, retry_after: int = 1, resource: str = "") -> None:
        """Answer the next ``count`` requests 429 with Retry-After in seconds."""
        message = "The apiserver is shutting down, please try again later."
        self.refuse(count, lambda: errors.too_many_requests(message, retry_after), resource=resource)

    def forgive(self) -> None:
        """No refusal is due any more."""
        self._refusals.clear()

    def check(self, resource: str) -> None:
        """Called for each request. Raises the ApiFault that is due."""
        for refusal in self._refusals:
            if refusal.left > 0 and refusal.resource in ("", resource):
                refusal.left -= 1
                raise refusal.make()
        if self._refusals and all(refusal.left <= 0 for refusal in self._refusals):
            self._refusals.clear()

    def drop_watches(self, resource: str = "", *, mid_line: bool = True) -> int:
        """Break the connections of running watches; the number of those broken."""
        return self._each(resource, lambda watch: watch.cut() if mid_line else watch.end())

    def expire_watches(self, resource: str = "") -> int:
        """Send running watches the error event that says that their version expired."""
        message = "too old resource version: the watch was too slow"
        return self._each(resource, lambda watch: watch.error(errors.expired(message)))

    def expire_history(self) -> None:
        """Forget all history: versions before the present are answered 410, in lists and in watches."""
        self._store.expire()

    def _each(self, resource: str, act: Callable[[Watch], None]) -> int:
        chosen = [watch for watch in self.watches if resource in ("", watch.kind.plural)]
        for watch in chosen:
            act(watch)
        return len(chosen)

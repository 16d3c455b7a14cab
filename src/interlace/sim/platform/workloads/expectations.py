"""What a controller has asked for and not yet seen in its cache, so that it never asks twice.

Invariant: while an expectation is open a controller neither creates nor deletes for that key; one that is never
met (an event was lost) ends after ``limit`` seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")


class Expectations(Generic[K]):
    """Creations are counted before they are made, so an echo that overtakes the answer counts too."""

    def __init__(self, *, limit: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._creations: dict[K, int] = {}
        self._deletions: dict[K, set[str]] = {}
        self._since: dict[K, float] = {}

    def expect(self, key: K, *, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        """Open expectations: a number of creations, uids of deletions."""
        self._since[key] = self._clock()
        if creations:
            self._creations[key] = self._creations.get(key, 0) + creations
        if uids := set(deletions):
            self._deletions.setdefault(key, set()).update(uids)

    def created(self, key: K) -> None:
        """One creation was seen, or failed."""
        left = self._creations.get(key, 0) - 1
        if left > 0:
            self._creations[key] = left
        else:
            self._creations.pop(key, None)

    def deleted(self, key: K, uid: str) -> None:
        """A deletion was seen to begin, or failed."""
        waiting = self._deletions.get(key)
        if waiting is not None:
            waiting.discard(uid)
            if not waiting:
                del self._deletions[key]

    def met(self, key: K) -> bool:
        """Whether the cache shows everything that was asked for."""
        if key not in self._creations and key not in self._deletions:
            self._since.pop(key, None)
            return True
        if self._clock() - self._since.get(key, 0.0) >= self._limit:
            self.forget(key)
            return True
        return False

    def forget(self, key: K) -> None:
        """The key's object is gone."""
        self._creations.pop(key, None)
        self._deletions.pop(key, None)
        self._since.pop(key, None)

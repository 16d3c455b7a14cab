"""Work in the order of its dependencies, as much at once as allowed; what fails holds up only what comes after it.

Invariant: a piece of work starts when all that it waits for is done, never twice, and every piece ends in exactly one
state, also when the whole is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from graphlib import TopologicalSorter
from typing import Generic, Literal, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
State = Literal["done", "failed", "blocked", "unknown"]


class Failure(Exception):
    """A piece of work that did not end well; ``state`` says whether it is known to have failed. Kept, not raised on."""

    def __init__(self, reason: Exception, *, state: State = "failed") -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.state: State = state


class Ending(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """How a piece of work ended. ``because`` is what it was blocked by, ``reason`` what it failed with."""

    key: K
    state: State
    because: K | None = None
    reason: Exception | None = None


async def run_in_order(
    needs: Mapping[K, Collection[K]],
    work: Callable[[K], Awaitable[None]],
    *,
    parallel: int,
    ended: Callable[[Ending[K]], None] = lambda _: None,
) -> dict[K, Ending[K]]:
    """Run ``work`` for each key of ``needs``, whose values are the keys to wait for (others are taken as done).

    ``work`` raises Failure for what went wrong with this piece alone; anything else ends the whole. Raises
    graphlib.CycleError before anything starts. Cancelling cancels what runs.
    """
    sorter: TopologicalSorter[K] = TopologicalSorter()
    for key in needs:  # first, so that what is ready at once begins in the order of `needs`
        sorter.add(key)
    for key, others in needs.items():
        sorter.add(key, *(other for other in others if other in needs))
    sorter.prepare()
    endings: dict[K, Ending[K]] = {}
    room = asyncio.Semaphore(parallel)
    changed = asyncio.Event()

    def end(ending: Ending[K]) -> None:
        endings[ending.key] = ending
        sorter.done(ending.key)
        ended(ending)
        changed.set()

    async def one(key: K) -> None:
        async with room:
            try:
                await work(key)
            except Failure as failure:
                end(Ending(key=key, state=failure.state, reason=failure.reason))
            else:
                end(Ending(key=key, state="done"))

    async with asyncio.TaskGroup() as group:
        while sorter.is_active():
            for key in sorter.get_ready():
                culprit = _culprit(needs[key], endings)
                if culprit is None:
                    group.create_task(one(key))
                else:
                    end(Ending(key=key, state="blocked", because=culprit))
            if sorter.is_active() and not changed.is_set():
                await changed.wait()
            changed.clear()
    return endings


def critical_path(needs: Mapping[K, Collection[K]], seconds: Mapping[K, float]) -> float:
    """Seconds that the work takes when everything that may run at once does."""
    finish: dict[K, float] = {}
    for key in TopologicalSorter({k: [o for o in others if o in needs] for k, others in needs.items()}).static_order():
        finish[key] = seconds[key] + max((finish[other] for other in needs[key] if other in needs), default=0.0)
    return max(finish.values(), default=0.0)


def _culprit(needed: Collection[K], endings: Mapping[K, Ending[K]]) -> K | None:
    for key in needed:
        ending = endings.get(key)
        if ending is not None and ending.state != "done":
            return key if ending.because is None else ending.because
    return None

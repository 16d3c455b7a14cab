"""Many calls at once: in growing batches, and side by side.

Invariant: when ``together`` returns or raises, none of its calls runs any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def batches(items: Sequence[T], *, first: int = 1) -> Iterable[Sequence[T]]:
    """``items`` in batches of 1, 2, 4 ...: a server that refuses the first is not asked a hundred times."""
    start, size = 0, first
    while start < len(items):
        yield items[start : start + size]
        start, size = start + size, size * 2


async def together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all calls, made side by side, in their order; the first error cancels the others."""
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(call) for call in calls]
    return [task.result() for task in started]

"""Running something until an event says stop, without a task that nobody owns."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_until(stop: asyncio.Event, main: Coroutine[Any, Any, None]) -> bool:
    """Run ``main`` until it ends or ``stop`` is set, then cancel and await it; True if it was stopped.

    Errors of ``main`` are raised as they are, not wrapped in a group.
    """
    error: BaseException | None = None
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_quiet(main))
        waiter = group.create_task(stop.wait())
        await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
        stopped = not task.done()
        task.cancel()
        waiter.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            error = task.result()
    if error is not None:
        raise error
    return stopped


async def _quiet(main: Coroutine[Any, Any, None]) -> Exception | None:
    try:
        await main
    except Exception as error:  # noqa: BLE001  handed to the caller of run_until
        return error
    return None

"""Async context managers as fixtures: one task enters and leaves them.

pytest-asyncio sets a fixture up in one task and tears it down in another, which TaskGroups and
time limits inside a context manager do not allow. ``hold`` keeps both ends in one task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def hold(manager: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter ``manager`` in a task of its own, yield its value, leave it in that task; its errors are raised."""
    ready: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()

    async def keep() -> None:
        try:
            async with manager as value:
                ready.set_result(value)
                await stop.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
                return
            raise

    task = asyncio.ensure_future(keep())
    try:
        yield await ready
    finally:
        stop.set()
        await task

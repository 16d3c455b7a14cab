"""Waiting for what happens elsewhere: the one place in the tests that sleeps, between two looks, never for one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(look: Callable[[], Awaitable[T]], *, within: float, every: float = 0.02, what: str = "") -> T: ...


@overload
async def eventually(look: Callable[[], T], *, within: float, every: float = 0.02, what: str = "") -> T: ...


async def eventually(look: Callable[[], Any], *, within: float, every: float = 0.02, what: str = "") -> Any:
    """The first true value that ``look`` returns, looking again ``every`` so many seconds.

    ``AssertionError`` with the last value, or with the last ``AssertionError`` of ``look``, after ``within`` seconds.
    """
    last: object = "nothing: the first look never ended"
    try:
        async with asyncio.timeout(within):
            while True:
                try:
                    found = look()
                    value = await found if inspect.isawaitable(found) else found
                    if value:
                        return value
                    last = repr(value)
                except AssertionError as error:
                    last = error
                await asyncio.sleep(every)
    except TimeoutError:
        raise AssertionError(
            f"{what or 'the condition'} did not come true within {within} s; last seen: {last}"
        ) from None

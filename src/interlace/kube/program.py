"""A component as a process: settings, log, signals, exit status.

Invariant: SIGTERM and SIGINT cancel the component once and are its normal end (status 0); what a
platform engineer can correct ends it with one sentence on stderr and no traceback.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from interlace.kube.errors import KubeError
from interlace.kube.log import configure

STOPPED: Final = 0
REFUSED: Final = 2
FAILED: Final = 4

Start = Callable[[Sequence[str], Mapping[str, str]], Coroutine[Any, Any, None]]
"""Reads settings from flags and environment, and returns what then runs until it is cancelled."""


def run(start: Start, argv: Sequence[str], *, failures: tuple[type[Exception], ...] = ()) -> int:
    """Run a component; returns its exit status: 0 told to stop, 2 bad settings, 4 it cannot run.

    ``failures`` are the component's own errors, whose text explains itself; others are raised.
    """
    explained: tuple[type[Exception], ...] = (KubeError, OSError, *failures)
    refused: tuple[type[Exception], ...] = (ValueError, *explained)
    try:
        configure(os.environ.get("LOG_LEVEL", "info"), json=True)
        main = start(argv, os.environ)
    except refused as error:
        return _tell(error, REFUSED)
    try:
        asyncio.run(until_signal(main))
    except Exception as error:
        cause = _first(error)
        if not isinstance(cause, explained):
            raise
        return _tell(cause, FAILED)
    return STOPPED


async def until_signal(main: Coroutine[Any, Any, None]) -> None:
    """Run ``main`` until it ends; SIGTERM or SIGINT cancel it once, which is no error."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    told: list[int] = []

    def stop(number: int) -> None:
        told.append(number)
        if task is not None and len(told) == 1:
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        await main
    except asyncio.CancelledError:
        if not told:
            raise


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _tell(error: BaseException, status: int) -> int:
    sys.stderr.write(f"interlace: {str(error) or type(error).__name__}\n")
    return status

"""From a click command into asyncio and back: signals, errors and exit codes in one place."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

from interlace.cli.exits import Code, Exit


def run(main: Coroutine[Any, Any, Code | None], *, on_signal: Code = Code.INTERRUPTED) -> NoReturn:
    """Run ``main`` until it ends; SIGINT and SIGTERM cancel it once and the process ends with ``on_signal``.

    KubeError and OSError end with FAILED, ConfigError with REFUSED, each with one sentence on stderr.
    """
    code, message = Code.GOOD, ""
    try:
        code = asyncio.run(_guarded(main, on_signal))
    except* Exit as group:
        first = _first(group)
        if isinstance(first, Exit):
            code, message = first.code, first.message
    except* Exception as group:  # noqa: BLE001  what cannot be explained is raised again
        code, message = _explain(_first(group))
    if message:
        print(f"interlace: {message}", file=sys.stderr)
    sys.stdout.flush()
    sys.exit(int(code))


async def _guarded(main: Coroutine[Any, Any, Code | None], on_signal: Code) -> Code:
    task = asyncio.current_task()
    caught: list[int] = []

    def stop(number: int) -> None:
        caught.append(number)
        if task is not None and len(caught) == 1:
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        return await main or Code.GOOD
    except asyncio.CancelledError:
        if caught:
            return on_signal
        raise


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def _explain(error: BaseException) -> tuple[Code, str]:
    from interlace.kube.errors import ConfigError, KubeError

    if isinstance(error, ConfigError | ValueError):
        return Code.REFUSED, str(error)
    if isinstance(error, KubeError | OSError | TimeoutError):
        return Code.FAILED, str(error) or type(error).__name__
    raise error

"""From a click command into asyncio and back: signals, errors and exit codes in one place.

Invariant: SIGINT, SIGTERM and SIGHUP cancel the verb once, so that it cleans up behind itself; what a user can
correct ends with one sentence, and only a fault of our own shows a traceback.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from interlace.cli.exits import Code, Exit

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    main: Coroutine[Any, Any, Code],
    *,
    on_signal: Callable[[], None] = lambda: None,
    failures: tuple[type[Exception], ...] = (),
) -> None:
    """Run ``main`` until it ends. Raises Exit unless the answer is good.

    ConfigError and ValueError are REFUSED, other KubeErrors, OSError and ``failures`` FAILED; a
    signal ends with INTERRUPTED once ``main`` has cleaned up, after ``on_signal`` was called.
    """
    try:
        code = asyncio.run(_guarded(main, on_signal))
    except Exception as error:  # noqa: BLE001  what has no explanation is raised as it is
        raise explain(error, failures=failures) from None
    if code is Code.INTERRUPTED:
        for number in _SIGNALS:  # an impatient user must not cut off the way out
            signal.signal(number, signal.SIG_IGN)
    if code is not Code.GOOD:
        raise Exit(code)


def explain(error: Exception, *, failures: tuple[type[Exception], ...] = ()) -> Exception:
    """What ``error``, which may be a group, means to the user: an Exit, or what it was if nothing can be said.

    A cause goes before the Exit with which the verb left because of it.
    """
    from interlace.kube.errors import ConfigError, KubeError

    leaves = list(_leaves(error))
    cause = next((leaf for leaf in leaves if not isinstance(leaf, Exit)), leaves[0])
    if isinstance(cause, Exit | BrokenPipeError):  # click knows what to do when nobody reads
        return cause
    if isinstance(cause, ConfigError | ValueError):
        return Exit(Code.REFUSED, str(cause))
    if isinstance(cause, OSError):  # TimeoutError is one
        return Exit(Code.FAILED, _describe(cause))
    if isinstance(cause, (KubeError, *failures)):
        return Exit(Code.FAILED, str(cause))
    return error


def _describe(error: OSError) -> str:
    """A sentence that names the file, without the number of the error."""
    cause = error.strerror or str(error) or ("it took too long" if isinstance(error, TimeoutError) else "it failed")
    return f"{os.fsdecode(error.filename)}: {cause}" if isinstance(error.filename, str | bytes) else cause


async def _guarded(main: Coroutine[Any, Any, Code], on_signal: Callable[[], None]) -> Code:
    task = asyncio.current_task()
    caught: list[int] = []

    def stop(number: int) -> None:
        caught.append(number)
        if task is not None and len(caught) == 1:
            task.cancel()
            on_signal()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means to go on
            loop.add_signal_handler(number, stop, number)
    try:
        return await main
    except asyncio.CancelledError:
        if caught:
            return Code.INTERRUPTED
        raise


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error

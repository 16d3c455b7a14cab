"""Writing a file so that a crash leaves the old content or the new one, and waiting for it off the loop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_counter = itertools.count()


def write_whole(path: Path, content: bytes, *, sync: bool, mode: int = 0o644) -> None:
    """Replace ``path`` by a file with this content; ``sync`` waits for the disk (file and folder).

    Blocks. Each call has a temporary name of its own, which ends neither in ``.json`` nor in ``.yaml``,
    so that nobody reads it. Raises ``OSError`` and then leaves nothing behind.
    """
    temporary = path.parent / f".{path.name}.{os.getpid()}.{next(_counter)}.tmp"
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remove_unfinished(folder: Path, names: str) -> None:
    """Remove what a process killed in ``write_whole`` left of files called ``names`` (a glob). Never raises."""
    for path in folder.glob(f".{names}.*.tmp"):
        with contextlib.suppress(OSError):
            path.unlink()


async def in_thread(call: Callable[[], T]) -> T:
    """Run a blocking call in a thread and always see its end, also when cancelled meanwhile.

    A plain ``to_thread`` leaves the thread behind on cancellation; two writers of one file could then overlap.
    """
    future = asyncio.get_running_loop().run_in_executor(None, call)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # The result is of no use to anyone; an exception in it was looked at.
        future.exception()
        raise cancelled
    return future.result()

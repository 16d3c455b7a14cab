"""One run at a time for one cluster, on one machine.

Invariant: the lock is the kernel's, so it goes with the process that holds it, however that ends; the text in the file
only says who it is. Two machines are kept apart by Google itself: of two requests that make the same resource one is
refused, and its operation is then waited for.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_NAME: Final = "lock"


class Locked(Exception):
    """Somebody else works on the same cluster."""


@contextmanager
def hold(folder: Path, *, verb: str) -> Iterator[None]:
    """Hold the lock of ``folder`` meanwhile. Raises Locked at once if somebody else does, OSError for the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _NAME
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
            raise Locked(
                f"{path}: {holder} is at work on this cluster; wait until it has ended, then run the same command again"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{verb}, process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        try:
            yield
        finally:
            with suppress(OSError):
                os.ftruncate(handle, 0)
    finally:
        os.close(handle)

"""What is left of a simulated container: its processes, found and ended as a cgroup would be.

A program of ours may start children that outlive it (``nvidia-imex`` survives its host on
purpose). They are recognised by the machine's root folder in their command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path


def find_processes(root: Path, *, program: str = "") -> list[int]:
    """Process ids, never our own, whose command line names a path below ``root`` and, if given, ``program``."""
    needle, word = f"{root}/".encode(), program.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            if needle in command and word in command:
                found.append(int(entry.name))
        except OSError:  # ended meanwhile
            continue
    return found


async def end_processes(root: Path, *, program: str = "", within: float = 5.0) -> list[int]:
    """SIGKILL everything of ``root``, of ``program`` alone if given, wait until it is gone; returns what was ended.

    Raises TimeoutError if something is still there after ``within`` seconds.
    """
    ended: list[int] = []
    async with asyncio.timeout(within):
        while left := find_processes(root, program=program):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    ended.append(pid)
            await asyncio.sleep(0.01)
    return sorted(set(ended))

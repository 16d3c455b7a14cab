"""SIGKILL for a process of a node at an exact step of its work, told by what it does to a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from testbed.box import run_outside

_SOURCE = Path(__file__).parent / "native/kill_at.c"
LIMIT = 120.0
"""Seconds until the process has to come to that step."""


async def compile_killer(folder: Path) -> Path:
    """The program that does it; needs gcc, as the testbed's runc does."""
    program = folder / "kill_at"
    await run_outside("gcc", "-O1", "-Wall", "-Werror", "-o", str(program), str(_SOURCE))
    return program


@asynccontextmanager
async def killed(
    killer: Path, pid: int, *, when: Literal["enter", "exit"], call: Literal["rename", "unlink"], path: str, times: int
) -> AsyncIterator[None]:
    """Once all threads are watched, do what is in the context, then wait for the end of the process.

    It comes as the kernel is about to, or has just, renamed a file to a name with ``path`` in it, or removed it, for
    the time with this number.
    """
    child = await asyncio.create_subprocess_exec(
        str(killer), str(pid), when, call, path, str(times), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(LIMIT):
            assert await child.stdout.readline() == b"ready\n"
        yield
        async with asyncio.timeout(LIMIT):
            assert await child.stdout.read() == b"killed\n", f"the process never came to {call} {path}"
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()

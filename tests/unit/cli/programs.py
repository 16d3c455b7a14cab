"""The command as a user starts it: a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Ended(NamedTuple):
    code: int
    out: str
    errors: str


async def interlace(
    *arguments: str, env: Mapping[str, str] | None = None, python: Sequence[str] = (), within: float = 60.0
) -> Ended:
    """Run ``interlace`` to its end; no ending may show a traceback."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *python,
        "-m",
        "interlace.cli.main",
        *arguments,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(within):
        out, errors = await process.communicate()
    assert process.returncode is not None
    ended = Ended(process.returncode, out.decode(), errors.decode())
    assert "Traceback" not in ended.errors, ended.errors
    return ended

"""Very small containers: a mount namespace with chosen binds, for programs that insist on fixed paths.

Network and processes are the machine's. Needs root. Invariant: a box ends with this process, and what a
stopped program left running in its box is killed, as the end of a container does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path


class Box:
    """One running box."""

    def __init__(self, process: asyncio.subprocess.Process, *, nsbox: Path, env: Mapping[str, str]) -> None:
        self._process = process
        self._nsbox = nsbox
        self._env = env

    @property
    def pid(self) -> int:
        """Of its first program."""
        return self._process.pid

    async def ended(self) -> int:
        """Wait for the first program; its exit status."""
        return await self._process.wait()

    async def execute(self, command: Sequence[str], *, limit: float) -> bool:
        """Run ``command`` inside; whether it succeeded within ``limit`` seconds."""
        inside = await asyncio.create_subprocess_exec(
            str(self._nsbox),
            "enter",
            str(self.pid),
            "--",
            *command,
            env=self._env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(limit):
                return await inside.wait() == 0
        except TimeoutError:
            return False
        finally:
            if inside.returncode is None:
                inside.kill()
                await inside.wait()

    async def stop(self, *, grace: float) -> bool:
        """SIGTERM, SIGKILL after ``grace`` seconds, then whatever is left; True if it had to be killed."""
        killed = False
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await self._process.wait()
        except TimeoutError:
            killed = True
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            await self._process.wait()
        return killed


async def start_box(
    argv: Sequence[str], *, nsbox: Path, root: Path, log: Path, env: Mapping[str, str], binds: Mapping[str, Path]
) -> Box:
    """Start ``argv`` in a box with ``binds`` (path inside to path outside). ``root`` is an empty folder for it."""
    root.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    options = [word for inside, outside in binds.items() for word in ("-b", f"{outside}:{inside}")]
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            str(nsbox),
            "run",
            str(root),
            *options,
            "--",
            *argv,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    return Box(process, nsbox=nsbox, env=env)

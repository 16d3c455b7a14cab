"""Switching NRI on where containerd has it off, which is the default below 2.0.

Invariant: nothing is written where the socket is there already or the file says the same; the runtime is restarted
only by the command that was given, once after a write, and its running containers go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from interlace.kube.log import get_logger
from interlace.node.errors import StateError
from interlace.node.files import write_whole

RESTART_LIMIT: Final = 120.0
_SHOWN: Final = 512
log = get_logger(__name__)


def drop_in(socket: Path) -> str:
    """Configuration for containerd, in the form that 1.7 and later read; its main file has to import the folder."""
    return (
        "# Written by the Interlace agent (--enable-nri).\n"
        "version = 2\n\n"
        '[plugins."io.containerd.nri.v1.nri"]\n'
        "  disable = false\n"
        f'  socket_path = "{socket}"\n'
    )


async def switch_on(target: Path, *, socket: Path, restart: Sequence[str]) -> bool:
    """Write the drop-in if NRI is off and run ``restart`` if given; whether anything was written.

    Raises ``StateError`` if the file cannot be written or the command fails.
    """
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(socket.stat().st_mode):
            return False
    text = drop_in(socket)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if target.read_text(encoding="utf-8") == text:
            log.warning(
                "NRI is off though its drop-in is there; containerd has to import and read it", path=str(target)
            )
            return False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text.encode(), sync=True)
    except OSError as error:
        raise StateError(f"{target} cannot be written: {error.strerror}; mount containerd's folder there.") from error
    if not restart:
        log.warning("NRI is on after the next restart of containerd", path=str(target), remedy="restart it")
        return True
    await _run(restart)
    log.info("NRI was switched on and containerd restarted", path=str(target))
    return True


async def _run(command: Sequence[str]) -> None:
    shown = " ".join(command)
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except OSError as error:
        raise StateError(f"`{shown}` (--restart-runtime) cannot be started: {error.strerror}.") from error
    try:
        async with asyncio.timeout(RESTART_LIMIT):
            output, _ = await process.communicate()
    except TimeoutError:
        raise StateError(f"`{shown}` (--restart-runtime) did not end within {RESTART_LIMIT:.0f} s.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = output.decode(errors="replace").strip()[-_SHOWN:]
        raise StateError(f"`{shown}` (--restart-runtime) ended with {process.returncode}: {said or 'no output'}.")

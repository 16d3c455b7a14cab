"""A machine of its own for a real node: mount, network and pid namespaces, and cgroups below one root.

Invariant: all that runs or is mounted in a box ends with its first process, and the kernel ends that one with
the process that made the box, however that dies. Cgroups are not namespaced: their root carries the maker's
identity in its name, and whoever makes the next box removes those whose maker is gone. What the box writes
lies in its own memory file systems, but for the logs.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shlex
import shutil
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from testbed import process
from testbed.errors import BedError

CGROUPS = Path("/sys/fs/cgroup")
CGROUP_PREFIX = "interlace-testbed"
BIN = "/run/testbed/bin"
"""In a box: all programs."""
FILES = "/run/testbed"
"""In a box: configuration of its programs."""
TOOLS = ("unshare", "nsenter", "mount", "umount", "ip")
LIMIT = 60.0
"""Seconds that making a box, or a short command in it, may take."""
_PRIVATE = ("/var/lib", "/tmp")  # noqa: S108 - of the box, on a file system of its own
_POLL = 0.01
_numbers = itertools.count()


def require_system() -> None:
    """Raise ``BedError``, in one line, unless boxes can be made here: root, Linux tools, cgroups."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0:
        raise BedError("real nodes need root, since they make namespaces and cgroups; run as root")
    if absent:
        raise BedError(
            f"real nodes need {', '.join(absent)}, not on PATH; install them (Debian: `apt-get install -y "
            "util-linux mount iproute2`)"
        )
    if not hierarchies():
        raise BedError(f"real nodes need cgroups, and none are mounted at {CGROUPS}; mount them there")


def hierarchies(root: Path = CGROUPS) -> list[Path]:
    """The roots of all cgroup hierarchies: one of version 2, or one for each controller of version 1."""
    if (root / "cgroup.controllers").exists():
        return [root]
    found = {path.resolve() for path in root.glob("*") if (path / "cgroup.procs").exists()}
    return sorted(found)


class Program:
    """A program that runs in a box."""

    def __init__(self, outside: process.Process, identity: process.Identity) -> None:
        self._outside = outside
        self.identity = identity

    @property
    def pid(self) -> int:
        """As the machine counts, not the box."""
        return self.identity.pid

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return process.Identity.of(self.identity.pid) == self.identity

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(self.pid)
            try:
                if self.running:
                    signal.pidfd_send_signal(pidfd, number)
            finally:
                os.close(pidfd)

    async def stop(self, *, kill: bool = False) -> None:
        """SIGTERM, or SIGKILL at once, and wait until it has ended; SIGKILL after ``LIMIT`` seconds."""
        self.send(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            async with asyncio.timeout(LIMIT):
                await self._outside.exited()
        except TimeoutError:
            self.send(signal.SIGKILL)
        finally:
            await self._outside.stop(grace=LIMIT)


class Box:
    """A running box. Paths of its files as seen from outside: ``path``."""

    def __init__(self, *, name: str, init: int, folder: Path, cgroup: str) -> None:
        self.name = name
        self.init = init
        """Its first process, as the machine counts."""
        self.folder = folder
        """Outside: logs and pid files of its programs."""
        self.cgroup = cgroup
        """Name of its cgroup in each hierarchy."""
        self._inside: list[process.Process] = []
        self._outside: list[process.Process] = []
        self._pidfd = os.pidfd_open(init)

    async def ended(self) -> None:
        """Wait until its first process is gone, and everything else with it; the end of the box."""
        await process.readable(self._pidfd)
        os.close(self._pidfd)

    @property
    def network(self) -> Path:
        """Its network namespace."""
        return Path(f"/proc/{self.init}/ns/net")

    def path(self, inside: str) -> Path:
        """The file ``inside`` of the box, from outside."""
        return Path(f"/proc/{self.init}/root") / inside.lstrip("/")

    def enter(self, command: Sequence[str]) -> list[str]:
        """Arguments that run ``command`` in the box."""
        path = f"PATH={BIN}:/usr/sbin:/usr/bin:/sbin:/bin"
        return [_which("nsenter"), "-t", str(self.init), "-m", "-n", "-p", "--", "/usr/bin/env", path, *command]

    async def run(self, *command: str, limit: float = LIMIT) -> str:
        """Standard output of a short command in the box. ``BedError`` with what it said if it fails."""
        try:
            return await run_outside(*self.enter(command), limit=limit)
        except BedError as error:
            raise BedError(f"in box {self.name}: {error}") from None

    async def start(self, name: str, command: Sequence[str]) -> Program:
        """Start a program in the box; its output goes to ``folder/NAME.log``."""
        outside = await process.launch(name, self.enter(command), state=self.folder, daemon=False)
        self._inside.append(outside)
        async with asyncio.timeout(LIMIT):
            while (identity := _child(outside.identity.pid)) is None:
                if not outside.running:
                    raise BedError(f"{name} in box {self.name} ended at once; read {self.folder / f'{name}.log'}")
                await asyncio.sleep(_POLL)
        return Program(outside, identity)

    async def end_all(self) -> None:
        """SIGKILL for all that runs in it but its first process; returns once they and their cgroups are gone."""
        # Every process of the box's pid namespace and of those in it, but for the sender.
        await self.run("/bin/sh", "-c", "kill -9 -1 || true")
        while self._inside:
            await self._inside.pop().stop(grace=LIMIT)
        await asyncio.to_thread(_remove_cgroups, self.cgroup, keep=True)

    async def start_outside(self, name: str, command: Sequence[str]) -> None:
        """Start a program that belongs to the box and does not run in it."""
        self._outside.append(await process.launch(name, command, state=self.folder, daemon=False))

    async def end_programs(self) -> None:
        """Reap what was started; the box is gone already."""
        for program in reversed([*self._outside, *self._inside]):
            await program.stop(grace=0)


async def run_outside(*command: str, limit: float = LIMIT) -> str:
    """Standard output of a short command. ``BedError`` with what it said if it fails."""
    child = await asyncio.create_subprocess_exec(
        _which(command[0]),
        *command[1:],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said = " ".join(command[command.index("--") + 3 :] if "--" in command else command)
    try:
        async with asyncio.timeout(limit):
            out, err = await child.communicate()
    except TimeoutError:
        raise BedError(f"`{said}` took longer than {limit:.0f} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        cause = (err or out).decode(errors="replace").strip() or f"exit {child.returncode}"
        raise BedError(f"`{said}` failed: {cause}")
    return out.decode(errors="replace")


@asynccontextmanager
async def box(name: str, *, folder: Path, programs: Mapping[str, Path]) -> AsyncIterator[Box]:
    """A box with ``programs`` (name to file outside) in ``BIN``; ``helper`` has to be among them.

    ``folder`` is made for logs and pid files. Raises ``BedError``.
    """
    require_system()
    (folder / "log").mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(sweep)
    owner = process.Identity.of(os.getpid()) or process.Identity(os.getpid(), 0)
    # With a number: the maker may have several boxes of one name.
    cgroup = f"{CGROUP_PREFIX}-{owner.pid}-{owner.start}-{next(_numbers)}-{name}"
    command = [
        _which("unshare"), "--mount", "--net", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc",
        "--propagation", "private", str(programs["helper"]), "pause",
    ]  # fmt: skip
    outside = await process.launch(f"box-{name}", command, state=folder, daemon=False)
    made: Box | None = None
    try:
        made = Box(name=name, init=await _first(outside, folder=folder), folder=folder, cgroup=cgroup)
        await _furnish(made, programs)
        _make_cgroups(cgroup)
        yield made
    finally:
        await outside.stop(grace=0)
        if made is not None:
            # The kernel ends all others of a pid namespace before it lets go of the first.
            async with asyncio.timeout(LIMIT):
                await made.ended()
            await made.end_programs()
        await asyncio.to_thread(_remove_cgroups, cgroup)


async def _first(outside: process.Process, *, folder: Path) -> int:
    """Process id of the box's first process, once it stands in its own namespaces."""
    async with asyncio.timeout(LIMIT):
        while outside.running:
            child = _child(outside.identity.pid)
            # The helper itself, not unshare before it mounted /proc and became the helper.
            with contextlib.suppress(OSError):
                if child is not None and os.readlink(f"/proc/{child.pid}/exe").endswith("/helper"):  # noqa: PTH115
                    return child.pid
            await asyncio.sleep(_POLL)
    raise BedError(f"no namespaces could be made: {(folder / f'{outside.name}.log').read_text().strip()}")


async def _furnish(made: Box, programs: Mapping[str, Path]) -> None:
    lines = ["set -e", "mount -t tmpfs -o mode=755 tmpfs /run", f"mkdir -p {BIN} /run/cdi /run/lock"]
    # Whole folders: runc starts itself again through an overlay of its folder, where a single bound file is empty.
    lines += [f"mkdir {FILES}/log", f"mount --bind {shlex.quote(str(made.folder / 'log'))} {FILES}/log"]
    for number, folder in enumerate(sorted({path.parent for path in programs.values()})):
        lines += [f"mkdir {FILES}/{number}", f"mount --bind {shlex.quote(str(folder))} {FILES}/{number}"]
        lines += [
            f"ln -s {FILES}/{number}/{path.name} {BIN}/{name}"
            for name, path in programs.items()
            if path.parent == folder
        ]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {private}" for private in _PRIVATE]
    # Logs of Pods outlive the box, for whoever asks why.
    lines.append(f"mount --rbind {FILES}/log /var/log")
    lines += [
        "mkdir -p /var/lib/kubelet /var/log/pods /var/log/containers",
        "mount --make-rshared /",
        "ip link set lo up",
    ]
    await made.run("/bin/sh", "-c", "\n".join(lines))


def _make_cgroups(name: str) -> None:
    for root in hierarchies():
        folder = root / name
        folder.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            # Version 1: empty in a new group, and nothing runs in it then.
            if (folder / file).exists() and (root / file).exists():
                (folder / file).write_text((root / file).read_text())


def _remove_cgroups(name: str, *, keep: bool = False) -> None:
    """Wait until the kernel has ended what ran there, and remove the groups, but ``keep`` the first one; blocks."""
    deadline = time.monotonic() + LIMIT
    while not _prune(name, keep=keep):
        if time.monotonic() > deadline:
            raise BedError(f"cgroups {name} below {CGROUPS} could not be removed: something still runs there")
        time.sleep(_POLL)


def _prune(name: str, *, keep: bool = False) -> bool:
    """Remove the groups below ``name``, deepest first, and itself unless ``keep``; whether none is left."""
    whole = True
    for root in hierarchies():
        for group, _, _ in os.walk(root / name, topdown=False):
            if keep and Path(group) == root / name:
                continue
            try:
                os.rmdir(group)  # noqa: PTH106 - a cgroup is removed with its files in it
            except OSError:
                whole = False
    return whole


def sweep() -> None:
    """Remove the cgroups of boxes whose maker is gone."""
    names = {path.name for root in hierarchies() for path in root.glob(f"{CGROUP_PREFIX}-*")}
    for name in names:
        words = name.removeprefix(f"{CGROUP_PREFIX}-").split("-")
        owner = process.Identity.parse(" ".join(words[:2]))
        if owner is None or process.Identity.of(owner.pid) != owner:
            _prune(name)


def _child(pid: int) -> process.Identity | None:
    with contextlib.suppress(OSError):
        for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            return process.Identity.of(int(word))
    return None


def _which(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        raise BedError(f"real nodes need {tool}, not on PATH; install it")
    return found

"""Named clusters that outlive the command that started them.

Invariant: everything about a cluster is in its folder: `cluster.json` appears when it is ready, pid
files name what runs. One command at a time works on a name (a file lock beside the folder), and whatever
a killed command left in the folder is cleared by the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from testbed import flags, plane, process
from testbed.errors import BedError, Refused
from testbed.programs import Programs

LOCK_LIMIT = 2 * plane.START_LIMIT
"""Seconds to wait for another command on the same name."""
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What ``cluster.json`` holds."""

    name: str
    url: str
    version: str
    kubeconfig: str
    components: tuple[str, ...]
    seconds: float
    """From nothing to ready."""


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One program of a cluster, now."""

    name: str
    pid: int | None
    """``None`` if it does not run."""
    rss_mib: int = 0


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster, now."""

    name: str
    state: str
    """``up``, ``broken`` (some program is gone), ``stale`` (the command that started it was killed)."""
    url: str
    version: str
    kubeconfig: str
    components: tuple[Component, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who gets a kubeconfig file of their own."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Name of the kubeconfig file."""
        return re.sub(r"[^A-Za-z0-9.-]", "-", self.name) + ".kubeconfig"


def state_root(env: Mapping[str, str] = os.environ) -> Path:
    """Folder of the clusters: ``INTERLACE_TESTBED_STATE``, else below the user's state folder."""
    if override := env.get("INTERLACE_TESTBED_STATE"):
        return Path(override).absolute()
    base = env.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "interlace" / "testbed"


def check_name(name: str) -> None:
    """Raise ``Refused`` for what cannot be the name of a cluster."""
    if NAME.fullmatch(name) is None:
        raise Refused(f"cluster name {name!r} is not 1 to 40 of a-z, 0-9 and inner '-'; choose another name")


async def up(
    root: Path, name: str, *, programs: Programs, settings: flags.Settings, users: Sequence[User] = ()
) -> Record:
    """Start the cluster ``name``. Raises ``Refused`` if it is up, ``BedError`` if it does not come up."""
    check_name(name)
    folder = root / name
    async with _lock(root, name):
        if (standing := _standing(folder)) is not None and standing.state == "up":
            raise Refused(
                f"cluster {name} is up at {standing.url}; use {standing.kubeconfig}, "
                f"or end it with `python -m testbed down --name {name}`"
            )
        started = time.monotonic()
        (folder / "cluster.json").unlink(missing_ok=True)
        async with plane.ControlPlane(state_dir=folder, settings=settings, programs=programs, daemon=True) as control:
            for user in users:
                control.write_kubeconfig(folder / user.file, user.name, groups=user.groups)
            record = Record(
                name=name,
                url=control.url,
                version=control.version,
                kubeconfig=str(control.kubeconfig),
                components=settings.components,
                seconds=round(time.monotonic() - started, 1),
            )
            content = msgspec.json.format(msgspec.json.encode(record), indent=2)
            (folder / "cluster.json.new").write_bytes(content)
            (folder / "cluster.json.new").rename(folder / "cluster.json")
    return record


async def down(root: Path, name: str) -> bool:
    """End the cluster ``name`` and remove its folder. False if there was none."""
    check_name(name)
    folder = root / name
    async with _lock(root, name):
        if not folder.exists():
            return False
        for component in reversed(flags.COMPONENTS):
            if (running := process.find(component, state=folder)) is not None:
                await running.stop(grace=plane.GRACE)
        await asyncio.to_thread(shutil.rmtree, folder)
    return True


def status(root: Path) -> list[Standing]:
    """All clusters, by name. Reads files only."""
    folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return [standing for folder in folders if (standing := _standing(folder)) is not None]


def _standing(folder: Path) -> Standing | None:
    if not folder.is_dir():
        return None
    try:
        record = msgspec.json.decode((folder / "cluster.json").read_bytes(), type=Record)
    except (FileNotFoundError, msgspec.DecodeError):
        record = None
    components = tuple(_component(name, folder) for name in (record.components if record else flags.COMPONENTS))
    whole = all(component.pid for component in components)
    state = "stale" if record is None else "up" if whole else "broken"
    return Standing(
        name=folder.name,
        state=state,
        url=record.url if record else "",
        version=record.version if record else "",
        kubeconfig=record.kubeconfig if record else "",
        components=components,
    )


def _component(name: str, folder: Path) -> Component:
    try:
        identity = process.Identity.parse((folder / f"{name}.pid").read_text())
    except FileNotFoundError:
        identity = None
    if identity is None or process.Identity.of(identity.pid) != identity:
        return Component(name=name, pid=None)
    try:
        found = re.search(r"^VmRSS:\s*(\d+) kB", Path(f"/proc/{identity.pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return Component(name=name, pid=None)
    return Component(name=name, pid=identity.pid, rss_mib=int(found[1]) // 1024 if found else 0)


@contextlib.asynccontextmanager
async def _lock(root: Path, name: str) -> AsyncIterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{name}.lock"
    with path.open("w") as file:
        try:
            async with asyncio.timeout(LOCK_LIMIT):
                while True:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        await asyncio.sleep(0.05)
        except TimeoutError:
            raise BedError(
                f"{path} has been locked for {LOCK_LIMIT:.0f} s by another command on cluster {name}; end that command"
            ) from None
        yield

"""Finding another driver of our name on this node before it is too late.

Two drivers of one name would answer kubelet in turn and delete each other's slices.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interlace.api.computedomain import DRIVER
from interlace.node.errors import RivalDriver, StateError
from interlace.node.proto import registration_pb2
from interlace.node.rpc import ask

GET_INFO = "/pluginregistration.Registration/GetInfo"
ANSWER_TIMEOUT = 2.0


async def refuse_rivals(registrar_dir: Path) -> None:
    """Ask every registration socket who it is. Raises ``RivalDriver`` if one says our name."""
    for path in sorted(registrar_dir.glob("*.sock")):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(path.stat().st_mode):
                continue
        info = await ask(
            path,
            GET_INFO,
            registration_pb2.InfoRequest(),
            response=registration_pb2.PluginInfo,
            timeout=ANSWER_TIMEOUT,
        )
        if info is not None and info.name == DRIVER:
            raise RivalDriver(
                f"another driver named {DRIVER} answers on {path} (its endpoint is {info.endpoint}); remove that "
                "driver from the node, then start this agent."
            )


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Hold the lock file of the plugin folder. Raises ``RivalDriver`` that names the holder's process id."""
    path = home / "agent.lock"
    try:
        home.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(f"{path} cannot be opened: {error.strerror}.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise RivalDriver(
                f"{path} is locked by another agent of this node (process {holder} in its own count); stop that first."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)

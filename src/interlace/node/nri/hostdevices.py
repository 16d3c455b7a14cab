"""The device nodes of the host, as the injector sees them: lstat alone says what a device is.

Invariant: a symlink is never followed, neither the last part of a path nor one before it, so an allowed name cannot
lead to another device.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import msgspec

from interlace.node.nri.errors import Reason, Refused

_KINDS: Final = {stat.S_IFCHR: "c", stat.S_IFBLK: "b", stat.S_IFIFO: "p"}


class HostDevice(msgspec.Struct, frozen=True):
    """What the node has at a path: ``kind`` is c, b or p."""

    kind: str
    major: int
    minor: int


def look(path: str, *, dev: Path) -> HostDevice:
    """The device at ``path`` (/dev/…) of the host, whose /dev is mounted at ``dev``. Raises ``Refused``."""
    inside = path.removeprefix("/dev/").split("/")
    where = dev
    try:
        for part in inside[:-1]:
            where = where / part
            if not stat.S_ISDIR(os.lstat(where).st_mode):
                raise Refused(Reason.NOT_A_DEVICE, f"{path}: a part of the path is no folder on the node")
        found = os.lstat(where / inside[-1])
    except (FileNotFoundError, NotADirectoryError):
        raise Refused(
            Reason.NO_DEVICE, f"{path} does not exist on the node; is the driver that makes it installed and loaded?"
        ) from None
    except (OSError, ValueError) as error:
        raise Refused(Reason.NO_DEVICE, f"{path} cannot be read on the node: {error}") from None
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind is None:
        what = "a symlink" if stat.S_ISLNK(found.st_mode) else "no device"
        raise Refused(Reason.NOT_A_DEVICE, f"{path} is {what} on the node; name the device itself")
    return HostDevice(kind, os.major(found.st_rdev), os.minor(found.st_rdev))

"""Our block in the hosts file: the one place where IMEX names become addresses.

The file belongs to the container; every line that is not ours stays as it is, byte for byte.
Ours stand in one marked block that is replaced as a whole. Invariants: the same names and
addresses give the same bytes; an unchanged file is not written; a reader never sees a file
without the foreign lines.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from interlace.imex.order import SENTINEL, Order, parse_address
from interlace.imex.reasons import ImexError, Reason

BEGIN = b"# BEGIN interlace imex: written by imex-host, changes inside are lost\n"
END = b"# END interlace imex\n"
_BEGIN_MARK = b"# BEGIN interlace imex"
_END_MARK = b"# END interlace imex"


def own_view(order: Order, own: str) -> list[str]:
    """Addresses of the order as this node must see them.

    The own slot always has the own address ``own``, also while the order still holds the address
    of a host pod that was replaced; another slot with that address cannot be a peer and gets the
    sentinel. With an empty ``own`` the addresses stay as they are.
    """
    addresses = [parse_address(address) for address in order.addresses]
    if own:
        addresses = [SENTINEL if address == own else address for address in addresses]
        addresses[order.index] = own
    return addresses


def merge(text: bytes, *, names: Sequence[str], addresses: Sequence[str]) -> bytes:
    """The hosts file with our block replaced, or added at the end; without names it is removed.

    A block whose end mark is missing reaches to its last line that has our form: nothing foreign is taken.
    """
    lines = text.splitlines(keepends=True)
    kept: list[bytes] = []
    place: int | None = None
    inside = False
    for line in lines:
        if line.startswith(_BEGIN_MARK):
            inside = True
            place = len(kept) if place is None else place
        elif inside and line.startswith(_END_MARK):
            inside = False
        elif inside and _is_ours(line):
            continue
        else:
            inside = False
            kept.append(line)
    if not names:
        return b"".join(kept)
    block = [BEGIN, *(f"{a}\t{n}\n".encode() for a, n in zip(addresses, names, strict=True)), END]
    if place is None:
        place = len(kept)
    if place and not kept[place - 1].endswith((b"\n", b"\r")):
        kept[place - 1] += b"\n"
    return b"".join(kept[:place] + block + kept[place:])


def _is_ours(line: bytes) -> bool:
    fields = line.split()
    return len(fields) == 2 and fields[1].startswith(b"imex-")


def rewrite(path: Path, *, names: Sequence[str], addresses: Sequence[str]) -> bool:
    """Bring the file at ``path`` up to date; True if it had to be written.

    Replaced by rename where that is possible; a bind mount (``/etc/hosts`` of a container) cannot be
    renamed over and is written in place, with one write call. Raises `ImexError` (FilesNotWritten).
    """
    try:
        try:
            old = path.read_bytes()
        except FileNotFoundError:
            old = b""
        new = merge(old, names=names, addresses=addresses)
        if new == old:
            return False
        _replace(path, new, old_size=len(old))
    except OSError as error:
        raise ImexError(Reason.FILES_NOT_WRITTEN, f"hosts file {path}: {error.strerror or error}") from error
    return True


def _replace(path: Path, data: bytes, *, old_size: int) -> None:
    if path.is_symlink():
        path = path.resolve()
    if not os.path.ismount(path):
        new = path.with_name(f".{path.name}.interlace")
        try:
            mode = path.stat().st_mode & 0o7777 if path.exists() else 0o644
            new.write_bytes(data)
            new.chmod(mode)
            new.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            # A mount that does not look like one, or a folder that is read-only around a writable file.
            if error.errno not in (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EROFS, errno.EPERM):
                raise
        else:
            return
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if len(data) < old_size:
            os.ftruncate(fd, len(data))
    finally:
        os.close(fd)

"""What imex-host must remember over its own death: the wanted order and the living process.

One JSON file, written by rename. Invariant: it names a process from the moment that
one was started until it was seen to end, so that a process can be adopted and never gets a twin. A
file that cannot be read is set aside, never a reason not to start.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import msgspec

from interlace.imex.order import Order
from interlace.imex.process import Identity

VERSION = 1

log = logging.getLogger(__name__)


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """The process: who it is, the order that its files came from, and whether a reload is still owed."""

    identity: Identity
    order: Order
    reload_pending: bool = False


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the file."""

    version: int = VERSION
    wanted: Order | None = None
    running: Running | None = None
    restarts: int = 0


_decoder = msgspec.json.Decoder(Record)


def load(path: Path) -> Record:
    """The stored record; an empty one if there is none or it is damaged (then the file is set aside)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Record()
    except OSError as error:
        log.warning("stored order %s cannot be read: %s", path, error.strerror or error)
        return Record()
    try:
        record = _decoder.decode(data)
        if record.version != VERSION:
            raise msgspec.ValidationError(f"version {record.version}, this program knows {VERSION}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        aside = path.with_suffix(".damaged")
        log.warning("stored order %s is not usable and moved to %s: %s", path, aside, error)
        path.replace(aside)
        return Record()
    return record


def save(path: Path, record: Record) -> None:
    """Replace the stored record, an empty one by no file; raises OSError.

    Not synchronised to the disk: what it describes ends with the boot, and after one the agent orders again.
    """
    if record == Record():
        path.unlink(missing_ok=True)
    else:
        replace_file(path, msgspec.json.encode(record))


def replace_file(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file so that no reader ever sees half of it; raises OSError and leaves nothing behind."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.touch(mode=mode)
        new.write_bytes(data)
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise

"""What was measured, in a file that outlives whoever measured: one JSON object a line.

The first line names the plan. A reading is there once its line, with its newline, is on the disk (append, fsync).
Invariant: a line that a crash cut is dropped when the file is opened again; nothing that is complete is ever lost, and
readings of another plan are never mixed in.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from interlace.verify.measurement import Reading
from interlace.verify.schedule import Plan

VERSION: Final = 1


class JournalError(ValueError):
    """The file cannot be used; the message says what to do."""


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    journal: str
    version: int
    plan: Plan
    measured: str = ""


class Journal:
    """An open journal."""

    def __init__(self, file: int, *, readings: list[Reading]) -> None:
        self._file = file
        self.readings = readings

    def add(self, reading: Reading) -> None:
        """Put a reading on the disk. Raises OSError."""
        line = msgspec.json.encode(reading) + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)
        self.readings.append(reading)


@contextmanager
def open_journal(path: Path, *, plan: Plan, resume: bool, measured: str = "") -> Iterator[Journal]:
    """The journal of ``plan``, held for us alone; ``measured`` is what else must be the same, in words.

    A file that is there is used with ``resume`` only. Raises JournalError, OSError.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}; name a file that may be written with --journal") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalError(f"{path}: another measurement writes to it; wait for it, or name another file") from None
        head = _Head(journal="interlace verify pairs", version=VERSION, plan=plan, measured=measured)
        yield Journal(file, readings=_begin(file, path, head=head, resume=resume))
    finally:
        os.close(file)


def _begin(file: int, path: Path, *, head: _Head, resume: bool) -> list[Reading]:
    size = os.fstat(file).st_size
    text = os.pread(file, size, 0)
    whole = text.rfind(b"\n") + 1
    if text and not resume:
        raise JournalError(f"{path}: it is there already; continue it with --resume, or name another file")
    lines = text[:whole].splitlines()
    if lines:
        _check(lines[0], path, head=head)
    elif text and not msgspec.json.encode(head).startswith(text[:12]):
        raise JournalError(f"{path}: this is no journal of `verify pairs`; name another file")
    readings = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            readings.append(msgspec.json.decode(line, type=Reading))
        except msgspec.DecodeError as error:
            raise JournalError(
                f"{path}: line {number} is damaged ({error}); take that line out, its pair is measured again"
            ) from None
    if whole < size:
        os.ftruncate(file, whole)
    if not lines:
        os.write(file, msgspec.json.encode(head) + b"\n")
    os.fsync(file)
    return readings


def _check(line: bytes, path: Path, *, head: _Head) -> None:
    try:
        found = msgspec.json.decode(line, type=dict[str, object])
        version = found.get("version")
        if found.get("journal") != head.journal:
            raise JournalError(f"{path}: this is no journal of `verify pairs`; name another file")
        if version != VERSION:
            raise JournalError(
                f"{path}: version {version} of the journal is not known, only {VERSION}; start a new one"
            )
        own = msgspec.convert(found, _Head)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise JournalError(f"{path}: this is no journal of `verify pairs`; name another file") from None
    if own != head:
        changed = [name for name in Plan.__struct_fields__ if getattr(own.plan, name) != getattr(head.plan, name)] + (
            ["what is measured"] if own.measured != head.measured else []
        )
        raise JournalError(
            f"{path}: it is of another plan ({', '.join(changed)} differ); give the same options, or another file"
        )

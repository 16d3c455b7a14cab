"""What was sent, on disk before it is sent: so that a run that was killed goes on instead of doing things twice.

Invariant: the line of a mutation has reached the disk before its request leaves, and the name of its operation before
anything waits for it. The journal is a memory, not a truth: without it everything is found out again by looking, only
slower, and but for what `adopt` took over, which then counts as foreign.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

import msgspec

from interlace.gke.resource import Key

Event = Literal["sent", "running", "done", "failed", "adopted", "released"]
_NAME: Final = "journal.jsonl"


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line. ``request_id``: what the API knows a compute mutation by. ``operation``: path below the project.

    ``running`` says that the request was taken, ``done`` and ``failed`` how it ended.
    """

    event: Event
    key: Key
    verb: str = ""
    """``create``, ``delete``, or the name of an update."""
    request_id: str = ""
    body: str = ""
    """Hash of the body that was sent."""
    operation: str = ""
    text: str = ""


class JournalError(Exception):
    """The journal cannot be written or is no journal."""


class Journal:
    """Append-only lines of JSON in ``folder``, for one process at a time (see `lock`).

    ``sync`` brings an open file to the disk.
    """

    def __init__(self, folder: Path, *, sync: Callable[[int], None] = os.fsync) -> None:
        self.path = folder / _NAME
        self._sync = sync
        self._file: int | None = None
        self.entries: list[Entry] = []
        """Lines of earlier runs and of this one, oldest first."""

    def __enter__(self) -> Self:
        """Read what there is; cut off a line that was being written when its process died. Raises JournalError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            text = self.path.read_bytes()
            whole = text.rfind(b"\n") + 1
            if whole != len(text):
                os.ftruncate(self._file, whole)
            _sync_folder(self.path.parent)
        except OSError as error:
            self._close()
            raise JournalError(
                f"{self.path}: the journal cannot be opened ({error.strerror or error}); "
                "make its folder writable or name another one with --state"
            ) from None
        try:
            self.entries = list(read_lines(text[:whole].splitlines(), path=self.path))
        except JournalError:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def peek(self) -> list[Entry]:
        """Entries of the file as it is, if there is one, without opening it for writing. Raises JournalError."""
        try:
            text = self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise JournalError(f"{self.path}: the journal cannot be read ({error.strerror or error})") from None
        return list(read_lines(text[: text.rfind(b"\n") + 1].splitlines(), path=self.path))

    def append(self, entry: Entry) -> None:
        """Write one line and wait until it is on the disk. Raises JournalError."""
        if self._file is None:
            raise JournalError(f"{self.path}: the journal is not open")
        whole = 0
        try:
            whole = os.fstat(self._file).st_size
            _write(self._file, msgspec.json.encode(entry) + b"\n")
            self._sync(self._file)
        except OSError as error:
            with suppress(OSError):  # no other line may follow on half of this one
                os.ftruncate(self._file, whole)
            raise JournalError(
                f"{self.path}: the journal cannot be written ({error.strerror or error}); "
                "nothing more was sent, free the disk and run the same command again"
            ) from None
        self.entries.append(entry)

    def forget(self) -> None:
        """Begin anew: nothing is there any more. Raises JournalError."""
        if self._file is not None:
            try:
                os.ftruncate(self._file, 0)
                self._sync(self._file)
            except OSError as error:
                raise JournalError(f"{self.path}: the journal cannot be emptied ({error.strerror or error})") from None
        self.entries.clear()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_lines(lines: Iterable[bytes], *, path: Path) -> Iterator[Entry]:
    """Entries of whole lines. Raises JournalError with the number of the first line that is none."""
    decoder = msgspec.json.Decoder(Entry)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError as error:
            raise JournalError(
                f"{path}:{number}: the line is not an entry of a journal ({error}); move the file away: "
                "what exists is then found out again by looking, but for what was adopted"
            ) from None


def unfinished(entries: Iterable[Entry]) -> dict[Key, Entry]:
    """The last ``sent`` or ``running`` of each resource about whose end nothing is written."""
    open_: dict[Key, Entry] = {}
    for entry in entries:
        if entry.event in {"sent", "running"}:
            open_[entry.key] = entry
        elif entry.event in {"done", "failed"}:
            open_.pop(entry.key, None)
    return open_


def adopted(entries: Iterable[Entry]) -> frozenset[Key]:
    """Resources that `adopt` took over and nobody has let go since."""
    ours: set[Key] = set()
    for entry in entries:
        if entry.event == "adopted":
            ours.add(entry.key)
        elif entry.event == "released" or (entry.event == "done" and entry.verb == "delete"):
            ours.discard(entry.key)
    return frozenset(ours)


def new_request_id() -> str:
    """An id under which the Compute API carries out a request once, however often it comes."""
    return str(uuid.uuid4())


def _write(handle: int, line: bytes) -> None:
    """All of it: a disk that fills up takes a part and says so only at the next write."""
    while line:
        line = line[os.write(handle, line) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

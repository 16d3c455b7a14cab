"""The log of nvidia-imex: passed on to our own output, and searched for the cause when the process ends.

The process writes to a file and not to our output, because it outlives us: a pipe without a
reader would kill it. Invariants: every whole line is passed on once; the file stays below
`LARGEST` because it is emptied when it has grown beyond, which is safe as the process appends.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path

from interlace.imex.reasons import Reason
from interlace.imex.supervisor import Fault

LARGEST = 8 << 20
CHUNK = 1 << 18
KEPT_LINES = 50
LONGEST_LINE = 2000

_IN_USE = re.compile(r"NV_ERR_IN_USE|failed to allocate imex session", re.IGNORECASE)


class Tail:
    """Follows one log file. ``sink`` gets each line without its newline; it must not block."""

    def __init__(self, path: Path, *, sink: Callable[[str], None], from_end: bool = False) -> None:
        self._path = path
        self._sink = sink
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._offset = os.fstat(self._fd).st_size if from_end else 0
        self._rest = b""
        self._last: deque[str] = deque(maxlen=KEPT_LINES)

    def read(self) -> bool:
        """Pass on what is new; True if there was anything."""
        size = os.fstat(self._fd).st_size
        if size < self._offset:
            self._offset = 0
        if size == self._offset:
            return False
        data = os.pread(self._fd, CHUNK, self._offset)
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > CHUNK:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._take(line)
        if self._offset == size and size > LARGEST:
            os.ftruncate(self._fd, 0)
            self._offset = 0
        return True

    def finish(self) -> None:
        """Read to the end and close; for after the end of the process."""
        while self.read():
            pass
        if self._rest:
            self._take(self._rest)
        os.close(self._fd)

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()[:LONGEST_LINE]
        if text:
            self._last.append(text)
            self._sink(text)

    def cause(self, *, pid: int, how: str) -> Fault:
        """Why the process ended, from its last lines."""
        for line in self._last:
            if _IN_USE.search(line):
                text = f"the IMEX session of this node is taken by another process: {line}"
                return Fault(reason=Reason.IMEX_IN_USE, message=text)
        last = f"; its last line is: {self._last[-1]}" if self._last else "; it logged nothing"
        ended = f"ended by itself with {how}" if how else "ended by itself"
        return Fault(reason=Reason.CRASHED, message=f"nvidia-imex (pid {pid}) {ended}{last}")

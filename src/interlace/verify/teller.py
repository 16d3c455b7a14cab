"""Lines beside a table as events: who said them, when, and how loudly.

Invariant: after ``MOST`` quiet events only warnings and failures are told, and after as many of those nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from interlace.verify.events import MOST, LogEvent
from interlace.verify.prefix import strip

LONG = 4096
"""Characters of a line that are looked at."""
_KNOWN = 65_536
"""Ranks, and hosts, that are remembered."""
NCCL = re.compile(
    r"(?<!\S)(\S*?):(\d{1,9}):(\d{1,9}) \[(\d{1,9})\] (?:\S+:\d+ (?:\(\S+\) )?)?NCCL ([A-Z]+) ?(.*)"
    r"|\bNCCL ([A-Z]{4,5}) (.*)",
    re.DOTALL | re.ASCII,
)
"""A line of NCCL: host, process, thread, device, level and text; or level and text alone."""
_LOUD = re.compile(rb"NCCL WARN|Test .{0,10}failure|Test timeout")
_WHERE = re.compile(r"\] (\S+:\d{1,9}) (?:\(\S+\) )?NCCL ", re.ASCII)


class Teller:
    """Makes events out of lines; without a callback it does nothing."""

    def __init__(self, tell: Callable[[LogEvent], None] | None, *, source: str) -> None:
        self._tell = tell
        self._source = source
        self._left = {True: MOST, False: MOST}
        self.ranks: dict[tuple[str, int, int], int] = {}
        """Rank by host, process and device, from the list of ranks."""
        self.hosts: dict[str, None] = {}

    def learn(self, host: str, pid: int | None, device: int, *, rank: int) -> None:
        """Take a line of the list of ranks; of many lists the last ones are known."""
        if len(self.hosts) >= _KNOWN:
            self.hosts.clear()
        self.hosts[host] = None
        if pid is not None:
            if len(self.ranks) >= _KNOWN:
                self.ranks.clear()
            self.ranks[host, pid, device] = rank

    def say(self, line: bytes, *, number: int) -> None:
        """Hand line ``number`` on."""
        if self._tell is None or (self._left[False] <= 0 and not _LOUD.search(line)):
            return
        text = line[:LONG].decode("utf-8", "replace")
        stripped = strip(text, hosts=False)
        body, level, host, pid, device, rank = stripped.text.strip(), "", stripped.host, None, None, stripped.rank
        match = NCCL.search(stripped.text) if "NCCL " in stripped.text else None
        if match is not None and match[1] is not None:
            host = self._host(match[1]) or host
            pid, device, level, body = int(match[2]), int(match[4]), match[5], match[6].strip()
            rank = self.ranks.get((host or "", pid, device), rank)
        elif match is not None:
            level, body = match[7], match[8].strip()
        elif body.startswith("#") and "error" not in body:  # the frame of a table
            return
        elif "Test " in body and ("failure" in body or "timeout" in body):
            level = "TEST"
        loud = level in {"WARN", "TEST"}
        where = _WHERE.search(stripped.text) if loud else None
        if not body or self._left[loud] <= 0:
            return
        self._left[loud] -= 1
        self._tell(
            LogEvent(
                line=number,
                level=level,
                text=body,
                rank=rank,
                host=host,
                pid=pid,
                device=device,
                where=where[1] if where is not None else None,
                time=stripped.time,
                source=self._source,
            )
        )

    def _host(self, word: str) -> str:
        """The host in a word that may have a piece of a row before it."""
        if word in self.hosts:
            return word
        return next((one for one in self.hosts if word.endswith(one)), word)

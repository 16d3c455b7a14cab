"""What launchers, loggers and editors put before a line, and sometimes into it.

Invariant: taking prefixes off never touches a row's own cells, and a line without one comes back as it is.
Prefixes nest, so one after the other is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAG = re.compile(r"\[(?:[\w.-]*@)?\d{1,9}(?:,(\d{1,9}))?\](?:<(?:stdout|stderr|stddiag)>)?:?", re.ASCII)
_INNER = re.compile(r"\[(?:[\w.-]*@)?\d{1,9}(?:,\d{1,9})?\](?:<(?:stdout|stderr|stddiag)>)?:?", re.ASCII)
_LABEL = re.compile(r"\s*(\d{1,9}):(?=\s|#|$|[A-Za-z\[])", re.ASCII)
_POD = re.compile(r"\[?(pod/[\w.\-/]+)\]?(?:\s|$)", re.ASCII)
_HOST = re.compile(r"([A-Za-z0-9][\w.\-]{0,252})(?:\s+(\d{1,9}))?(?::(?=\s|$)|\s+\|(?=\s|$))\s?", re.ASCII)
_MARK = re.compile(r"(?:[+>|](?=[\s#\d|>+\[]|$)|-(?=[\s#]|$)|`{1,3}(?=\s|#|$))\s?", re.ASCII)
_TIME = re.compile(
    r"""\[?(
      \d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?:Z|\s?[+-]\d\d:?\d\d)?
      | \d{4}/\d\d/\d\d\ \d\d:\d\d:\d\d(?:\.\d{1,9})?
      | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d
      | \d\d:\d\d:\d\d(?:[.,]\d{1,9})?
    )\]?(?::(?=\s))?(?:\s|$)""",
    re.VERBOSE | re.ASCII,
)
_WORDS = frozenset(
    {"Reducing", "NCCL", "Avg", "Out", "Using", "Rank", "Test", "error", "Error", "Warning", "WARNING", "Errors"}
    | {"rccl-tests", "nccl-tests"}
)


@dataclass(frozen=True, slots=True)
class Stripped:
    """A line without its prefixes, and what they said."""

    text: str
    tag: str | None = None
    """Which process, Pod or host wrote the line, as far as the launcher tells."""
    rank: int | None = None
    host: str | None = None
    time: str | None = None


def strip(line: str, *, hosts: bool) -> Stripped:
    """Take the prefixes off; blanks after the last one stay.

    ``hosts``: a word with a colon is taken for a host; without, it stays, since it may as well be a program's name.
    """
    if line.startswith(("# ", "#\n", "      ")):  # a table's own lines
        return Stripped(line)
    text, tag, rank, host, time = line, None, None, None, None
    for _ in range(8):
        bare = text.lstrip()
        if not bare:
            break
        if (match := _TIME.match(bare)) is not None:
            time = time or match[1]
        elif (match := _TAG.match(bare)) is not None:
            number = match[1] or re.sub(r"\D", "", match[0].partition("]")[0].rpartition("@")[2])
            tag, rank = f"[{number}]", int(number)
        elif (match := _LABEL.match(bare)) is not None:
            tag, rank = f"{match[1]}:", int(match[1])
        elif (match := _POD.match(bare)) is not None:
            tag = match[1]
            host = match[1].split("/")[1] or None
        elif (match := _MARK.match(bare)) is not None:
            pass
        elif hosts and (match := _HOST.match(bare)) is not None and match[1] not in _WORDS:
            tag, host = match[0].strip(), match[1]
            rank = int(match[2]) if match[2] else rank
        else:
            break
        text = bare[match.end() :]
    return Stripped(text, tag, rank, host, time)


def cleaned(text: str) -> str:
    """``text`` without tags that a launcher put into the middle of a line."""
    return _INNER.sub(" ", text) if "[" in text else text

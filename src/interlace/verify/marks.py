"""What one line of a log is to a table: a title, a rank, a header, a row, a footer, trouble, or nothing.

Invariant: a line is recognised by its fixed words wherever in the line they stand, so prefixes and a missing ``#``
do not matter; recognising keeps no state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from interlace.verify import layout


@dataclass(frozen=True, slots=True)
class Version:
    text: str


@dataclass(frozen=True, slots=True)
class Start:
    """``# Collective test starting: NAME``."""

    name: str


@dataclass(frozen=True, slots=True)
class Concluded:
    name: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that was pasted or echoed."""

    name: str


@dataclass(frozen=True, slots=True)
class Config:
    """``# nThread ...``; what is not said is None."""

    validation: int | None
    largest: int | None = None
    """Bytes up to which the sweep was asked for."""
    factor: int = 1
    step: int = 0
    """Bytes."""

    def goes_on(self, size: int) -> bool:
        """Whether a size follows ``size`` in the sweep; what rounding took off the last one is none."""
        if self.largest is None or size >= 0.98 * self.largest:
            return False
        return self.largest >= size * self.factor + self.step > size


@dataclass(frozen=True, slots=True)
class Rank:
    rank: int
    pid: int | None
    host: str
    device: int
    product: str


@dataclass(frozen=True, slots=True)
class Omission:
    """The list of ranks was cut."""


@dataclass(frozen=True, slots=True)
class Names:
    """Column names, whole header or a part of it."""

    tokens: list[str]
    header: layout.Header | None


@dataclass(frozen=True, slots=True)
class Values:
    """Numbers and nothing else: the rest of a row whose beginning stood before."""

    tokens: list[str]


@dataclass(frozen=True, slots=True)
class Bounds:
    count: int
    okay: bool


@dataclass(frozen=True, slots=True)
class Average:
    text: str
    okay: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """nccl-tests says that it failed."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A line of nccl-tests that changes what the run is."""

    text: str


Mark = (
    Version | Start | Concluded | Command | Config | Rank | Omission | Names | Values
    | Bounds | Average | Trouble | Note | layout.Cells
)  # fmt: skip

ANCHORS = frozenset(
    word.encode()
    for word in (
        *layout.SIZES, "algbw", "busbw", "#wrong", "wrong", "Rank", "nThread", "Collective", "concluded:", "starting:",
        "Avg", "bounds", "version", "Version", "Reducing", "...", "failure", "timeout", "error:", "json", "#...", "{",
    )
)  # fmt: skip
"""A line without one of these tokens is nothing to a table, except numbers alone while a row is incomplete."""
FRAGMENTS = (b"_perf", b'{"')
"""Nor is it something without one of these parts."""

_VERSION = re.compile(r"\b(nccl-tests|rccl-tests):?\s+[Vv]ersion\s+(\S+)", re.ASCII)
_TITLE = re.compile(r"Collective test (starting|concluded):\s*(\w+)", re.ASCII)
_CONFIG = re.compile(r"\bnThreads?\s+\d+\s+nGpus\s+\d+\s+minBytes\s+\d+", re.ASCII)
_LARGEST = re.compile(r"\bmaxBytes\s+(\d{1,19})\s+step:\s*(\d{1,19})\((factor|bytes)\)", re.ASCII)
_VALIDATION = re.compile(r"\b(?:validation|check):\s*(\d{1,9})", re.ASCII)
_RANK = re.compile(
    r"\bRank\s+(\d{1,9})\s+(?:Group\s+-?\d+\s+)?(?:Pid\s+(\d{1,9})\s+)?on\s+(\S+)\s+device\s+(\d{1,9})"
    r"\s+\[[\w:.]*\]\s*(.*)",
    re.ASCII,
)
_RANK_LINE = ("#  Rank ", "#   Rank ")
_OMISSION = re.compile(r"[#\s]*\.\.\.\s*", re.ASCII)
_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d{1,19})(?:\s+(OK|FAILED))?", re.ASCII)
_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*([\d.eE+\-]+|-?inf|-?nan)(?:\s+(OK|FAILED))?", re.ASCII)
_TROUBLE = re.compile(r"\bTest (?:NCCL |CUDA )?failure\b.*|\bTest timeout \(\d+s?\).*|#\s*error:\s*\S.*", re.ASCII)
_NOTE = re.compile(r"Reducing maxBytes to \d+ due to memory limitation|skipping json output.*", re.ASCII)
_FRAGMENT = re.compile(r"[#\s]*\d{1,19}(?:\s+\d{1,19}(?:\s+[a-z]\w{0,8})?)?\s*", re.ASCII)
"""What is left of a row that is cut before its values."""
_COMMAND = re.compile(r"(?<![A-Za-z])([a-z]+(?:_[a-z]+)*)_perf\b", re.ASCII)


def recognise(text: str, *, line: int, cut: bool = False) -> Mark | None:
    """What ``text``, a line without its prefixes, is to a table. ``cut``: the log ends in it."""
    if text.startswith(_RANK_LINE) and not cut and (rank := _rank(text)):  # large jobs have thousands
        return rank
    tokens = text.split()
    if cut and _FRAGMENT.fullmatch(text):
        return layout.Cells(size=0, count=0, type="", values=[], line=line)
    row = layout.cells(tokens, line=line)
    if row is not None:
        return row
    header = layout.header(tokens)
    if header is not None:
        return Names(tokens, header)
    mark = _title(text) or _ending(text)
    if mark is not None:
        return mark
    if layout.names(tokens) is not None:
        return Names(tokens, None)
    values = layout.Cells(size=0, count=0, type="", values=[""], line=line)
    if tokens and layout.extend(values, tokens):
        return Values(tokens)
    match = _COMMAND.search(text)
    return Command(match[1]) if match else None


def trouble(text: str) -> Trouble | None:
    """What nccl-tests says of a failure, perhaps in the same line as half a row."""
    match = _TROUBLE.search(text)
    return Trouble(match[0].strip()) if match else None


def _title(text: str) -> Mark | None:
    if "Rank" in text and (found := _rank(text)):
        return found
    if "Collective" in text and (match := _TITLE.search(text)):
        name = match[2].removesuffix("_perf")
        return Start(name) if match[1] == "starting" else Concluded(name)
    if "nThread" in text and _CONFIG.search(text):
        return _config(text)
    if "ersion" in text and (match := _VERSION.search(text)):
        return Version(f"{match[1]} {match[2]}")
    return Omission() if _OMISSION.fullmatch(text) else None


def _rank(text: str) -> Rank | None:
    match = _RANK.search(text)
    if match is None:
        return None
    rank, pid, host, device, product = match.groups()
    return Rank(int(rank), int(pid) if pid else None, host, int(device), product.strip())


def _config(text: str) -> Config:
    found, sweep = _VALIDATION.search(text), _LARGEST.search(text)
    validation = int(found[1]) if found else None
    if sweep is None:
        return Config(validation)
    factor, step = (int(sweep[2]), 0) if sweep[3] == "factor" else (1, int(sweep[2]))
    return Config(validation, int(sweep[1]), factor, step)


def _ending(text: str) -> Mark | None:
    if match := _BOUNDS.search(text):
        return Bounds(int(match[1]), match[2] != "FAILED")
    if match := _AVERAGE.search(text):
        return Average(match[1], match[2] != "FAILED")
    if match := _NOTE.search(text):
        return Note(match[0].strip())
    return trouble(text)

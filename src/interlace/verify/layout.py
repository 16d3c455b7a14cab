"""Columns of a table of nccl-tests, in every order and number that it was ever printed.

Invariant: a row is anchored on its data type with two whole numbers before it, never on positions; values are
assigned to columns only if their number fits a layout that some version printed. All else is no row.
Sources: nccl-tests v1.0.0 to v2.19.6, rccl-tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from interlace.verify.number import Interval, printed

SIZES = {
    "int8": 1, "char": 1, "uint8": 1, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
    "half": 2, "bfloat16": 2,
    "int32": 4, "int": 4, "uint32": 4, "float": 4,
    "int64": 8, "uint64": 8, "double": 8,
}  # fmt: skip
"""Bytes of an element by its type as printed."""
REDOPS = frozenset({"none", "sum", "prod", "max", "min", "avg", "mulsum"})

_UNSIGNED = re.compile(r"\d{1,19}", re.ASCII)
_ROOT = re.compile(r"-?\d{1,9}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = re.compile(r"\d\d:\d\d:\d\d", re.ASCII)
_WORDS = frozenset(
    {"size", "count", "type", "redop", "op", "root", "time", "cputime", "algbw", "busbw", "wrong", "error", "res"}
    | {"bytes", "n", "i_min", "i_max", "i_p99", "i_cv%", "timestamp", "out-of-place", "in-place"}
)
_GLUED = re.compile(r"(-?\d[\d.]*(?:e[+-]\d\d)?|N/A)(?=[A-Za-z_])(.*)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What a header says about the rows below it."""

    redop: bool
    root: bool
    deviation: bool
    """The last value of a half is a largest deviation (``error``, ``res``), no count of wrong elements."""
    milliseconds: bool = False
    cpu_time: bool = False
    per_iteration: bool = False
    timestamp: bool = False

    @property
    def values(self) -> int:
        """Values after redop and root."""
        return 16 if self.per_iteration else 8


UNIFORM = Columns(redop=True, root=True, deviation=False)
"""Of all collectives since v2.13."""


@dataclass(frozen=True, slots=True)
class Header:
    """A line of column names; without columns it is one that nccl-tests never printed."""

    columns: Columns | None
    begun: bool = False
    """It holds the first names of a known header: the rest may be on the next line."""


@dataclass(slots=True, kw_only=True)
class Cells:
    """A row in the making: the values after the type as they were printed."""

    size: int
    count: int
    type: str
    values: list[str]
    line: int
    tail: list[str] = field(default_factory=list)
    """What stood behind the values and is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One half as printed: value and place of time (as printed), algbw and busbw."""

    time: tuple[float, float]
    algbw: tuple[float, float]
    busbw: tuple[float, float]
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A complete row."""

    cells: Cells
    redop: str | None
    root: str | None
    oop: Reading
    ip: Reading


def names(tokens: list[str]) -> list[str] | None:
    """The column names in ``tokens`` if they are nothing else."""
    words = [token.lower().replace("\\", "").lstrip("#") for token in tokens]
    words = [word for word in words if word]
    return words if words and all(word in _WORDS for word in words) else None


def header(tokens: list[str]) -> Header | None:
    """The header in a line's tokens, which may have a prefix; None if the line is none."""
    if not any("bw" in token for token in tokens):
        return None
    words = [token.lower().replace("\\", "").lstrip("#") for token in tokens]
    words = [word for word in words if word]
    if not {"algbw", "busbw"} & set(words):
        return None
    start = next((i for i, word in enumerate(words) if word in {"size", "bytes"}), None)
    if start is None:
        return Header(None)
    words = words[start:]
    if words[1:3] not in (["count", "type"], ["n", "type"]):
        return Header(None)
    rest = words[3:]
    redop = bool(rest) and rest[0] in {"redop", "op"}
    rest = rest[redop:]
    root = bool(rest) and rest[0] == "root"
    rest = rest[root:]
    timestamp = bool(rest) and rest[-1] == "timestamp"
    rest = rest[:-1] if timestamp else rest
    cpu_time = bool(rest) and rest[0] == "cputime"
    for last in ("wrong", "error", "res"):
        half = ["cputime" if cpu_time else "time", "algbw", "busbw", last]
        long = [*half, "i_min", "i_max", "i_p99", "i_cv%"]
        for one in (half, long):
            if rest == one * 2:
                return Header(
                    Columns(
                        redop=redop,
                        root=root,
                        deviation=last != "wrong",
                        milliseconds=words[0] == "bytes",
                        cpu_time=cpu_time,
                        per_iteration=one is long,
                        timestamp=timestamp,
                    )
                )
            if rest == (one * 2)[: len(rest)]:
                return Header(None, begun=True)
    return Header(None)


def cells(tokens: list[str], *, line: int) -> Cells | None:
    """The first cells of a row in ``tokens``: its type and the two numbers before it."""
    for i, token in enumerate(tokens):
        if (
            token in SIZES
            and i >= 2
            and _UNSIGNED.fullmatch(tokens[i - 1])
            and _UNSIGNED.fullmatch(tokens[i - 2].lstrip("#|>+"))
        ):
            found = Cells(
                size=int(tokens[i - 2].lstrip("#|>+")), count=int(tokens[i - 1]), type=token, values=[], line=line
            )
            extend(found, tokens[i + 1 :])
            return found
    return None


def extend(row: Cells, tokens: list[str]) -> bool:
    """Give the row the values that ``tokens`` begin with; whether they were nothing but values.

    The last value may have a host name behind it without a blank.
    """
    for i, raw in enumerate(tokens):
        token = raw.rstrip("*") or raw
        if _is_value(token) or (not row.values and token in REDOPS):
            row.values.append(token)
            continue
        glued = _GLUED.fullmatch(token)
        if glued is not None:
            row.values.append(glued[1])
        row.tail = tokens[i:]
        return False
    return True


def lacks(row: Cells, columns: Columns | None) -> bool:
    """Whether values are still to come before the row can be complete."""
    values = len(row.values) - bool(row.values and row.values[0] in REDOPS)
    if columns is None:
        return values < 8
    return values < columns.values + columns.root + 2 * columns.timestamp


def complete(row: Cells, columns: Columns | None) -> Found | None:
    """The row with its values in their columns; None if values are missing, or too many to be understood.

    Without a header the number of values tells the layout, and one half at least must agree with size over time.
    """
    values = list(row.values)
    redop = values.pop(0) if values and values[0] in REDOPS else None
    dated = len(values) >= 2 and bool(_DATE.fullmatch(values[-2]) and _CLOCK.fullmatch(values[-1]))
    if dated:
        values = values[:-2]
    elif columns is not None and columns.timestamp:
        return None
    root, long = _shape(len(values), columns)
    if root is None or (columns is not None and columns.redop != (redop is not None)):
        return None
    first = values.pop(0) if root else None
    if first is not None and not _ROOT.fullmatch(first):
        return None
    width = 8 if long else 4
    halves = [_half(values[start : start + 4]) for start in (0, width)]
    if halves[0] is None or halves[1] is None:
        return None
    found = Found(cells=row, redop=redop, root=first, oop=halves[0], ip=halves[1])
    return found if columns is not None or _is_plausible(found) else None


def _is_plausible(found: Found) -> bool:
    """Whether time and algbw of a half can be what they are taken for; old builds print as little as half of algbw."""
    for half in (found.oop, found.ip):
        time, algbw = Interval.around(*half.time), Interval.around(*half.algbw)
        most = time.dividing(found.cells.size / 1e3)
        if algbw.meet(Interval(most.low * 0.49, most.high)):
            return True
    return False


def _shape(values: int, columns: Columns | None) -> tuple[bool | None, bool]:
    """Whether there is a root and whether there are figures of iterations, from the number of values."""
    if columns is not None:
        return (columns.root if values == columns.values + columns.root else None), columns.per_iteration
    return {8: (False, False), 9: (True, False), 16: (False, True), 17: (True, True)}.get(values, (None, False))


def _half(values: list[str]) -> Reading | None:
    numbers = [printed(value) for value in values[:3]]
    if numbers[0] is None or numbers[1] is None or numbers[2] is None:
        return None
    if values[3] != "N/A" and printed(values[3]) is None:
        return None
    return Reading(time=numbers[0], algbw=numbers[1], busbw=numbers[2], wrong=values[3])


def _is_value(text: str) -> bool:
    return bool(
        text == "N/A"
        or printed(text) is not None
        or _ROOT.fullmatch(text)
        or _DATE.fullmatch(text)
        or _CLOCK.fullmatch(text)
    )

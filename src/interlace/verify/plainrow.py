"""The row that almost every log holds, read by one pattern: uniform columns, no prefix, nothing in between.

Invariant: what it reads, ``layout`` reads the same way; all else it leaves alone.
"""

from __future__ import annotations

import re

from interlace.verify.layout import REDOPS, SIZES
from interlace.verify.run import Half, Row

_TYPES = {name.encode(): name for name in SIZES}
_REDOPS = {name.encode(): name for name in REDOPS}
_RIGHT = (b"0", b"N/A")
_NUMBER = rb"\s+(\d{1,12}(?:\.\d{1,3})?)"
_HALF = _NUMBER * 3 + rb"\s+(\d{1,18}|N/A)"
_ROW = re.compile(
    rb"\s*(\d{1,18})\s+(\d{1,18})\s+(%s)\s+(%s)\s+(-1|\d{1,9})%s%s\s*"
    % (b"|".join(sorted(_TYPES)), b"|".join(sorted(_REDOPS)), _HALF, _HALF)
)


def plain_row(line: bytes, *, number: int) -> Row | None:
    """The row in line ``number``, or None."""
    match = _ROW.fullmatch(line)
    if match is None:
        return None
    size, count, kind, redop, root, a, b, c, d, e, f, g, h = match.groups()
    return Row(
        size=int(size),
        count=int(count),
        type=_TYPES[kind],
        redop=_REDOPS[redop],
        root=int(root),
        oop=_half(a, b, c, d),
        ip=_half(e, f, g, h),
        line=number,
    )


def shows_none_wrong(line: bytes) -> bool:
    """Whether both halves of a line that has the shape of a plain row count no wrong element."""
    cells = line.split()
    return cells[8] in _RIGHT and cells[12] in _RIGHT


def _half(time: bytes, algbw: bytes, busbw: bytes, wrong: bytes) -> Half:
    return Half(
        time_us=float(time),
        algbw=float(algbw),
        busbw=float(busbw),
        wrong=None if wrong == b"N/A" else int(wrong),
        units=(_unit(time), _unit(algbw), _unit(busbw)),
    )


def _unit(number: bytes) -> float:
    point = number.find(b".")
    return 1.0 if point < 0 else _UNITS[len(number) - point - 1]


_UNITS = (1.0, 0.1, 0.01, 0.001)

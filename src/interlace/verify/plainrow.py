"""The row that almost every log holds, read by one pattern: uniform columns, no prefix, nothing in between.

Invariant: what it reads, ``layout`` reads the same way; all else it leaves alone.
"""

from __future__ import annotations

import re

from interlace.verify.layout import REDOPS, SIZES
from interlace.verify.run import Half, Row

_TYPES = {name.encode(): name for name in SIZES}
_REDOPS = {name.encode(): name for name in REDOPS}
_WORDS = (b"|".join(sorted(_TYPES)), b"|".join(sorted(_REDOPS)))
_NUMBER = rb"\s+(\d{1,12}(?:\.\d{1,3})?)"
_HALF = _NUMBER * 3 + rb"\s+(\d{1,18}|N/A)"
_ROW = re.compile(rb"\s*(\d{1,18})\s+(\d{1,18})\s+(%s)\s+(%s)\s+(-1|\d{1,9})%s%s\s*" % (*_WORDS, _HALF, _HALF))
_RIGHT = rb"(?: ++\d{1,12}+(?:\.\d{1,3}+)?+){3} ++(?:0|N/A)"
_RIGHT_ROWS = re.compile(
    rb"(?: *+\d{1,18}+ ++\d{1,18}+ ++(?:%s) ++(?:%s) ++(?:-1|\d{1,9}+)%s%s *+\n)++" % (*_WORDS, _RIGHT, _RIGHT)
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


def right_rows(text: bytes) -> int:
    """Length of the plain rows without a wrong element that ``text`` begins with, each with its line end."""
    match = _RIGHT_ROWS.match(text)
    return match.end() if match is not None else 0


def _half(time: bytes, algbw: bytes, busbw: bytes, wrong: bytes) -> Half:
    return Half(
        time_us=float(time),
        algbw=float(algbw),
        busbw=float(busbw),
        wrong=None if wrong == b"N/A" else int(wrong),
        units=(_UNITS[time[::-1].find(b".")], _UNITS[algbw[::-1].find(b".")], _UNITS[busbw[::-1].find(b".")]),
    )


_UNITS = {-1: 1.0, 1: 0.1, 2: 0.01, 3: 0.001}
"""Worth of the last place, by how many digits stand behind the point."""

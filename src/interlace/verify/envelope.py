"""Lines that a log collector wrapped in JSON: entries of Cloud Logging (a list, or one a line) and Docker's json-file.

Invariant: a line in no envelope comes back as it is, and no line is added or lost, so that numbers of lines stay.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_MARKS: Final = (b'"textPayload"', b'{"log":')
"""A text without one of these holds no envelope."""
_PAYLOAD: Final = re.compile(rb'\s*(?:\{.*?)?"(?:textPayload|log)"\s*:\s*("(?:[^"\\]|\\.)*+")', re.DOTALL)
_FIELD: Final = re.compile(
    rb'\s*(?:[\[\]{}],?|\{ *\}, *\{|"[\w./-]+"\s*:\s*(?:[{\[]|"(?:[^"\\]|\\.)*+"|[\w.-]+)[\]}]*,?)\s*'
)
"""What else stands on the lines of an entry that is printed over several lines."""


def unwrapped(text: bytes) -> bytes:
    """Whole lines, those of envelopes replaced by what is in them."""
    if not any(mark in text for mark in _MARKS):
        return text
    return b"\n".join(_unwrapped(line) for line in text.split(b"\n"))


def _unwrapped(line: bytes) -> bytes:
    match = _PAYLOAD.match(line)
    if match is None:
        return b"" if _FIELD.fullmatch(line) else line
    try:
        payload = msgspec.json.decode(match[1], type=str)
    except msgspec.DecodeError:
        return line
    return " ".join(payload.rstrip("\r\n").splitlines()).encode("utf-8", "replace")

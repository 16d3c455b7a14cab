"""JSON that API servers keep and hand on, and that msgspec does not decode, made decodable.

Raw values (opaque parameters, device data) are served as the bytes that some tenant sent, and Go is lenient:
it takes bytes that are no UTF-8, half of a surrogate pair, and ten thousand levels. Invariant: what decodes
already comes back as it is; of the rest only the odd text and the odd value are replaced, and everything around
them stays byte for byte.
"""

from __future__ import annotations

import re
from typing import Final

DEEPEST: Final = 200
"""Levels that are kept; no kind of Kubernetes comes near it, and the decoder's own limit is some hundreds above."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_ESCAPE = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)
_REPLACEMENT: Final = rb"\ufffd"
"""What Go puts in the place of half a pair, and Python's decoder in that of bytes that are no character."""


def mend(text: bytes) -> bytes:
    """``text`` with whole characters, and with null in the place of each value below ``DEEPEST`` levels."""
    text = text.decode(errors="replace").encode()
    parts: list[bytes] = []
    depth = copied = 0
    for token in _TOKEN.finditer(text):
        mark = token[0][:1]
        if mark == b'"':
            if depth <= DEEPEST and b"\\u" in token[0]:
                parts += text[copied : token.start()], _ESCAPE.sub(_whole, token[0])
                copied = token.end()
        elif mark in b"[{":
            depth += 1
            if depth == DEEPEST + 1:
                parts += text[copied : token.start()], b"null"
        else:
            if depth == DEEPEST + 1:
                copied = token.end()
            depth -= 1
    return b"".join((*parts, text[copied:]))


def _whole(escape: re.Match[bytes]) -> bytes:
    return _REPLACEMENT if escape[1] else escape[0]

"""Bytes as they come, into whole lines: gzip, UTF-16, line ends of every system, colours, lines without an end.

Invariant: memory is bounded by one block and one line of at most ``LONGEST``; damaged data ends a stream early and
never raises.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

LONGEST = 1 << 20
"""Bytes; a longer line is cut into pieces."""
_PIECE = 1 << 18
_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?)")
_GZIP = b"\x1f\x8b"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_MARK = b"\xef\xbb\xbf"
_NO_BREAK = b"\xc2\xa0"


class Unpacker:
    """gzip, of one or several members, or UTF-16, if the first bytes say so; all else passes as it is."""

    def __init__(self) -> None:
        self._head = b""
        self._gzip: zlib._Decompress | None = None
        self._plain = False
        self._wide = False
        self.damaged = False
        """The compressed data ended early or is broken."""

    def feed(self, block: bytes) -> Iterator[bytes]:
        """Unpacked pieces of at most a quarter of a MiB."""
        if self._plain:
            yield block.replace(b"\0", b"") if self._wide else block
            return
        if self._gzip is None:
            self._head += block
            if len(self._head) < 2:
                return
            block, self._head = self._head, b""
            if not block.startswith(_GZIP):
                self._plain, self._wide = True, block.startswith(_WIDE)
                yield block[2:].replace(b"\0", b"") if self._wide else block.removeprefix(_MARK)
                return
            self._gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
        yield from self._unpack(block)

    def _unpack(self, block: bytes) -> Iterator[bytes]:
        while block and self._gzip is not None and not self.damaged:
            try:
                piece = self._gzip.decompress(block, _PIECE)
            except zlib.error:
                self.damaged = True
                return
            if piece:
                yield piece
            block = self._gzip.unconsumed_tail
            if self._gzip.eof:
                block = self._gzip.unused_data.lstrip(b"\0")
                self._gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def end(self) -> bytes:
        """What is left of a stream too short to tell."""
        rest, self._head = self._head, b""
        return rest


class Lines:
    """Blocks cut anywhere into blocks of whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, block: bytes) -> bytes | None:
        """The lines that ``block`` ends, with line feeds between them; None if it ends none."""
        text = self._rest + block if self._rest else block
        end = text.rfind(b"\n") + 1
        if not end:
            if len(text) <= LONGEST:
                self._rest = text
                return None
            end = len(text)
        self._rest = text[end:]
        return plain(text[: end - 1] if text[end - 1 : end] == b"\n" else text[:end])

    def end(self) -> tuple[bytes | None, bytes]:
        """Whole lines that ended with a carriage return alone, if any, and the last one, which has no end."""
        rest, self._rest = self._rest, b""
        lines, ended, last = plain(rest).rpartition(b"\n")
        return (lines if ended else None), last


def plain(text: bytes) -> bytes:
    """``text`` without colours, with line feeds as the only line ends and without blanks that do not break."""
    if _NO_BREAK in text:
        text = text.replace(_NO_BREAK, b" ")
    if b"\x1b" in text:
        text = _ANSI.sub(b"", text)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text

"""Several byte streams over one socket, as NRI cuts them: frames of connection id, length and payload.

Invariants: a frame that is sent has at most 4096 bytes of payload (the runtime reads into a buffer of that size and
hangs up on more); what comes in is passed on as it comes, so a frame of any length takes no memory here; frames of
connections that nobody serves are dropped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from interlace.node.nri.errors import ProtocolError

PLUGIN: Final = 1
"""The connection on which the runtime calls the plugin."""
RUNTIME: Final = 2
"""The connection on which the plugin calls the runtime."""
LARGEST_SENT: Final = 4096
"""Bytes of payload in one frame."""
LARGEST_RECEIVED: Final = 4 * 2**20 + 10
"""The largest ttrpc message with its header."""

_HEADER: Final = struct.Struct(">II")


def frames(connection: int, data: bytes) -> Iterator[bytes]:
    """``data`` of one connection as frames."""
    for start in range(0, len(data), LARGEST_SENT):
        part = data[start : start + LARGEST_SENT]
        yield _HEADER.pack(connection, len(part)) + part


class Splitter:
    """Takes the bytes of the socket apart into those of the connections."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._connection = 0
        self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Connection and payload, in order. Raises ``ProtocolError`` for a length that no message has."""
        view = memoryview(data)
        while view:
            if self._left:
                part = view[: self._left]
                self._left -= len(part)
                view = view[len(part) :]
                yield self._connection, bytes(part)
                continue
            part = view[: _HEADER.size - len(self._header)]
            self._header += part
            view = view[len(part) :]
            if len(self._header) == _HEADER.size:
                self._connection, self._left = _HEADER.unpack(self._header)
                self._header.clear()
                if self._left > LARGEST_RECEIVED:
                    raise ProtocolError(
                        f"A frame of {self._left} bytes came on connection {self._connection}; the largest message "
                        f"with its header has {LARGEST_RECEIVED}."
                    )

"""Frames: never too large going out, of any cut coming in."""

from __future__ import annotations

import struct
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.node.nri.errors import ProtocolError
from interlace.node.nri.mux import LARGEST_RECEIVED, LARGEST_SENT, Splitter, frames

STREAMS = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=64)), max_size=8)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """``data`` cut at places."""
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def test_no_frame_has_more_than_4096_bytes_of_payload() -> None:
    made = list(frames(2, bytes(LARGEST_SENT * 2 + 1)))
    assert [struct.unpack(">II", frame[:8]) for frame in made] == [(2, 4096), (2, 4096), (2, 1)]
    assert b"".join(frame[8:] for frame in made) == bytes(LARGEST_SENT * 2 + 1)


@given(STREAMS, st.lists(st.integers(0, 10_000), max_size=12))
@settings(max_examples=100, deadline=None)
def test_each_connection_gets_its_bytes_in_order_however_the_socket_cuts_them(
    sent: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    data = b"".join(struct.pack(">II", connection, len(part)) + part for connection, part in sent)
    got: dict[int, bytearray] = defaultdict(bytearray)
    want: dict[int, bytearray] = defaultdict(bytearray)
    splitter = Splitter()
    for piece in pieces(data, cuts):
        for connection, part in splitter.feed(piece):
            got[connection] += part
    for connection, part in sent:
        if part:
            want[connection] += part
    assert got == want


def test_a_length_that_no_message_has_is_an_error_before_anything_of_it_is_read() -> None:
    assert list(Splitter().feed(struct.pack(">II", 1, LARGEST_RECEIVED))) == []
    with pytest.raises(ProtocolError, match="A frame of 4294967295 bytes came on connection 1"):
        list(Splitter().feed(struct.pack(">II", 1, 2**32 - 1)))

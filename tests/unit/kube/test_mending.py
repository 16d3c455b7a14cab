"""JSON that a server hands on and the decoder refuses: mended, and nothing else changed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from interlace.api.resource import ResourceClaim
from interlace.kube.codec import Codec
from interlace.kube.errors import Unreadable
from interlace.kube.mending import DEEPEST, mend
from interlace.kube.untyped import untyped

ODD = {
    "first half": rb'{"x":"\ud800"}',
    "second half": rb'{"x":"\udc00 text"}',
    "two first halves": rb'{"x":"\ud800\uD801"}',
    "before a letter": rb'{"x":"\ud800\u0041"}',
    "in a name": rb'{"\ud800":1}',
    "deep list": b"[" * 5000 + b"]" * 5000,
    "deep object": b'{"]":' * 2000 + rb'"\ud800"' + b"}" * 2000,
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def claim(name: str, parameters: bytes = b"{}") -> bytes:
    config = b'[{"opaque":{"driver":"d","parameters":' + parameters + b"}}]"
    return b'{"metadata":{"name":"' + name.encode() + b'"},"spec":{"devices":{"config":' + config + b"}}}"


def names(page: tuple[list[ResourceClaim], Any, list[str]]) -> list[str]:
    return [item.metadata.name for item in page[0]]


@for_all(VALUES, st.booleans())
def test_what_decodes_already_stays_as_it_is(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode(errors="replace")
    assert mend(text) == text


@pytest.mark.parametrize("parameters", ODD.values(), ids=ODD)
def test_one_odd_object_hides_no_other(parameters: bytes) -> None:
    codec = Codec(ResourceClaim)
    page = codec.page(b'{"items":[' + claim("odd", parameters) + b"," + claim("plain") + b"]}", path="/claims")
    assert names(page) == ["odd", "plain"]
    assert codec.object(claim("odd", parameters), path="/claims/odd").metadata.name == "odd"
    event = codec.event(b'{"type":"ADDED","object":' + claim("odd", parameters) + b"}", path="/claims")
    assert (event.type, event.object.metadata.name) == ("ADDED", "odd")


def test_an_odd_object_beside_one_of_the_wrong_type_leaves_out_that_one_alone() -> None:
    wrong = b'{"metadata":{"name":1}}'
    page = Codec(ResourceClaim).page(
        b'{"items":[' + wrong + b"," + claim("odd", ODD["deep list"]) + b"]}", path="/claims"
    )
    assert names(page) == ["odd"]
    assert len(page[2]) == 1


def test_bytes_that_are_no_text_become_the_replacement_character() -> None:
    assert mend(b'{"a":"\xff\xc3\xa9"}') == '{"a":"\ufffdé"}'.encode()
    codec = Codec(untyped(ResourceClaim.resource))
    odd, plain = claim("odd", b'{"x":"\xff"}'), claim("plain")
    found = codec.page(b'{"items":[' + odd + b"," + plain + b"]}", path="/claims")[0]
    assert [item.metadata.name for item in found] == ["odd", "plain"]


def test_half_a_pair_becomes_the_replacement_character_and_a_whole_pair_stays() -> None:
    assert (
        mend(rb'{"a":"\ud83d\ude00","b":"\ud800","c":"\\ud800"}') == rb'{"a":"\ud83d\ude00","b":"\ufffd","c":"\\ud800"}'
    )


def test_levels_below_the_deepest_become_null_and_those_above_stay() -> None:
    mended = mend(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b',"b":2}')
    value = msgspec.json.decode(mended)
    depth = 0
    inner = value["a"]
    while inner is not None:
        depth, inner = depth + 1, inner[0]
    assert (depth, value["b"]) == (DEEPEST - 1, 2)


@pytest.mark.parametrize("text", [b"", b"{", b"[}", b'{"a":"', b"]" * 5000, b"[" * 5000, b"\xff\xfe"])
def test_what_is_no_json_at_all_is_told(text: bytes) -> None:
    with pytest.raises(Unreadable, match="/claims/x: not readable as ResourceClaim"):
        Codec(ResourceClaim).object(text, path="/claims/x")

"""JSON as the server keeps it: opaque parameters stay the bytes that they were."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.apiserver.objects import clone, decode, encode, restyle
from interlace.sim.apiserver.raw import RawJson

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def body(parameters: str) -> bytes:
    """A claim around these bytes."""
    opaque = f'{{"driver": "d", "parameters": {parameters}}}'
    return f'{{"spec": {{"devices": {{"config": [{{"opaque": {opaque}}}]}}}}}}'.encode()


@given(st.dictionaries(st.text(max_size=5), values, max_size=4), st.sampled_from([None, 1, 3]))
def test_parameters_come_out_as_the_bytes_that_went_in(parameters: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(parameters, indent=indent, ensure_ascii=False)
    decoded = decode(body(text))
    raw = decoded["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    assert isinstance(raw, RawJson)
    assert raw == parameters
    assert text.encode() in encode(decoded)
    assert encode(decode(encode(decoded))) == encode(decoded)


@given(values)
def test_everything_else_is_plain_json(value: Any) -> None:
    assert decode(encode({"data": value})) == {"data": value}


def test_parameters_elsewhere_are_no_raw_values() -> None:
    decoded = decode(b'{"parameters": {"a": 1}, "opaque": {"parameters": 5}}')
    assert type(decoded["parameters"]) is dict
    assert decoded["opaque"]["parameters"] == 5


@pytest.mark.parametrize(
    ("style", "expected"), [("compact", b'{"b":1,"a":{"d":2,"c":3}}'), ("sorted", b'{"a":{"c":3,"d":2},"b":1}')]
)
def test_a_pass_through_text_keeps_the_order_and_one_through_maps_sorts(style: Any, expected: bytes) -> None:
    value = {"x": [RawJson(b'{ "b": 1, "a": {"d": 2, "c": 3} }')], "y": {"z": 1}}
    changed = restyle(value, style)
    assert changed["x"][0].raw == expected
    assert changed["y"] is value["y"], "what holds no raw value is shared"
    assert restyle(changed, style) is changed


def test_a_clone_shares_nothing_that_can_change() -> None:
    value = {"a": [{"b": 1}], "raw": RawJson(b'{"x":1}')}
    copy = clone(value)
    copy["a"][0]["b"] = 2
    assert value["a"] == [{"b": 1}]
    assert copy["raw"] is value["raw"]


def test_malformed_json_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(b'{"opaque": {"parameters": }}')

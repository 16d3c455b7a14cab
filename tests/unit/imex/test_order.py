from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.imex.order import (
    SENTINEL,
    Message,
    Order,
    ProtocolError,
    Refusal,
    Release,
    State,
    check,
    decode,
    encode,
    parse_address,
)
from interlace.imex.reasons import ImexError, Reason
from tests.unit.imex.support import DOMAIN, make_order

words = st.text(max_size=20)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        Order,
        domain=words,
        index=st.integers(-(2**31), 2**31),
        names=st.lists(words, max_size=4),
        addresses=st.lists(words, max_size=4),
        config=st.dictionaries(words, words, max_size=3),
    ),
    st.builds(Release, domain=words),
    st.builds(State, domain=words, message=words, disconnected=st.lists(st.integers(0, 100), max_size=4)),
    st.builds(Refusal, message=words),
)


@given(messages)
def test_every_message_survives_the_socket_as_one_line(message: Message) -> None:
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode(line) == message


@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
def test_any_bytes_are_a_message_or_a_protocol_error(line: bytes) -> None:
    try:
        message = decode(line)
    except ProtocolError:
        return
    assert isinstance(message, Order | Release | State | Refusal)


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    with pytest.raises(ProtocolError):
        decode(b'{"type":"order","x":' + b"[" * 100_000)


def test_an_unknown_newer_version_is_refused_naming_the_versions_that_are_spoken() -> None:
    line = msgspec.json.encode({"type": "order", "version": 7, "domain": DOMAIN, "shape": "new"})
    with pytest.raises(ProtocolError, match=r"has version 7, this program speaks 1"):
        decode(line)


def test_fields_of_a_later_release_are_skipped() -> None:
    raw = msgspec.json.decode(encode(Release(domain=DOMAIN)))
    assert decode(msgspec.json.encode(raw | {"later": {"a": 1}})) == Release(domain=DOMAIN)


def test_a_good_order_passes() -> None:
    check(make_order(1, {0: "10.0.0.1", 1: "fd00::1"}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"domain": "../etc"}, "no Kubernetes uid"),
        ({"index": 4}, "index 4 is not in 0 to 3"),
        ({"index": -1}, "index -1"),
        ({"addresses": ["10.0.0.1"]}, "4 names but 1 addresses"),
        ({"names": [], "addresses": []}, "0 names"),
        ({"names": ["a", "a", "b", "c"]}, "twice"),
        ({"names": ["a\n10.9.9.9 kubernetes", "b", "c", "d"]}, "no host name"),
        ({"addresses": ["10.0.0.1", "x", SENTINEL, SENTINEL]}, "address of index 1"),
        ({"addresses": ["10.0.0.1\n1.1.1.1 evil", SENTINEL, SENTINEL, SENTINEL]}, "address of index 0"),
    ],
)
def test_an_order_whose_parts_do_not_fit_is_refused(change: dict[str, object], said: str) -> None:
    order = msgspec.structs.replace(make_order(0, {0: "10.0.0.1"}), **change)
    with pytest.raises(ImexError, match=said) as caught:
        check(order)
    assert caught.value.reason is Reason.ORDER_INVALID


def test_an_address_with_a_scope_cannot_smuggle_a_line_into_the_hosts_file() -> None:
    with pytest.raises(ValueError, match="network interface"):
        parse_address("fe80::1%eth0\n10.0.0.1 kubernetes")


def test_present_slots_are_those_with_an_address_of_a_node() -> None:
    assert make_order(0, {0: "10.0.0.1", 3: "10.0.0.4"}).present == [0, 3]

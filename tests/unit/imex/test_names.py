from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.imex.names import domain_hash, node_map, node_name
from interlace.imex.order import SENTINEL
from interlace.imex.reasons import ImexError
from tests.unit.imex.support import DOMAIN, OTHER_DOMAIN


def test_names_carry_the_domain_and_a_slot_of_four_digits() -> None:
    names, addresses = node_map(DOMAIN, rows=[(2, "10.0.0.3")], slots=3)
    assert names == [f"imex-{domain_hash(DOMAIN)}-000{index}" for index in range(3)]
    assert names[2] == node_name(DOMAIN, 2)
    assert addresses == [SENTINEL, SENTINEL, "10.0.0.3"]


def test_two_domains_share_no_name() -> None:
    ours, _ = node_map(DOMAIN, rows=[], slots=18)
    theirs, _ = node_map(OTHER_DOMAIN, rows=[], slots=18)
    assert not set(ours) & set(theirs)


@given(st.dictionaries(st.integers(0, 17), st.ip_addresses(v=4).map(str), max_size=18))
def test_names_do_not_depend_on_who_is_there(rows: dict[int, str]) -> None:
    unique = {index: address for address, index in {address: index for index, address in rows.items()}.items()}
    names, addresses = node_map(DOMAIN, rows=unique.items(), slots=18)
    assert names == node_map(DOMAIN, rows=[], slots=18)[0]
    assert all(addresses[index] == address for index, address in unique.items())
    assert node_map(DOMAIN, rows=reversed(unique.items()), slots=18) == (names, addresses)


def test_a_row_without_an_address_yet_keeps_the_sentinel() -> None:
    assert node_map(DOMAIN, rows=[(0, ""), (1, "10.0.0.2")], slots=2)[1] == [SENTINEL, "10.0.0.2"]


def test_ipv6_addresses_become_canonical() -> None:
    assert node_map(DOMAIN, rows=[(0, "FD00:0:0::1")], slots=1)[1] == ["fd00::1"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(2, "10.0.0.1")], "index 2 is not in 0 to 1"),
        ([(0, "10.0.0.1"), (0, "10.0.0.2")], "index 0 stands there twice"),
        ([(0, "10.0.0.1"), (1, "10.0.0.1")], "stands at index 0 and at index 1"),
        ([(0, "node-7")], "address of index 0"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(rows: list[tuple[int, str]], said: str) -> None:
    with pytest.raises(ImexError, match=said):
        node_map(DOMAIN, rows=rows, slots=2)

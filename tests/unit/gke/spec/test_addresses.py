"""The plan of address ranges."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.gke.addresses import PRIVATE, RESERVED, Wish, allocate, is_private, parse, plan
from interlace.gke.errors import SpecError
from tests.unit.gke.spec.clusters import CALM, FAMILIES, cluster

SPACES = (IPv4Network("192.168.0.0/20"), IPv4Network("172.16.0.0/14"), IPv4Network("10.0.0.0/18"))


def networks(shortest: int = 16, longest: int = 28) -> st.SearchStrategy[IPv4Network]:
    """Ranges anywhere inside the spaces, and a few outside them."""
    whole = st.integers(0, 2**32 - 1)
    inside = st.sampled_from(SPACES).flatmap(
        lambda space: st.integers(int(space.network_address), int(space.broadcast_address))
    )
    return st.builds(
        lambda address, prefix: IPv4Network((address, prefix), strict=False),
        st.one_of(inside, whole),
        st.integers(shortest, longest),
    )


@st.composite
def wishes(draw: st.DrawFn) -> list[Wish]:
    count = draw(st.integers(1, 8))
    return [
        Wish(
            pointer=f"/{index}",
            given=draw(st.none() | networks().map(str)),
            prefix=draw(st.integers(18, 28)),
            spaces=draw(st.permutations(SPACES).map(tuple)),
        )
        for index in range(count)
    ]


@given(wishes=wishes(), avoid=st.lists(networks(12), max_size=5))
@settings(CALM, max_examples=80)
def test_a_plan_never_overlaps_and_keeps_what_was_given(wishes: list[Wish], avoid: list[IPv4Network]) -> None:
    taken = [(f"avoid {index}", each) for index, each in enumerate(avoid)]
    found, errors = allocate(wishes, avoid=taken)
    for one, other in combinations(found.values(), 2):
        assert not one.overlaps(other)
    for network in found.values():
        assert not any(network.overlaps(each) for each in (*avoid, *RESERVED))
        assert is_private(network)
    for wish in wishes:
        if wish.pointer not in found:
            assert wish.pointer in {error.pointer for error in errors}
        elif wish.given is not None:
            assert str(found[wish.pointer]) == wish.given
        else:
            assert found[wish.pointer].prefixlen == wish.prefix
            assert any(found[wish.pointer].subnet_of(space) for space in wish.spaces)
    assert len(found) + len(errors) == len(wishes)
    assert allocate(wishes, avoid=taken)[0] == found


@given(avoid=st.lists(networks(20), max_size=6), prefix=st.integers(20, 26))
@settings(CALM, max_examples=100)
def test_a_wish_gets_the_lowest_free_range_of_the_first_space_that_has_one(
    avoid: list[IPv4Network], prefix: int
) -> None:
    found, _ = allocate([Wish(pointer="/0", prefix=prefix, spaces=SPACES)], avoid=[("x", each) for each in avoid])
    blocked = (*avoid, *RESERVED)
    free = (
        candidate
        for space in SPACES
        for candidate in space.subnets(new_prefix=prefix)
        if not any(candidate.overlaps(each) for each in blocked)
    )
    assert found.get("/0") == next(free, None)


@given(first=st.lists(st.integers(22, 27), min_size=1, max_size=6), more=st.lists(st.integers(22, 27), max_size=4))
@settings(CALM, max_examples=50)
def test_a_later_wish_moves_no_earlier_one(first: list[int], more: list[int]) -> None:
    def asked(sizes: list[int]) -> list[Wish]:
        return [Wish(pointer=f"/{index}", prefix=size) for index, size in enumerate(sizes)]

    before, _ = allocate(asked(first))
    after, _ = allocate(asked([*first, *more]))
    assert before.items() <= after.items()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_plan_of_a_family_has_a_range_for_each_nic_and_none_twice(family: str) -> None:
    found, errors = plan(cluster(family))
    assert errors == ()
    ranges = [found.primary, found.pods, found.services, *found.nics]
    assert len(found.nics) == len(cluster(family).family.networks)
    assert all(each is not None and is_private(each) for each in ranges)
    assert not any(one.overlaps(other) for one, other in combinations(filter(None, ranges), 2))


def test_the_plan_goes_around_ranges_in_use_elsewhere() -> None:
    found, errors = plan(cluster(network={"avoid": ["192.168.0.0/16", "10.0.0.0/9"]}))
    assert errors == ()
    assert str(found.primary) == "172.16.0.0/24"
    assert str(found.pods) == "10.132.0.0/14"
    assert str(found.services) == "10.128.0.0/20"


def test_the_control_plane_of_private_nodes_gets_a_range() -> None:
    found, _ = plan(cluster(controlPlane={"privateNodes": True}))
    assert str(found.control_plane) == "172.16.0.0/28"


def test_networks_that_exist_are_not_planned() -> None:
    found, errors = plan(
        cluster(network={"existing": True}, primary={"existing": True, "network": "my-vpc", "subnet": "my-sub"})
    )
    assert errors == ()
    assert (found.primary, found.pods, found.services) == (None, None, None)
    assert found.nics == (None,) * 8


@pytest.mark.parametrize("public", ["8.8.8.0/24", "192.169.0.0/16", "172.32.0.0/16", "11.0.0.0/8", "100.128.0.0/16"])
def test_a_public_range_is_named_as_such(public: str) -> None:
    _, errors = allocate([Wish(pointer="/x", given=public)])
    assert "public" in errors[0].what
    assert errors[0].value == public


@pytest.mark.parametrize("text", ["10.0.0.1/24", "10.0.0.0/33", "SUBNET_RANGE", "192.168.1.0/99", "300.1.1.1/24", ""])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, pointer="/x")
    assert caught.value.pointer == "/x"


def test_an_address_inside_a_range_is_refused_with_the_range_that_is_meant() -> None:
    with pytest.raises(SpecError, match=r"Write 10\.0\.0\.0/24"):
        parse("10.0.0.1/24", pointer="/x")


def test_no_room_is_said_with_the_spaces_that_are_full() -> None:
    _, errors = allocate([Wish(pointer="/x", prefix=24)], avoid=[("all", each) for each in PRIVATE])
    assert "no free range" in errors[0].what

"""Allocation: a device once, of complete pools only, with parameters copied byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.platform.devicekinds import Allocation, ResourceClaimSpec, ResourceSlice
from interlace.sim.platform.scheduling.devices import Candidate, Unsatisfiable, Wanted, allocate, pools_by_node
from tests.unit.sim.platform.objects import CLASS, DRIVER, claim, device_class, device_slice, request


def wanted(*requests: dict[str, Any], name: str = "c", **devices: Any) -> Wanted:
    made = claim(name, requests=list(requests) or [request()], **devices)
    spec = msgspec.json.decode(made.spec, type=ResourceClaimSpec)
    return Wanted(uid=made.metadata.uid, namespace="default", name=name, devices=spec.devices)


def yes(expression: str, candidate: Candidate) -> bool:
    """A selector is a name prefix here; devices of other names do not match."""
    return candidate.device.name.startswith(expression)


def give(
    *claims: Wanted,
    slices: Sequence[ResourceSlice],
    taken: AbstractSet[tuple[str, str, str]] = frozenset(),
    parameters: bytes = b"",
) -> tuple[Allocation, ...] | None:
    return allocate(
        claims or (wanted(),),
        node="n",
        pools=pools_by_node(slices).get("n", ()),
        taken=taken,
        classes={CLASS: device_class(parameters=parameters)},
        matches=yes,
    )


def names(answer: tuple[Allocation, ...] | None) -> list[list[str]]:
    assert answer is not None
    return [[result.device for result in found.devices.results] for found in answer]


def test_a_claim_gets_the_first_free_device() -> None:
    slices = [device_slice("n", ["a", "b", "c"])]
    assert names(give(slices=slices)) == [["a"]]
    assert names(give(slices=slices, taken={(DRIVER, "n", "a")})) == [["b"]]


def test_nothing_free_is_no_allocation() -> None:
    assert give(slices=[device_slice("n", ["a"])], taken={(DRIVER, "n", "a")}) is None
    assert give(slices=[]) is None


def test_two_claims_of_a_pod_never_share_a_device() -> None:
    slices = [device_slice("n", ["a", "b"])]
    assert names(give(wanted(name="c1"), wanted(name="c2"), slices=slices)) == [["a"], ["b"]]
    assert give(wanted(name="c1"), wanted(name="c2"), slices=[device_slice("n", ["a"])]) is None


def test_a_choice_that_leaves_a_later_request_without_device_is_taken_back() -> None:
    slices = [device_slice("n", ["aa", "ab"])]
    answer = give(wanted(request("any", selectors=["a"]), request("special", selectors=["aa"])), slices=slices)
    assert names(answer) == [["ab", "aa"]]


def test_an_exact_count_takes_so_many() -> None:
    slices = [device_slice("n", ["a", "b", "c"])]
    assert names(give(wanted(request(count=2)), slices=slices)) == [["a", "b"]]
    assert give(wanted(request(count=4)), slices=slices) is None


def test_all_takes_every_matching_device_or_none() -> None:
    slices = [device_slice("n", ["a1", "a2", "b"])]
    every = wanted(request(allocationMode="All", selectors=["a"]))
    assert names(give(every, slices=slices)) == [["a1", "a2"]]
    assert give(every, slices=slices, taken={(DRIVER, "n", "a2")}) is None
    assert give(wanted(request(allocationMode="All", selectors=["x"])), slices=slices) is None


def test_administrative_access_takes_devices_from_nobody() -> None:
    slices = [device_slice("n", ["a"])]
    answer = give(wanted(request(adminAccess=True)), slices=slices, taken={(DRIVER, "n", "a")})
    assert names(answer) == [["a"]]
    assert answer is not None
    assert answer[0].devices.results[0].admin_access is True


def test_an_older_generation_of_a_pool_is_not_offered() -> None:
    slices = [device_slice("n", ["old"], generation=1), device_slice("n", ["new"], generation=2)]
    assert names(give(slices=slices)) == [["new"]]


def test_a_pool_that_lacks_a_slice_is_not_offered() -> None:
    half = device_slice("n", ["a"], count=2, name="one")
    assert give(slices=[half]) is None
    assert give(wanted(request(allocationMode="All")), slices=[half]) is None
    assert names(give(slices=[half, device_slice("n", ["b"], count=2, name="two")])) == [["a"]]


def test_devices_of_other_nodes_are_not_offered() -> None:
    assert give(slices=[device_slice("other", ["a"])]) is None


def test_devices_must_agree_on_a_matched_attribute() -> None:
    def entry(name: str, board: str) -> dict[str, Any]:
        return {"name": name, "attributes": {"board": {"string": board}}}

    slices = [device_slice("n", [entry("a", "1"), entry("b", "2"), entry("c", "2")])]
    together = wanted(request(count=2), constraints=[{"matchAttribute": f"{DRIVER}/board"}])
    assert names(give(together, slices=slices)) == [["b", "c"]]
    missing = wanted(request(count=2), constraints=[{"matchAttribute": "example.com/none"}])
    assert give(missing, slices=slices) is None


def test_a_class_that_does_not_exist_is_named() -> None:
    unknown = wanted({"name": "channel", "exactly": {"deviceClassName": "gone"}})
    with pytest.raises(Unsatisfiable, match="request channel: device class gone does not exist"):
        give(unknown, slices=[device_slice("n")])


def test_alternatives_and_unknown_modes_are_refused_in_words() -> None:
    with pytest.raises(Unsatisfiable, match="firstAvailable"):
        give(wanted({"name": "x", "firstAvailable": []}), slices=[])
    with pytest.raises(Unsatisfiable, match="unsupported allocation mode Some"):
        give(wanted(request(allocationMode="Some")), slices=[])


def test_the_allocation_has_the_servers_form_and_the_bytes_of_the_parameters() -> None:
    odd = b'{"z":1,  "a": [ ]}'
    config = [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": msgspec.Raw(odd)}}]
    answer = give(wanted(request(), config=config), slices=[device_slice("n")], parameters=b'{ "class": true }')
    assert answer is not None
    assert msgspec.json.encode(answer[0]) == (
        b'{"devices":{"results":[{"request":"channel","driver":"compute-domain.nvidia.com","pool":"n",'
        b'"device":"channel-0"}],"config":['
        b'{"requests":["channel"],"opaque":{"driver":"compute-domain.nvidia.com","parameters":{ "class": true }},'
        b'"source":"FromClass"},'
        b'{"requests":["channel"],"opaque":{"driver":"compute-domain.nvidia.com","parameters":' + odd + b"},"
        b'"source":"FromClaim"}]},'
        b'"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}]}}'
    )


def mode(draw: st.DrawFn, number: int) -> dict[str, Any]:
    selectors = draw(st.sampled_from([[], ["a"], ["b"]]))
    if draw(st.booleans()):
        return request(f"r{number}", allocationMode="All", selectors=selectors)
    return request(f"r{number}", count=draw(st.integers(1, 3)), selectors=selectors)


@st.composite
def claims(draw: st.DrawFn) -> list[Wanted]:
    return [
        wanted(*(mode(draw, number) for number in range(draw(st.integers(1, 3)))), name=f"c{index}")
        for index in range(draw(st.integers(1, 3)))
    ]


@given(
    wishes=claims(),
    devices=st.sets(st.sampled_from(["a1", "a2", "a3", "b1", "b2", "b3"])),
    taken=st.sets(st.sampled_from(["a1", "a2", "b1"])),
)
def test_whatever_is_asked_no_device_is_given_twice_or_from_those_taken(
    wishes: list[Wanted], devices: set[str], taken: set[str]
) -> None:
    answer = give(*wishes, slices=[device_slice("n", sorted(devices))], taken={(DRIVER, "n", name) for name in taken})
    if answer is None:
        return
    given = [name for found in names(answer) for name in found]
    assert len(given) == len(set(given))
    assert set(given) <= devices - taken
    for wish, found in zip(wishes, answer, strict=True):
        for entry in wish.devices.requests:
            assert entry.exactly is not None
            got = [result.device for result in found.devices.results if result.request == entry.name]
            prefixes = [s.cel.expression for s in entry.exactly.selectors if s.cel is not None]
            assert all(name.startswith(prefix) for name in got for prefix in prefixes)
            if entry.exactly.allocation_mode == "ExactCount":
                assert len(got) == entry.exactly.count
            else:
                assert set(got) == {n for n in devices if all(n.startswith(prefix) for prefix in prefixes)}


@given(
    counts=st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(1, 2)), min_size=1, max_size=3),
    devices=st.sets(st.sampled_from(["a1", "a2", "b1", "b2"])),
)
def test_an_allocation_is_found_whenever_one_exists(counts: list[tuple[str, int]], devices: set[str]) -> None:
    wish = wanted(
        *(
            request(f"r{i}", count=count, selectors=[prefix] if prefix else [])
            for i, (prefix, count) in enumerate(counts)
        )
    )
    need = {prefix: sum(count for other, count in counts if other == prefix) for prefix in ("", "a", "b")}
    have = {prefix: sum(1 for name in devices if name.startswith(prefix)) for prefix in ("a", "b")}
    possible = all(need[prefix] <= have[prefix] for prefix in have) and sum(need.values()) <= len(devices)
    assert (give(wish, slices=[device_slice("n", sorted(devices))]) is not None) == possible

from __future__ import annotations

import pytest

from interlace.api.resource import DeviceAttribute, ResourceSlice
from interlace.domains.sharing import FRESH, HASTE, LONG_PATIENCE, PATIENCE, Queueing, is_free
from tests.unit.domains.objects import RACK, claim, host, node_slice

HOST = host("imex-n1", node="n1", address="10.0.0.1")


def test_nodes_are_opened_soon_only_where_none_is_free() -> None:
    queueing = Queueing()
    queueing.observe([claim("a")], now=10)
    assert queueing.due_in(free_nodes=False, forming=False, now=10) == PATIENCE
    assert queueing.due_in(free_nodes=True, forming=True, now=10) == LONG_PATIENCE
    queueing.observe([claim("a"), claim("b")], now=12)
    assert queueing.due_in(free_nodes=False, forming=False, now=12) == PATIENCE - 2


def test_nodes_of_a_domain_that_forms_are_opened_almost_at_once_where_none_is_free() -> None:
    queueing = Queueing()
    queueing.observe([claim("a")], now=0)
    assert queueing.due_in(free_nodes=False, forming=True, now=0) == HASTE
    assert queueing.due_in(free_nodes=False, forming=False, now=0) == PATIENCE


def test_a_claim_that_was_placed_does_not_count_and_waits_anew_if_it_comes_back() -> None:
    queueing = Queueing()
    queueing.observe([claim("a")], now=0)
    queueing.observe([], now=5)
    assert queueing.due_in(free_nodes=False, forming=False, now=5) is None
    assert not queueing.waits
    queueing.observe([claim("a")], now=9)
    assert queueing.due_in(free_nodes=False, forming=False, now=9) == PATIENCE


def test_a_job_has_just_come_while_none_of_its_claims_has_waited_long() -> None:
    queueing = Queueing()
    assert queueing.is_fresh(now=0)
    queueing.observe([claim("a")], now=0)
    queueing.observe([claim("a"), claim("b")], now=FRESH - 1)
    assert queueing.is_fresh(now=FRESH - 1)
    assert not queueing.is_fresh(now=FRESH)
    queueing.observe([claim("b")], now=FRESH)
    assert queueing.is_fresh(now=FRESH)


def _slice(**attributes: DeviceAttribute) -> ResourceSlice:
    made = node_slice("n1", clique_id=f"{RACK}.0")
    for device in made.spec.devices:
        device.attributes.update(attributes)
    return made


@pytest.mark.parametrize(
    ("slices", "free"),
    [
        ([_slice()], True),
        ([_slice(domain=DeviceAttribute(string=""))], True),
        ([_slice(domain=DeviceAttribute(string="uid"))], False),
        ([_slice(type=DeviceAttribute(string="channel-unhealthy"))], False),
        ([_slice(type=DeviceAttribute(string="daemon"))], False),
        ([_slice(clique=DeviceAttribute(string=""))], False),
        ([], False),
    ],
)
def test_a_node_of_a_fabric_is_free_when_it_offers_a_device_to_anybody(slices: list[ResourceSlice], free: bool) -> None:
    assert is_free(slices, [], hosts=[HOST]) is free


def test_a_node_with_a_claim_is_not_free_whatever_its_slice_says() -> None:
    assert not is_free([_slice(domain=DeviceAttribute(string=""))], [claim("a", node="n1")], hosts=[HOST])


def test_the_slice_that_a_deleted_node_left_is_no_free_node() -> None:
    assert not is_free([_slice()], [], hosts=[])

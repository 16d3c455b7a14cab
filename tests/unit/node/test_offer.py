"""What a node offers, step by step, and in a model of scheduler, controller and kubelet with late views."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.api.meta import ObjectMeta
from interlace.api.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from interlace.node.fabric import NO_FABRIC, Fabric
from interlace.node.offer import CLOSING, FREE, SLOTS, Offer, Seen, closes, devices, offer_of, settle
from tests.unit.node.parts import CLIQUE, DOMAIN, NODE, OTHER

OPEN = Offer(holder=DOMAIN, slots=SLOTS)
CLOSED = Offer(holder=DOMAIN)
NOBODY = Seen(prepared=[])


def _published(offer: Offer, fabric: Fabric | None = None) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name="slice"),
        spec=ResourceSliceSpec(
            driver="d",
            pool=ResourcePool(name=NODE, generation=1, resource_slice_count=1),
            devices=devices(fabric or Fabric(clique=CLIQUE), offer=offer),
        ),
    )


def test_one_pod_a_node_changes_nothing() -> None:
    assert settle(FREE, Seen(prepared=[DOMAIN], rows={DOMAIN: False}), quiet=0) == FREE
    assert settle(FREE, NOBODY, quiet=99) == FREE


def test_a_node_is_opened_while_a_claim_is_prepared_and_the_controller_asks() -> None:
    assert settle(FREE, Seen(prepared=[DOMAIN], rows={DOMAIN: True}), quiet=0) == OPEN
    assert settle(FREE, Seen(prepared=[], begun=[DOMAIN], rows={DOMAIN: True}), quiet=0) == FREE


@pytest.mark.parametrize(
    "seen",
    [
        Seen(prepared=[DOMAIN], begun=[OTHER], rows={DOMAIN: True}),
        Seen(prepared=[DOMAIN], rows={DOMAIN: True, OTHER: False}),
        Seen(prepared=[DOMAIN, OTHER], rows={DOMAIN: True}),
    ],
)
def test_a_node_that_somebody_else_has_a_claim_on_is_not_opened(seen: Seen) -> None:
    assert settle(FREE, seen, quiet=0) == FREE


def test_an_opened_node_is_closed_in_two_steps() -> None:
    assert settle(OPEN, Seen(prepared=[], rows={DOMAIN: True}), quiet=0) == OPEN
    assert settle(OPEN, NOBODY, quiet=0) == CLOSED
    assert closes(CLOSED, NOBODY)
    assert settle(CLOSED, NOBODY, quiet=CLOSING - 0.1) == CLOSED
    assert settle(CLOSED, NOBODY, quiet=CLOSING) == FREE


def test_a_claim_that_comes_while_a_node_closes_keeps_it() -> None:
    for seen in (Seen(prepared=[DOMAIN]), Seen(prepared=[], begun=[DOMAIN]), Seen(prepared=[], rows={DOMAIN: False})):
        assert not closes(CLOSED, seen)
        assert settle(CLOSED, seen, quiet=99) == CLOSED
    assert settle(CLOSED, Seen(prepared=[DOMAIN], rows={DOMAIN: True}), quiet=0) == OPEN


def test_an_opened_node_stays_so_while_it_cannot_be_told_who_uses_it() -> None:
    assert settle(OPEN, Seen(prepared=[], synced=False), quiet=99) == OPEN
    assert settle(CLOSED, Seen(prepared=[], synced=False), quiet=99) == CLOSED
    assert settle(OPEN, Seen(prepared=[DOMAIN]), quiet=0) == OPEN


def test_without_a_slice_the_first_offer_is_not_free_while_anything_names_a_domain() -> None:
    assert settle(None, Seen(prepared=[DOMAIN], synced=False), quiet=0) is None
    assert settle(None, NOBODY, quiet=0) == FREE
    for seen in (Seen(prepared=[DOMAIN]), Seen(prepared=[], rows={DOMAIN: True}), Seen(prepared=[], begun=[DOMAIN])):
        assert settle(None, seen, quiet=0) == CLOSED
    assert settle(None, Seen(prepared=[DOMAIN], rows={DOMAIN: True}), quiet=0) == OPEN


@pytest.mark.parametrize("offer", [FREE, OPEN, CLOSED])
@pytest.mark.parametrize("fabric", [Fabric(clique=CLIQUE), NO_FABRIC])
def test_a_slice_tells_what_it_offers(offer: Offer, fabric: Fabric) -> None:
    slice_ = _published(offer, fabric)
    assert offer_of(slice_) == offer
    assert [device.name for device in slice_.spec.devices] == [f"channel-{slot}" for slot in range(offer.slots)]
    assert {device.attributes["id"].int_ for device in slice_.spec.devices} == {0}
    assert {device.attributes["domain"].string for device in slice_.spec.devices} == {offer.holder}


def test_the_slice_of_a_broken_fabric_tells_only_a_holder() -> None:
    broken = Fabric(healthy=False, clique=CLIQUE, reason="FabricStatus", message="x")
    assert offer_of(_published(OPEN, broken)) == OPEN
    assert offer_of(_published(FREE, broken)) is None


def test_a_slice_of_something_else_tells_nothing() -> None:
    assert offer_of(ResourceSlice()) is None


TICK = 0.25
"""Seconds of one step of the model."""
LATEST_SLICE, LATEST_ROWS = 3, 4
"""Steps by which the scheduler and the agent may be late: 1.75 s together, less than ``CLOSING``."""
ACTIONS = (
    f"schedule {DOMAIN}",
    f"schedule {OTHER}",
    "prepare",
    "end",
    "end",
    "tick",
    "restart agent",
    "restart kubelet",
)


class Node:
    """One node whose Pods end gracefully; the controller always asks to open it. Scheduler and agent see it late."""

    def __init__(self) -> None:
        self.offer: Offer | None = FREE
        self.slices: list[Offer | None] = [FREE]
        self.rows: list[dict[str, bool]] = [{}]
        self.seen_slice = self.seen_rows = 0
        self.claims: dict[int, str] = {}
        """Device to the holder of the claim that has it."""
        self.prepared: set[int] = set()
        self.quiet = 0.0

    def act(self, action: str) -> None:
        match action.split():
            case ["schedule", holder]:
                offer = self.slices[self.seen_slice]
                if offer is not None and offer.holder in {"", holder}:
                    free = [device for device in range(offer.slots) if device not in self.claims]
                    self.claims |= dict.fromkeys(free[-1:], holder)  # the lock last: the hardest case
            case ["prepare"]:
                self.prepared = set(self.claims)
            case ["end"]:
                self.claims = {device: holder for device, holder in self.claims.items() if device not in self.prepared}
                self.prepared.clear()
            case ["restart", who]:
                if who == "kubelet":
                    self.slices[-1] = None
                self.offer, self.quiet = self.slices[-1], 0.0

    def tick(self, *, late_slice: int, late_rows: int) -> None:
        self.rows.append(dict.fromkeys(self.claims.values(), True))
        self.seen_rows = max(self.seen_rows, len(self.rows) - 1 - late_rows)
        seen = Seen(prepared=[self.claims[device] for device in self.prepared], rows=self.rows[self.seen_rows])
        self.quiet = self.quiet + TICK if closes(self.offer, seen) else 0.0
        after = settle(self.offer, seen, quiet=self.quiet)
        if after != self.offer:
            self.quiet = 0.0
        self.offer = after
        self.slices.append(after)
        self.seen_slice = max(self.seen_slice, len(self.slices) - 1 - late_slice)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(0, LATEST_SLICE), st.integers(0, LATEST_ROWS)),
        min_size=5,
        max_size=40,
    ),
    opened=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_no_two_domains_ever_have_a_claim_on_one_node_and_it_is_free_in_the_end(
    steps: list[tuple[str, int, int]], opened: bool
) -> None:
    node = Node()
    begin = [(f"schedule {DOMAIN}", 0, 0), ("prepare", 0, 0), ("tick", 0, 0)] if opened else []
    for action, late_slice, late_rows in [*begin, *steps]:
        node.act(action)
        assert len(set(node.claims.values())) <= 1
        node.tick(late_slice=late_slice, late_rows=late_rows)
    for action in ("prepare", "end"):
        node.act(action)
        node.tick(late_slice=0, late_rows=0)
    for _ in range(int(CLOSING / TICK) + 3):
        node.tick(late_slice=0, late_rows=0)
    assert node.offer == FREE

"""The shared node map: rows, channels, what is written; with a machine of domains that come and go."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlace.api.computedomain import CLIQUE_LABEL, ComputeDomainClique, PeerCount
from interlace.domains import channels
from interlace.domains.channels import CHANNELS, Draft, Tenant
from interlace.domains.places import Place
from tests.unit.domains.objects import RACK

R0, R1 = f"{RACK}.0", f"{RACK}.1"
PLACES = {f"n{number}": Place(clique=R0, address=f"10.0.0.{number}") for number in range(1, 7)}


def tenant(uid: str, *nodes: str, barrier: PeerCount | None = None) -> Tenant:
    return Tenant(uid=uid, name=f"name-{uid}", namespace="team", nodes=frozenset(nodes), barrier=barrier)


def draft(
    *tenants: Tenant,
    current: ComputeDomainClique | None = None,
    places: Mapping[str, Place] = PLACES,
    slots: int = 18,
    share: bool = False,
) -> Draft:
    return channels.draft(R0, tenants, places=places, current=current, slots=slots, share=share)


def stored(wanted: Draft) -> ComputeDomainClique:
    """The object as the API server would give it back."""
    body = channels.body(wanted, namespace="interlace-system", current=None)
    return msgspec.json.decode(msgspec.json.encode(body), type=ComputeDomainClique)


def given(wanted: Draft) -> dict[str, tuple[int, list[int]]]:
    return {entry.domain: (entry.channel, entry.indexes) for entry in wanted.channels}


def test_each_domain_has_a_channel_and_all_have_one_map() -> None:
    wanted = draft(tenant("x", "n1", "n2"), tenant("y", "n2", "n3"))
    assert [(row.node_name, row.index) for row in wanted.rows] == [("n1", 0), ("n2", 1), ("n3", 2)]
    assert given(wanted) == {"x": (1, [0, 1]), "y": (2, [1, 2])}
    found = stored(wanted)
    assert found.metadata.name == f"shared.{R0}"
    assert found.metadata.labels == {CLIQUE_LABEL: R0}
    assert channels.clique_of(found.metadata.name) == R0
    assert channels.clique_of("8e3f6f0a-0000-4000-8000-00000000000a.rack") is None
    assert not channels.changed(wanted, found)


def test_the_end_of_one_domain_leaves_rows_and_channel_of_the_other() -> None:
    before = stored(draft(tenant("x", "n1", "n2"), tenant("y", "n2")))
    wanted = draft(tenant("y", "n2"), current=before)
    assert [(row.node_name, row.index) for row in wanted.rows] == [("n2", 1)]
    assert given(wanted) == {"y": (2, [1])}
    assert channels.changed(wanted, before)
    assert not channels.grows(wanted, before)


def test_a_channel_is_given_again_only_after_all_others() -> None:
    before = stored(draft(tenant("x", "n1"), tenant("y", "n1")))
    before = stored(draft(tenant("y", "n1"), current=before))
    assert given(draft(tenant("y", "n1"), tenant("z", "n1"), current=before))["z"][0] == 3
    assert given(draft(tenant("y", "n1"), tenant("x", "n1"), current=before))["x"][0] == 1


def test_a_domain_that_joins_a_node_which_is_there_is_a_change_that_is_waited_for() -> None:
    before = stored(draft(tenant("x", "n1")))
    wanted = draft(tenant("x", "n1"), tenant("y", "n1"), current=before)
    assert wanted.rows == tuple(before.daemons)
    assert channels.changed(wanted, before)
    assert channels.grows(wanted, before)


def test_without_claims_there_is_nothing_to_keep() -> None:
    assert not channels.changed(draft(), None)
    before = stored(draft(tenant("x", "n1")))
    wanted = draft(current=before)
    assert wanted.rows == ()
    assert channels.changed(wanted, before)


def test_what_a_domain_says_of_its_peers_is_passed_on() -> None:
    barrier = PeerCount(nodes=2, timeout_seconds=60, present=1)
    found = stored(draft(tenant("x", "n1", barrier=barrier)))
    assert found.channels[0].wait_for_peers == barrier


def test_nodes_are_opened_where_the_domain_is_and_else_one_clique_at_a_time() -> None:
    closed = stored(draft(tenant("x", "n1")))
    opened = stored(draft(tenant("x", "n1"), share=True))
    assert channels.opens(draft(tenant("x", "n1"), share=True), closed)
    assert not channels.opens(draft(tenant("x", "n1"), current=opened), opened)
    assert channels.to_open({R0: closed, R1: closed}, mine={R1}) == [R1]
    assert channels.to_open({R0: closed, R1: closed}, mine=()) == [R0]
    assert channels.to_open({R0: opened, R1: closed}, mine={R0}) == [R1]
    assert channels.to_open({R0: opened, R1: opened}, mine=()) == []


def test_a_member_beyond_the_slots_of_the_shared_map_is_named() -> None:
    shared = {R0: stored(draft(tenant("x", "n1"), slots=1))}
    found = channels.view(dict.fromkeys(["n1", "n2"]), places=PLACES, shared=shared, slots=1)
    assert found.full == {"n2": R0}
    assert found.drafts == {}


class Sharing(RuleBasedStateMachine):
    """Domains come to nodes and go; after each change the object is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, frozenset[str]] = {}
        self.stored: ComputeDomainClique | None = None
        self.kept: dict[str, int] = {}

    @rule(uid=st.sampled_from("uvwxyz"), nodes=st.frozensets(st.sampled_from(sorted(PLACES)), max_size=3))
    def change(self, uid: str, nodes: frozenset[str]) -> None:
        if nodes:
            self.places[uid] = nodes
        else:
            self.places.pop(uid, None)
        tenants = [tenant(name, *where) for name, where in sorted(self.places.items())]
        wanted = draft(*tenants, current=self.stored)
        if channels.changed(wanted, self.stored):
            self.stored = stored(wanted) if wanted.rows else None

    @invariant()
    def each_domain_has_its_nodes_and_one_channel_that_it_keeps(self) -> None:
        entries = self.stored.channels if self.stored is not None else []
        rows = {row.index: row.node_name for row in (self.stored.daemons if self.stored is not None else ())}
        assert {entry.domain: {rows[index] for index in entry.indexes} for entry in entries} == self.places
        numbers = {entry.domain: entry.channel for entry in entries}
        assert len(set(numbers.values())) == len(numbers)
        assert all(number in CHANNELS for number in numbers.values())
        assert all(self.kept[uid] == number for uid, number in numbers.items() if uid in self.kept)
        self.kept = numbers


TestSharing = Sharing.TestCase
TestSharing.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)


def test_a_peer_that_joins_in_another_clique_is_growth_here_too() -> None:
    one, two = (PeerCount(nodes=2, timeout_seconds=300, present=present) for present in (1, 2))
    before = stored(draft(tenant("x", "n1", barrier=one)))
    wanted = draft(tenant("x", "n1", barrier=two), current=before)
    assert channels.changed(wanted, before)
    assert channels.grows(wanted, before)


def test_a_node_that_joins_open_cliques_is_no_hurry_and_one_that_is_opened_is() -> None:
    before = stored(draft(tenant("x", "n1")))
    assert channels.opens(draft(tenant("x", "n1"), current=before, share=True), before)
    opened = stored(draft(tenant("x", "n1"), current=before, share=True))
    assert not channels.opens(draft(tenant("x", "n1", "n2"), current=opened, share=True), opened)

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlace.api.computedomain import ComputeDomainClique
from interlace.domains import cliques
from interlace.domains.cliques import HISTORY_ANNOTATION, Draft, Plan
from interlace.domains.places import Place
from tests.unit.domains.objects import RACK, UID, clique, domain

R0, R1 = f"{RACK}.0", f"{RACK}.1"


def at(address: str, clique_id: str | None = R0) -> Place:
    return Place(clique=clique_id, address=address)


def plan(members: list[str], places: Mapping[str, Place], *current: ComputeDomainClique, slots: int = 18) -> Plan:
    return cliques.plan(
        dict.fromkeys(members), places=places, current={cliques.clique_id(c): c for c in current}, slots=slots
    )


def rows(draft: Draft) -> list[tuple[str, int, str]]:
    return [(row.node_name, row.index, row.ip_address) for row in draft.rows]


def stored(draft: Draft) -> ComputeDomainClique:
    """The object as the API server would give it back."""
    body = cliques.body(draft, domain=domain(), namespace="interlace-system", current=None)
    return msgspec.json.decode(msgspec.json.encode(body), type=ComputeDomainClique)


def test_each_fabric_clique_of_the_domain_gets_a_node_map_of_its_own() -> None:
    found = plan(["n1", "n2", "n3"], {"n1": at("10.0.0.1"), "n2": at("10.0.0.2", R1), "n3": at("10.0.0.3")})
    assert rows(found.drafts[R0]) == [("n1", 0, "10.0.0.1"), ("n3", 1, "10.0.0.3")]
    assert rows(found.drafts[R1]) == [("n2", 0, "10.0.0.2")]


def test_a_node_without_a_fabric_has_no_clique() -> None:
    found = plan(["n1"], {"n1": at("10.0.0.1", "")})
    assert found.drafts == {}
    assert found.fabricless == ("n1",)


def test_a_node_that_is_not_known_yet_is_named_and_left_out() -> None:
    found = plan(["n1", "n2", "n3"], {"n2": at("", R0), "n3": at("10.0.0.3", None)})
    assert found.no_agent == ("n1", "n3")
    assert found.no_host == ("n2",)
    assert found.drafts == {}


def test_a_row_stays_while_the_nodes_facts_are_missing() -> None:
    current = clique([("n1", 4, "10.0.0.1")])
    for places in ({}, {"n1": at("", R0)}, {"n1": at("", None)}):
        draft = plan(["n1"], places, current).drafts[R0]
        assert not cliques.changed(draft, current)


def test_a_new_address_of_the_host_changes_the_row_and_nothing_else() -> None:
    current = clique([("n1", 0, "10.0.0.1"), ("n2", 1, "10.0.0.2")])
    draft = plan(["n1", "n2"], {"n1": at("10.0.0.9"), "n2": at("10.0.0.2")}, current).drafts[R0]
    assert rows(draft) == [("n1", 0, "10.0.0.9"), ("n2", 1, "10.0.0.2")]
    assert cliques.changed(draft, current)
    assert cliques.grows(draft, current)


def test_an_address_that_another_nodes_host_has_now_is_taken_from_the_old_row() -> None:
    current = clique([("n1", 0, "10.0.0.1")])
    draft = plan(["n1", "n2"], {"n1": at(""), "n2": at("10.0.0.1")}, current).drafts[R0]
    assert rows(draft) == [("n1", 0, ""), ("n2", 1, "10.0.0.1")]


def test_a_row_without_an_address_stays_too() -> None:
    current = clique([("n1", 0, ""), ("n2", 1, "10.0.0.1")])
    draft = plan(["n1", "n2"], {"n1": at(""), "n2": at("10.0.0.1")}, current).drafts[R0]
    assert not cliques.changed(draft, current)


def test_a_node_that_moved_to_another_rack_leaves_the_old_clique() -> None:
    current = clique([("n1", 0, "10.0.0.1")])
    found = plan(["n1"], {"n1": at("10.0.0.1", R1)}, current)
    assert rows(found.drafts[R0]) == []
    assert rows(found.drafts[R1]) == [("n1", 0, "10.0.0.1")]


def test_a_node_beyond_the_slots_of_its_clique_is_named() -> None:
    found = plan(["n1", "n2"], {"n1": at("10.0.0.1"), "n2": at("10.0.0.2")}, slots=1)
    assert found.full == {"n2": R0}
    assert rows(found.drafts[R0]) == [("n1", 0, "10.0.0.1")]


def test_a_node_that_leaves_does_not_make_the_clique_grow() -> None:
    current = clique([("n1", 0, "10.0.0.1"), ("n2", 1, "10.0.0.2")])
    draft = plan(["n2"], {"n2": at("10.0.0.2")}, current).drafts[R0]
    assert cliques.changed(draft, current)
    assert not cliques.grows(draft, current)


def test_the_indexes_of_nodes_that_left_survive_in_the_object() -> None:
    places = {f"n{i}": at(f"10.0.0.{i}") for i in range(1, 6)}
    first = stored(plan(["n1", "n2", "n3"], places).drafts[R0])
    second = stored(plan(["n1", "n3"], places, first).drafts[R0])
    assert second.metadata.annotations[HISTORY_ANNOTATION] == '[["n2",1]]'
    third = plan(["n1", "n2", "n3", "n4"], places, second).drafts[R0]
    assert rows(third) == [("n1", 0, "10.0.0.1"), ("n2", 1, "10.0.0.2"), ("n3", 2, "10.0.0.3"), ("n4", 3, "10.0.0.4")]


@pytest.mark.parametrize("history", ['[["n2"', '{"n2":3}', '[["n2",-3]]', '[["n2",0]]'])
def test_a_damaged_history_is_ignored(history: str) -> None:
    current = clique([("n1", 0, "10.0.0.1")], annotations={HISTORY_ANNOTATION: history})
    places = {"n1": at("10.0.0.1"), "n2": at("10.0.0.2")}
    assert rows(plan(["n1", "n2"], places, current).drafts[R0])[1] == ("n2", 1, "10.0.0.2")


def test_the_object_carries_what_agents_select_by_and_nothing_that_grows_with_watchers() -> None:
    draft = plan(["n1"], {"n1": at("10.0.0.1")}).drafts[R0]
    created = cliques.body(draft, domain=domain(), namespace="interlace-system", current=None)
    assert created["metadata"] == {
        "name": f"{UID}.{R0}",
        "namespace": "interlace-system",
        "labels": {"resource.nvidia.com/computeDomain": UID, "resource.nvidia.com/computeDomain.cliqueID": R0},
        "annotations": {"interlace.dev/domain-name": "cd", "interlace.dev/domain-namespace": "team"},
    }
    replaced = cliques.body(draft, domain=domain(), namespace="interlace-system", current=clique([]))
    assert replaced["metadata"]["resourceVersion"] == "7"
    assert replaced["metadata"]["uid"] == "uid-of-clique"
    assert replaced["metadata"]["managedFields"] == [{}]


NODES = [f"n{i}" for i in range(6)]


class Formation(RuleBasedStateMachine):
    """Members come and go, facts appear, vanish and change; every plan is written."""

    nodes = st.sampled_from(NODES)
    addresses = st.sampled_from([f"10.0.0.{i}" for i in range(4)])

    def __init__(self) -> None:
        super().__init__()
        self.members: set[str] = set()
        self.places = {node: Place(clique=R0) for node in NODES}
        self.current: dict[str, ComputeDomainClique] = {}

    @rule(node=nodes)
    def join(self, node: str) -> None:
        self.members.add(node)

    @rule(node=nodes)
    def leave(self, node: str) -> None:
        self.members.discard(node)

    @rule(node=nodes, clique_id=st.sampled_from([None, "", R0, R1]))
    def publish(self, node: str, clique_id: str | None) -> None:
        address = self.places[node].address
        self.places[node] = Place(clique=clique_id, address=address)

    @rule(node=nodes, address=st.one_of(st.just(""), addresses))
    def place_host(self, node: str, address: str) -> None:
        # A cluster gives an address to one Pod at a time.
        if not address or all(p.address != address for n, p in self.places.items() if n != node):
            self.places[node] = Place(clique=self.places[node].clique, address=address)

    @rule(old=nodes, new=nodes)
    def hand_over(self, old: str, new: str) -> None:
        address = self.places[old].address
        self.places[old] = Place(clique=self.places[old].clique)
        self.places[new] = Place(clique=self.places[new].clique, address=address)

    @rule()
    def write(self) -> None:
        found = cliques.plan(dict.fromkeys(sorted(self.members), ()), places=self.places, current=self.current, slots=4)
        before = {(c, r.node_name): r.index for c, obj in self.current.items() for r in obj.daemons}
        self.current = {c: stored(draft) for c, draft in found.drafts.items() if draft.rows}
        after = {(c, r.node_name): r.index for c, obj in self.current.items() for r in obj.daemons}
        for key in before.keys() & after.keys():
            assert before[key] == after[key]
        placed = {node for _, node in after}
        named = {*found.fabricless, *found.no_agent, *found.no_host, *found.full}
        assert placed | named == self.members
        assert not placed & named
        again = cliques.plan(dict.fromkeys(sorted(self.members), ()), places=self.places, current=self.current, slots=4)
        assert not any(cliques.changed(draft, self.current.get(c)) for c, draft in again.drafts.items())

    @invariant()
    def rows_are_unique_in_index_and_address_and_a_node_has_one(self) -> None:
        names = []
        for obj in self.current.values():
            indexes = [row.index for row in obj.daemons]
            addresses = [row.ip_address for row in obj.daemons if row.ip_address]
            names += [row.node_name for row in obj.daemons]
            assert len(set(indexes)) == len(indexes) <= 4
            assert len(set(addresses)) == len(addresses)
        assert len(set(names)) == len(names)


Formation.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestAnyFormation = Formation.TestCase

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlace.domains.indexes import Assignment, Indexes, assign

SLOTS = 5
NODES = [f"node-{i}" for i in range(9)]


def after(*steps: set[str], slots: int = SLOTS) -> Assignment:
    assignment = Assignment(indexes=Indexes())
    for nodes in steps:
        assignment = assign(assignment.indexes, nodes=nodes, slots=slots)
    return assignment


def test_nodes_that_come_together_are_numbered_by_name() -> None:
    assert after({"b", "c", "a"}).indexes.held == {"a": 0, "b": 1, "c": 2}


def test_a_newcomer_changes_nobodys_index() -> None:
    held = after({"b", "c"}, {"a", "b", "c"}).indexes.held
    assert held == {"b": 0, "c": 1, "a": 2}


def test_a_node_that_returns_gets_its_old_index() -> None:
    assert after({"a", "b", "c"}, {"a", "c"}, {"a", "b", "c"}).indexes.held["b"] == 1


def test_a_newcomer_takes_an_index_that_was_never_used_before_one_that_was() -> None:
    assert after({"a", "b", "c"}, {"b", "c"}, {"b", "c", "d"}).indexes.held["d"] == 3


def test_a_deleted_row_frees_its_index_last() -> None:
    # All five slots were used; "b" left before "a", so its index has been unused longest.
    full = {"a", "b", "c", "d", "e"}
    assert after(full, full - {"b"}, full - {"a", "b"}, (full - {"a", "b"}) | {"f"}).indexes.held["f"] == 1


def test_a_returning_node_goes_before_a_newcomer_that_comes_with_it() -> None:
    full = {"a", "b", "c", "d", "e"}
    held = after(full, full - {"e"}, (full - {"e", "d"}) | {"0-new", "e"}).indexes.held
    assert held["e"] == 4
    assert held["0-new"] == 3


def test_a_node_whose_old_index_was_taken_gets_another() -> None:
    full = {"a", "b", "c", "d", "e"}
    held = after(full, full - {"a"}, (full - {"a"}) | {"f"}, (full - {"b"}) | {"f"}).indexes.held
    assert held["f"] == 0
    assert held["a"] == 1


def test_a_node_beyond_the_slots_is_refused_and_the_others_stay() -> None:
    assignment = after({"a", "b"}, {"a", "b", "c"}, slots=2)
    assert assignment.refused == ("c",)
    assert assignment.indexes.held == {"a": 0, "b": 1}


def test_fewer_slots_than_before_take_no_index_away() -> None:
    assignment = assign(Indexes(held={"a": 7}, left=(("z", 9),)), nodes={"a", "z", "b"}, slots=2)
    assert assignment.indexes.held == {"a": 7, "b": 0, "z": 1}


class Clique(RuleBasedStateMachine):
    """Any sequence of memberships."""

    def __init__(self) -> None:
        super().__init__()
        self.state = Assignment(indexes=Indexes())
        self.wanted: set[str] = set()
        self.last_index: dict[str, int] = {}
        self.ever_used: set[int] = set()

    @rule(nodes=st.sets(st.sampled_from(NODES)))
    def become(self, nodes: set[str]) -> None:
        before = self.state.indexes
        free_before = {index: node for node, index in before.left}
        self.state = assign(before, nodes=nodes, slots=SLOTS)
        after_ = self.state.indexes
        for node in before.held.keys() & nodes:
            assert after_.held[node] == before.held[node], "an index changed while the row existed"
        unused_ever = set(range(SLOTS)) - self.ever_used
        for node in after_.held.keys() - before.held.keys():
            index = after_.held[node]
            old = self.last_index.get(node, -1)
            if free_before.get(old) == node:
                assert index == old, "a returning node did not get the index that nobody else had since"
            elif index in self.ever_used:
                taken = {i for n, i in after_.held.items() if n not in before.held}
                assert unused_ever <= taken, "a used index was given while one was never used"
        for node in self.state.refused:
            assert node not in after_.held
        self.wanted = nodes
        self.last_index |= after_.held
        self.ever_used |= set(after_.held.values())

    @rule()
    def pass_again(self) -> None:
        again = assign(self.state.indexes, nodes=self.wanted, slots=SLOTS)
        assert again == self.state

    @invariant()
    def indexes_are_unique_and_in_range(self) -> None:
        held = list(self.state.indexes.held.values())
        left = [index for _, index in self.state.indexes.left]
        assert len(set(held + left)) == len(held) + len(left)
        assert all(0 <= index < SLOTS for index in held + left)

    @invariant()
    def every_wanted_node_has_an_index_or_was_refused_for_want_of_slots(self) -> None:
        assert {*self.state.indexes.held, *self.state.refused} == self.wanted
        assert not self.state.refused or len(self.state.indexes.held) == SLOTS

    @invariant()
    def what_is_remembered_is_bounded(self) -> None:
        assert len(self.state.indexes.left) + len(self.state.indexes.held) <= SLOTS


Clique.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestAnySequenceOfMemberships = Clique.TestCase

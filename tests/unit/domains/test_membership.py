from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from interlace.api.resource import ResourceClaim
from interlace.domains.membership import device_of, membership, node_of, pods_of
from tests.unit.domains.objects import claim, ready_claim, said


def members(*claims: ResourceClaim) -> dict[str, list[str]]:
    found = membership(claims, namespace="team")
    return {node: [c.metadata.name for c in held] for node, held in found.members.items()}


def test_a_node_belongs_while_a_claim_is_allocated_there() -> None:
    assert members(claim("a", node="n1"), claim("b", node="n2")) == {"n1": ["a"], "n2": ["b"]}


def test_a_claim_whose_reservation_went_away_still_counts() -> None:
    assert members(claim("a", node="n1", reserved=False)) == {"n1": ["a"]}


def test_a_claim_that_is_being_deleted_counts_until_it_is_deallocated() -> None:
    assert members(claim("a", node="n1", deleting=True)) == {"n1": ["a"]}


def test_two_claims_on_one_node_make_one_member() -> None:
    assert members(claim("b", node="n1"), claim("a", node="n1")) == {"n1": ["a", "b"]}


def test_a_claim_in_another_namespace_never_counts() -> None:
    found = membership([claim("a", node="n1", namespace="other")], namespace="team")
    assert not found.members
    assert [c.metadata.name for c in found.strangers] == ["a"]


def test_a_claim_of_another_driver_makes_no_member() -> None:
    found = membership([claim("a", node="n1", driver="gpu.nvidia.com")], namespace="team")
    assert not found.members
    assert not found.unallocated


def test_a_claim_waits_for_allocation_while_its_pod_may_come_to_need_it() -> None:
    found = membership([claim("a"), claim("b", deleting=True), claim("c", pod=False)], namespace="team")
    assert [c.metadata.name for c in found.unallocated] == ["a"]


def test_a_report_from_a_node_where_the_claim_was_before_is_not_believed() -> None:
    moved = claim("a", node="n2", reported_on="n1", conditions=[said("True")])
    assert device_of(moved) is None
    assert device_of(ready_claim("a", node="n2")) is not None
    assert device_of(claim("a")) is None


def test_the_pod_of_a_claim_is_the_one_it_is_reserved_for_else_its_owner() -> None:
    shared = claim("a", node="n1", pod=False)
    assert [(p.kind, p.namespace, p.name, p.uid) for p in pods_of(shared)] == [("Pod", "team", "pod-a", "uid-of-pod-a")]
    assert [p.name for p in pods_of(claim("b"))] == ["pod-b"]
    assert pods_of(claim("c", pod=False)) == []


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "n1", "n2"])), unique_by=lambda t: t[0]))
def test_the_order_in_which_claims_are_listed_does_not_matter(pairs: list[tuple[str, str]]) -> None:
    claims = [claim(name, node=node) for name, node in pairs]
    assert membership(claims, namespace="team") == membership(claims[::-1], namespace="team")


class Claims(RuleBasedStateMachine):
    """Claims that come, are allocated, lose reservations, move and go."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: dict[str, ResourceClaim] = {}

    names = st.sampled_from("abcde")

    @rule(name=names, node=st.sampled_from(["", "n1", "n2", "n3"]), reserved=st.booleans(), namespace=st.booleans())
    def put(self, *, name: str, node: str, reserved: bool, namespace: bool) -> None:
        self.claims[name] = claim(name, node=node, reserved=reserved, namespace="team" if namespace else "other")

    @rule(name=names)
    def remove(self, name: str) -> None:
        self.claims.pop(name, None)

    @invariant()
    def members_are_exactly_the_nodes_of_allocated_claims_of_the_namespace(self) -> None:
        found = membership(self.claims.values(), namespace="team")
        own = [c for c in self.claims.values() if c.metadata.namespace == "team"]
        assert set(found.members) == {node_of(c) for c in own if node_of(c)}
        counted = [c for held in found.members.values() for c in held] + [*found.unallocated, *found.strangers]
        assert len(counted) == len(self.claims)


Claims.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestAnySequenceOfClaims = Claims.TestCase

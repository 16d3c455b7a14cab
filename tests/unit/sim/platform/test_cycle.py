"""One scheduling decision: the best node, or kube-scheduler's sentence about why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.sim.platform.kinds import NodeSelector, NodeSelectorTerm, Requirement
from interlace.sim.platform.scheduling.consumption import consider
from interlace.sim.platform.scheduling.cycle import Demand, Offer, Placed, Refused, decide, feasible_enough
from interlace.sim.platform.scheduling.devices import Candidate, SelectorError, pools_by_node
from interlace.sim.platform.scheduling.ledger import NodeLedger
from interlace.sim.platform.scheduling.matching import CelMatcher
from interlace.sim.platform.scheduling.snapshot import describe
from tests.unit.sim.platform.objects import DRIVER, claim, device_class, device_slice, node, pod, request

NO_DEMAND = Demand()


def offer(*slices: Any, taken: frozenset[tuple[str, str, str]] = frozenset(), matches: Any = None) -> Offer:
    return Offer(
        pools=pools_by_node(slices),
        taken=taken,
        classes={"channel": device_class()},
        matches=matches or (lambda _expression, _candidate: True),
    )


def demand(*requests: dict[str, Any]) -> Demand:
    made = claim(requests=list(requests) or [request()])
    owner = pod("new", resourceClaims=[{"name": "cd-0", "resourceClaimName": "c"}])
    return consider(owner, lambda _name: made, lambda _uid: False).demand


def choose(wants: Any, *things: Any, need: Demand = NO_DEMAND, give: Offer | None = None) -> Placed | Refused:
    ledger = NodeLedger()
    for thing in things:
        if hasattr(thing.spec, "taints"):
            ledger.set_node(thing)
        else:
            ledger.set_pod(thing)
    return decide(describe(wants), ledger.snapshot({}), demand=need, offer=give or offer())


def test_ties_go_to_the_first_node_in_natural_order() -> None:
    assert choose(pod(), node("n-10"), node("n-2")) == Placed(node="n-2", allocations=())


def test_pods_of_one_controller_are_spread_even_over_fuller_nodes() -> None:
    things = (
        node("a"),
        node("b"),
        pod("sibling", node="a", owner="rs"),
        pod("stranger", node="b", requests={"cpu": "4"}),
    )
    assert choose(pod("new", owner="rs"), *things) == Placed(node="b", allocations=())


def test_a_preferred_node_wins_over_an_equal_one() -> None:
    preference = {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}
    wants = pod(
        affinity={
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]
            }
        }
    )
    assert choose(wants, node("a"), node("b", labels={"fast": "1"})) == Placed(node="b", allocations=())


def test_the_refusal_counts_the_reasons_as_kube_scheduler_does() -> None:
    nodes = [node(f"n-{i}", allocatable={"nvidia.com/gpu": "0"}) for i in range(17)]
    tainted = node("n-17", taints=[{"key": "down", "effect": "NoSchedule"}])
    answer = choose(pod(requests={"nvidia.com/gpu": 4}), *nodes, tainted)
    assert answer == Refused(
        message="0/18 nodes are available: 1 node(s) had untolerated taint(s), 17 Insufficient nvidia.com/gpu.",
        claims_elsewhere=False,
    )


def test_without_nodes_it_says_so() -> None:
    assert choose(pod()) == Refused(message="no nodes available to schedule pods", claims_elsewhere=False)


def test_a_pod_goes_where_a_device_is_free() -> None:
    give = offer(device_slice("a"), device_slice("b"), taken=frozenset({(DRIVER, "a", "channel-0")}))
    answer = choose(pod(), node("a"), node("b"), need=demand(), give=give)
    assert isinstance(answer, Placed)
    assert answer.node == "b"
    assert [result.pool for result in answer.allocations[0].devices.results] == ["b"]


def test_without_a_free_device_the_claims_are_the_reason() -> None:
    answer = choose(pod(), node("a"), node("b"), need=demand(), give=offer())
    assert isinstance(answer, Refused)
    assert answer.message == "0/2 nodes are available: 2 cannot allocate all claims."


def test_a_claim_that_is_allocated_elsewhere_is_told_apart() -> None:
    here = Requirement(key="metadata.name", operator="In", values=["b"])
    pinned = Demand(pinned=(NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[here])]),))
    assert choose(pod(), node("a"), node("b"), need=pinned) == Placed(node="b", allocations=())
    answer = choose(pod(), node("a"), node("b", unschedulable=True), need=pinned)
    assert isinstance(answer, Refused)
    assert answer.claims_elsewhere
    assert "1 resourceclaim not available on the node" in answer.message


def test_one_device_without_the_attribute_stops_the_whole_attempt() -> None:
    whole = {"name": "channel-0", "attributes": {"domain": {"string": ""}}}
    give = offer(device_slice("a", [whole]), device_slice("b"), matches=CelMatcher())
    selector = f"device.attributes['{DRIVER}'].domain in ['', 'x']"
    with pytest.raises(SelectorError, match="no such key: domain"):
        choose(pod(), node("a"), node("b"), need=demand(request(selectors=[selector])), give=give)


def test_a_selector_that_asks_first_whether_the_attribute_is_there_survives() -> None:
    bare, other = device_slice("a"), device_slice("b", [{"name": "d", "attributes": {"domain": {"string": "y"}}}])
    domain = f"device.attributes['{DRIVER}'].domain"
    selector = f"!has({domain}) || {domain} in ['', 'x']"
    give = offer(bare, other, matches=CelMatcher())
    answer = choose(pod(), node("a"), node("b"), need=demand(request(selectors=[selector])), give=give)
    assert isinstance(answer, Placed)
    assert answer.node == "a"


def test_devices_of_nodes_that_are_ruled_out_are_not_looked_at() -> None:
    def refuse(expression: str, candidate: Candidate) -> bool:
        raise SelectorError(f"{expression} on {candidate.pool}")

    give = offer(device_slice("a"), matches=refuse)
    answer = choose(pod(), node("a", unschedulable=True), need=demand(request(selectors=["x"])), give=give)
    assert isinstance(answer, Refused)


def test_large_clusters_are_searched_in_part() -> None:
    assert feasible_enough(18) > 18
    assert feasible_enough(1000) == 420
    assert feasible_enough(10_000) == 500


def test_answers_of_selectors_are_remembered_for_each_version_of_a_slice() -> None:
    matches = CelMatcher()
    with_id = {"name": "d", "attributes": {"id": {"int": 0}}}
    before = pools_by_node([device_slice("a", [with_id])])["a"][0].candidates[0]
    with_id = {"name": "d", "attributes": {"id": {"int": 1}}}
    after = pools_by_node([device_slice("a", [with_id], generation=2)])["a"][0].candidates[0]
    expression = f"device.attributes['{DRIVER}'].id == 0"
    assert [matches(expression, candidate) for candidate in (before, before, after)] == [True, True, False]

"""Room, wishes, taints, neighbours and spreading: which node suits which pod."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.sim.platform.scheduling import fit, neighbours, placement, spreading
from interlace.sim.platform.scheduling.ledger import NodeLedger
from interlace.sim.platform.scheduling.snapshot import NodeInfo, PodInfo, Snapshot, describe, pod_requests
from tests.unit.sim.platform.objects import node, pod

CLIQUE = "nvidia.com/gpu.clique"


def world(*things: Any, namespaces: dict[str, dict[str, str]] | None = None) -> Snapshot:
    """A snapshot of nodes and of pods that are on them."""
    ledger = NodeLedger()
    for thing in things:
        if hasattr(thing.spec, "taints"):
            ledger.set_node(thing)
        else:
            ledger.set_pod(thing)
    return ledger.snapshot(namespaces or {})


def alone(**fields: Any) -> NodeInfo:
    return world(node(**fields)).nodes[0]


def near(key: str, **labels: str) -> dict[str, Any]:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
        ]
    }


def info(name: str = "new", **fields: Any) -> PodInfo:
    return describe(pod(name, **fields))


def test_a_pod_fits_a_node_with_just_enough_of_everything() -> None:
    wants = info(requests={"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": 4})
    assert fit.shortages(wants, alone()) == []


def test_each_resource_that_is_short_is_named() -> None:
    wants = info(requests={"cpu": "8001m", "nvidia.com/gpu": 5, "memory": "1Gi"})
    assert fit.shortages(wants, alone()) == ["Insufficient cpu", "Insufficient nvidia.com/gpu"]


def test_what_is_on_the_node_already_counts() -> None:
    place = world(node(), pod("old", node="n", requests={"nvidia.com/gpu": 1})).nodes[0]
    assert fit.shortages(info(requests={"nvidia.com/gpu": 4}), place) == ["Insufficient nvidia.com/gpu"]
    assert fit.shortages(info(requests={"nvidia.com/gpu": 3}), place) == []


def test_a_finished_pod_takes_no_room() -> None:
    place = world(node(), pod("old", node="n", phase="Succeeded", requests={"nvidia.com/gpu": 4})).nodes[0]
    assert fit.shortages(info(requests={"nvidia.com/gpu": 4}), place) == []


def test_a_full_node_says_too_many_pods() -> None:
    place = world(node(allocatable={"pods": "1"}), pod("old", node="n")).nodes[0]
    assert fit.shortages(info(), place) == ["Too many pods"]


def test_a_resource_that_the_node_does_not_have_is_insufficient() -> None:
    assert fit.shortages(info(requests={"example.com/nic": 1}), alone()) == ["Insufficient example.com/nic"]


def test_a_limit_without_a_request_is_a_request() -> None:
    wants = pod(containers=[{"resources": {"limits": {"nvidia.com/gpu": 4}}}])
    assert pod_requests(wants.spec) == {"nvidia.com/gpu": 4, "pods": 1}


def test_an_init_container_counts_only_where_it_needs_more_than_the_containers() -> None:
    wants = pod(
        containers=[{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "1"}}}],
        initContainers=[
            {"resources": {"requests": {"cpu": "500m"}}, "restartPolicy": "Always"},
            {"resources": {"requests": {"cpu": "4", "memory": "1Gi"}}},
        ],
    )
    assert pod_requests(wants.spec) == {"cpu": 4500, "memory": 2**30, "pods": 1}


def test_sidecars_add_to_the_containers() -> None:
    wants = pod(
        containers=[{"resources": {"requests": {"cpu": "1"}}}],
        initContainers=[{"resources": {"requests": {"cpu": "500m"}}, "restartPolicy": "Always"}],
        overhead={"cpu": "100m"},
    )
    assert pod_requests(wants.spec) == {"cpu": 1600, "pods": 1}


def test_the_emptier_node_has_more_headroom() -> None:
    snapshot = world(node("a"), node("b"), pod("old", node="a", requests={"cpu": "4"}))
    used, empty = (fit.headroom(info(requests={"cpu": "1"}), place) for place in snapshot.nodes)
    assert empty > used


def test_a_cordoned_node_is_refused_unless_tolerated() -> None:
    cordoned = alone(unschedulable=True)
    assert placement.refusal(info(), cordoned) == "node(s) were unschedulable"
    bears = info(
        tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]
    )
    assert placement.refusal(bears, cordoned) is None


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_hard_taint_is_refused_unless_tolerated(effect: str) -> None:
    tainted = alone(taints=[{"key": "gpu", "value": "yes", "effect": effect}])
    assert placement.refusal(info(), tainted) == "node(s) had untolerated taint(s)"
    assert placement.refusal(info(tolerations=[{"operator": "Exists"}]), tainted) is None
    assert placement.refusal(info(tolerations=[{"key": "gpu", "value": "yes"}]), tainted) is None
    other = info(tolerations=[{"key": "gpu", "value": "no"}])
    assert placement.refusal(other, tainted) == "node(s) had untolerated taint(s)"


def test_a_soft_taint_only_costs_points() -> None:
    tainted = alone(taints=[{"key": "gpu", "effect": "PreferNoSchedule"}])
    assert placement.refusal(info(), tainted) is None
    assert placement.dislikes((), tainted) == 1


def test_node_selector_and_required_affinity_must_both_match() -> None:
    labelled = alone(labels={"zone": "a", "gen": "4"})
    terms = [{"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["3"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert placement.refusal(info(nodeSelector={"zone": "a"}, affinity=affinity), labelled) is None
    assert placement.refusal(info(nodeSelector={"zone": "b"}, affinity=affinity), labelled) is not None
    terms[0]["matchExpressions"][0]["values"] = ["4"]
    wrong = placement.refusal(info(affinity=affinity), labelled)
    assert wrong == "node(s) didn't match Pod's node affinity/selector"


def test_affinity_to_a_node_by_name_matches_that_node_alone() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    pinned = info(
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    )
    assert [placement.wants(pinned, place) for place in world(node("n1"), node("n2")).nodes] == [False, True]


def test_the_first_pod_of_a_group_may_go_to_any_node_that_has_the_topology_key() -> None:
    snapshot = world(node("a", labels={CLIQUE: "c0"}), node("b"))
    first = info(labels={"job": "x"}, affinity={"podAffinity": near(CLIQUE, job="x")})
    around = neighbours.survey(first, snapshot)
    assert [neighbours.objection(first, place, around) for place in snapshot.nodes] == [
        None,
        "node(s) didn't match pod affinity rules",
    ]


def test_the_next_pods_follow_the_first_into_its_clique() -> None:
    snapshot = world(
        node("a", labels={CLIQUE: "c0"}),
        node("b", labels={CLIQUE: "c0"}),
        node("c", labels={CLIQUE: "c1"}),
        pod("first", node="a", labels={"job": "x"}),
    )
    second = info(labels={"job": "x"}, affinity={"podAffinity": near(CLIQUE, job="x")})
    around = neighbours.survey(second, snapshot)
    assert [neighbours.objection(second, place, around) is None for place in snapshot.nodes] == [True, True, False]


def test_a_pod_that_wants_others_which_are_not_there_fits_nowhere() -> None:
    snapshot = world(node("a", labels={CLIQUE: "c0"}))
    lonely = info(labels={"job": "y"}, affinity={"podAffinity": near(CLIQUE, job="x")})
    around = neighbours.survey(lonely, snapshot)
    assert neighbours.objection(lonely, snapshot.nodes[0], around) == "node(s) didn't match pod affinity rules"


def test_pods_of_another_namespace_are_no_neighbours_unless_the_term_says_so() -> None:
    snapshot = world(
        node("a", labels={CLIQUE: "c0"}),
        pod("first", node="a", labels={"job": "x"}, namespace="other"),
        namespaces={"other": {"team": "t"}},
    )
    affinity = near(CLIQUE, job="x")
    asks = info(labels={"job": "y"}, affinity={"podAffinity": affinity})
    assert not neighbours.survey(asks, snapshot).near
    term = affinity["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = {"matchLabels": {"team": "t"}}
    asks = info(labels={"job": "y"}, affinity={"podAffinity": affinity})
    assert neighbours.survey(asks, snapshot).near == {(CLIQUE, "c0")}


def test_anti_affinity_keeps_pods_apart_in_both_directions() -> None:
    shy = {"podAntiAffinity": near("kubernetes.io/hostname", job="x")}
    place = node("a", labels={"kubernetes.io/hostname": "a"})
    asks = info(labels={"job": "x"}, affinity=shy)
    loud = world(place, pod("first", node="a", labels={"job": "x"}))
    around = neighbours.survey(asks, loud)
    assert neighbours.objection(asks, loud.nodes[0], around) == "node(s) didn't match pod anti-affinity rules"
    careless = info(labels={"job": "x"})
    refusing = world(place, pod("first", node="a", labels={"job": "y"}, affinity=shy))
    around = neighbours.survey(careless, refusing)
    why = neighbours.objection(careless, refusing.nodes[0], around)
    assert why == "node(s) didn't satisfy existing pods anti-affinity rules"


def test_pods_of_one_controller_are_siblings_and_others_are_not() -> None:
    place = world(
        node("a"), pod("p", node="a", owner="rs1"), pod("q", node="a", owner="rs2"), pod("r", node="a")
    ).nodes[0]
    assert spreading.siblings(info(owner="rs1"), place) == 1
    assert spreading.siblings(info(), place) == 0


def test_nodes_without_a_host_name_label_are_not_spread_over() -> None:
    place = world(node("a", labels={}), pod("p", node="a", owner="rs1")).nodes[0]
    assert spreading.siblings(info(owner="rs1"), place) == 0


def test_a_spread_constraint_bounds_the_skew() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job": "x"}},
    }
    snapshot = world(
        node("a", labels={"zone": "1"}),
        node("b", labels={"zone": "2"}),
        node("c"),
        pod("p", node="a", labels={"job": "x"}),
    )
    asks = info(labels={"job": "x"}, topologySpreadConstraints=[constraint])
    counts = spreading.census(asks, snapshot)
    assert [spreading.skewed(asks, place, counts) for place in snapshot.nodes] == [
        "node(s) didn't match pod topology spread constraints",
        None,
        "node(s) didn't match pod topology spread constraints (missing required label)",
    ]


def test_a_soft_spread_constraint_refuses_nothing() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    snapshot = world(node("a"))
    asks = info(topologySpreadConstraints=[constraint])
    assert spreading.skewed(asks, snapshot.nodes[0], spreading.census(asks, snapshot)) is None

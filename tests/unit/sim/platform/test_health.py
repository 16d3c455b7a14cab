"""What a silent kubelet means for conditions, taints and the pods on its node."""

from __future__ import annotations

from typing import Any

import msgspec

from interlace.sim.platform.conditions import seconds_since, with_condition
from interlace.sim.platform.kinds import Node, Taint, Toleration
from interlace.sim.platform.nodes.health import eviction_delay, readiness, silent_conditions, taints
from tests.unit.sim.platform.objects import node

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


def ready(status: str) -> list[dict[str, Any]]:
    return [{"type": "Ready", "status": status}, {"type": "Custom", "status": "True"}]


def pairs(found: list[Taint] | None) -> set[tuple[str, str]] | None:
    return None if found is None else {(taint.key, taint.effect) for taint in found}


def test_a_silent_kubelets_conditions_become_unknown_and_others_stay() -> None:
    found = silent_conditions(node(conditions=ready("True")))
    assert found is not None
    assert found[0]["status"] == "Unknown"
    assert found[0]["reason"] == "NodeStatusUnknown"
    assert found[1] == {"type": "Custom", "status": "True"}


def test_a_node_that_says_so_already_is_left_alone() -> None:
    assert silent_conditions(node(conditions=ready("Unknown"))) is None


def test_a_kubelet_that_never_reported_is_told_apart() -> None:
    found = silent_conditions(node(conditions=[]))
    assert found is not None
    assert found[0]["reason"] == "NodeStatusNeverUpdated"
    assert readiness(msgspec.convert({"status": {"conditions": found}}, Node)) == "Unknown"


def test_an_unknown_node_is_unreachable_and_a_failing_one_not_ready() -> None:
    both = {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert pairs(taints(node(conditions=ready("Unknown")))) == both
    both = {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}
    assert pairs(taints(node(conditions=ready("False")))) == both


def test_the_time_of_a_no_execute_taint_is_noted() -> None:
    found = taints(node(conditions=ready("Unknown")))
    assert found is not None
    assert {taint.effect: taint.time_added is not None for taint in found} == {"NoSchedule": False, "NoExecute": True}


def test_a_node_that_comes_back_loses_our_taints_and_keeps_those_of_others() -> None:
    given = [{"key": UNREACHABLE, "effect": "NoExecute"}, {"key": "gpu", "effect": "NoSchedule"}]
    assert pairs(taints(node(conditions=ready("True"), taints=given))) == {("gpu", "NoSchedule")}


def test_a_cordon_is_a_taint_and_its_end_takes_it_away() -> None:
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert pairs(taints(node(unschedulable=True))) == {(cordon["key"], "NoSchedule")}
    assert taints(node(unschedulable=True, taints=[cordon])) is None
    assert pairs(taints(node(taints=[cordon]))) == set()


def test_a_node_with_the_right_taints_is_not_written() -> None:
    assert taints(node()) is None
    assert taints(node(conditions=[])) is None


def test_pods_leave_at_once_unless_they_bear_every_no_execute_taint() -> None:
    here = [Taint(key=UNREACHABLE, effect="NoExecute"), Taint(key="gpu", effect="NoSchedule")]
    assert eviction_delay(here, []) == 0.0
    assert eviction_delay(here, [Toleration(key=UNREACHABLE, operator="Exists", effect="NoExecute")]) is None
    assert eviction_delay(here[1:], []) is None


def test_the_shortest_time_that_a_pod_bears_decides() -> None:
    here = [Taint(key=UNREACHABLE, effect="NoExecute"), Taint(key="x", effect="NoExecute")]
    bears = [
        Toleration(key=UNREACHABLE, operator="Exists", toleration_seconds=9),
        Toleration(key="x", operator="Exists", toleration_seconds=2),
        Toleration(operator="Exists"),
    ]
    assert eviction_delay(here, bears) == 2.0
    bears[1] = Toleration(key="x", operator="Exists", toleration_seconds=-1)
    assert eviction_delay(here, bears) == 0.0


def test_a_condition_that_says_the_same_is_not_written() -> None:
    known = [{"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "t"}]
    assert with_condition(known, type="A", status="True", reason="R", message="m") is None


def test_the_transition_time_moves_with_the_status_alone() -> None:
    known = [{"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "t"}, {"type": "B"}]
    other = with_condition(known, type="A", status="True", reason="R2", message="m")
    assert other is not None
    assert [entry.get("lastTransitionTime") for entry in other] == ["t", None]
    turned = with_condition(known, type="A", status="False", reason="R", message="m")
    assert turned is not None
    assert turned[0]["lastTransitionTime"] != "t"
    assert known[0]["status"] == "True"


def test_an_age_is_in_seconds_and_nothing_has_none() -> None:
    assert seconds_since(None) == 0.0
    assert seconds_since("2020-01-01T00:00:00Z") > 86_400

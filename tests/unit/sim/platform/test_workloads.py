"""StatefulSets, DaemonSets and Jobs, the pods that they make, and what they wait for before they ask again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.platform.batches import batches
from interlace.sim.platform.kinds import Pod
from interlace.sim.platform.workloadkinds import DaemonSet, Job, StatefulSet
from interlace.sim.platform.workloads import daemonset, job, statefulset
from interlace.sim.platform.workloads.expectations import Expectations
from interlace.sim.platform.workloads.podmaking import PodMaker, template_hash
from tests.unit.sim.platform.objects import node, pod

TEMPLATE = {"metadata": {"labels": {"a": "x"}}, "spec": {"containers": [{"image": "v1"}]}}
KEY = ("default", "w")


def stateful(replicas: int = 3, *, template: Any = None, **spec: Any) -> StatefulSet:
    body = {
        "metadata": {"name": "s", "namespace": "default", "uid": "uid-s"},
        "spec": {"replicas": replicas, "template": template or TEMPLATE, **spec},
    }
    return msgspec.convert(body, StatefulSet)


def numbered(number: int, owner: StatefulSet | None = None, **fields: Any) -> Pod:
    labels = statefulset.labels(owner or stateful(), number)
    return pod(f"s-{number}", labels=labels, **{"ready": True, **fields})


def names(plan: Any) -> list[str]:
    return [entry.metadata.name for entry in plan.delete]


def test_pods_start_one_after_the_other_in_order() -> None:
    assert statefulset.plan(stateful(), []).create == (0,)
    assert statefulset.plan(stateful(), [numbered(0, ready=False)]).create == ()
    assert statefulset.plan(stateful(), [numbered(0)]).create == (1,)


def test_a_gap_is_filled_before_anything_else() -> None:
    assert statefulset.plan(stateful(), [numbered(0), numbered(2)]).create == (1,)


def test_with_the_parallel_policy_all_missing_pods_start_at_once() -> None:
    owner = stateful(podManagementPolicy="Parallel")
    assert statefulset.plan(owner, [numbered(1)]).create == (0, 2)


def test_scaling_down_takes_the_highest_number_and_waits_for_its_end() -> None:
    pods = [numbered(0), numbered(1), numbered(2)]
    assert names(statefulset.plan(stateful(1), pods)) == ["s-2"]
    assert names(statefulset.plan(stateful(1), [*pods[:2], numbered(2, terminating=True)])) == []


def test_nothing_is_scaled_down_while_a_lower_pod_is_not_ready() -> None:
    assert statefulset.plan(stateful(1), [numbered(0, ready=False), numbered(1)]) == statefulset.Plan()


def test_a_failed_pod_is_deleted_and_made_again_once_it_is_gone() -> None:
    failed = numbered(1, ready=False, phase="Failed")
    assert names(statefulset.plan(stateful(), [numbered(0), failed])) == ["s-1"]
    assert statefulset.plan(stateful(), [numbered(0)]).create == (1,)


def test_an_update_goes_from_the_highest_number_down_one_at_a_time() -> None:
    new = stateful(template={"spec": {"containers": [{"image": "v2"}]}})
    pods = [numbered(0), numbered(1), numbered(2)]
    assert names(statefulset.plan(new, pods)) == ["s-2"]
    assert names(statefulset.plan(new, [*pods[:2], numbered(2, new)])) == ["s-1"]
    assert names(statefulset.plan(new, [*pods[:2], numbered(2, new, ready=False)])) == []


def test_an_outdated_pod_that_never_gets_ready_does_not_hold_up_its_own_update() -> None:
    new = stateful(template={"spec": {"containers": [{"image": "v2"}]}})
    assert names(statefulset.plan(new, [numbered(0, ready=False)])) == ["s-0"]


def test_on_delete_updates_nothing_by_itself() -> None:
    new = stateful(template={"spec": {}}, updateStrategy={"type": "OnDelete"})
    assert statefulset.plan(new, [numbered(0), numbered(1), numbered(2)]) == statefulset.Plan()


def test_the_status_of_a_stateful_set_counts_its_own_numbers_alone() -> None:
    status = statefulset.status(stateful(), [numbered(0), numbered(1, ready=False), pod("s-x"), pod("other-0")])
    assert (status.replicas, status.ready_replicas, status.updated_replicas) == (2, 1, 2)


def daemons(**spec: Any) -> DaemonSet:
    body = {
        "metadata": {"name": "d", "namespace": "default", "uid": "uid-d"},
        "spec": {"template": TEMPLATE, **spec},
    }
    return msgspec.convert(body, DaemonSet)


def daemon(place: str, owner: DaemonSet | None = None, **fields: Any) -> Pod:
    labels = {daemonset.REVISION_LABEL: daemonset.revision(owner or daemons())}
    return pod(f"d-{place}", node=place, labels=labels, **{"ready": True, **fields})


def test_every_matching_node_gets_one_daemon() -> None:
    owner = daemons(template={"spec": {"nodeSelector": {"gpu": "true"}}})
    nodes = [node("a", labels={"gpu": "true"}), node("b"), node("c", labels={"gpu": "true"})]
    assert daemonset.plan(owner, nodes, []).create == ("a", "c")
    assert daemonset.plan(owner, nodes, [daemon("a", owner)]).create == ("c",)


def test_a_daemon_is_pinned_to_its_node_before_it_is_bound() -> None:
    spec = daemonset.pod_spec(daemons(), "b")
    waiting = pod("d-1", affinity=spec["affinity"])
    assert daemonset.node_of(waiting) == "b"
    assert daemonset.plan(daemons(), [node("a"), node("b")], [waiting]).create == ("a",)


def test_a_terminating_daemon_keeps_its_node_until_it_is_gone() -> None:
    assert daemonset.plan(daemons(), [node("a")], [daemon("a", terminating=True)]) == daemonset.Plan()


def test_a_daemon_leaves_a_node_that_matches_no_more() -> None:
    owner = daemons(template={"spec": {"nodeSelector": {"gpu": "true"}}})
    assert names(daemonset.plan(owner, [node("a")], [daemon("a", owner)])) == ["d-a"]


def test_a_new_no_schedule_taint_keeps_daemons_that_run_and_stops_new_ones() -> None:
    tainted = node("a", taints=[{"key": "x", "effect": "NoSchedule"}])
    assert daemonset.plan(daemons(), [tainted], [daemon("a")]) == daemonset.Plan()
    assert daemonset.plan(daemons(), [tainted], []).create == ()


def test_daemons_bear_nodes_that_are_unreachable_or_cordoned() -> None:
    taints = [
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
    ]
    assert daemonset.plan(daemons(), [node("a", taints=taints)], []).create == ("a",)


def test_a_failed_daemon_and_a_second_one_are_deleted() -> None:
    twin = pod("twin", node="a", ready=True, created="2026-01-02T00:00:00Z")
    assert names(daemonset.plan(daemons(), [node("a")], [daemon("a"), twin])) == ["twin"]
    assert names(daemonset.plan(daemons(), [node("a")], [daemon("a", ready=False, phase="Failed")])) == ["d-a"]


def test_a_rolling_update_replaces_no_more_daemons_than_may_be_unavailable() -> None:
    new = daemons(template={"spec": {"hostNetwork": True}}, updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
    nodes = [node(name) for name in "abcd"]
    pods = [daemon(name) for name in "abcd"]
    assert names(daemonset.plan(new, nodes, pods)) == ["d-a", "d-b"]
    assert names(daemonset.plan(new, nodes, [daemon("a", terminating=True), *pods[1:]])) == ["d-b"]


def test_with_surge_an_old_daemon_goes_when_the_new_one_beside_it_is_ready() -> None:
    rolling = {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}}
    owner = daemons(template={"spec": {"hostNetwork": True}}, updateStrategy=rolling)
    nodes = [node(name) for name in "abcd"]
    old = [daemon(name) for name in "abcd"]
    assert daemonset.plan(owner, nodes, old) == daemonset.Plan(create=("a", "b"))
    begun = [pod(f"n-{name}", node=name, labels=daemon(name, owner).metadata.labels) for name in "ab"]
    assert daemonset.plan(owner, nodes, [*old, *begun]) == daemonset.Plan()
    ready = pod("n-a", node="a", labels=daemon("a", owner).metadata.labels, ready=True)
    assert names(daemonset.plan(owner, nodes, [*old, ready, begun[1]])) == ["d-a"]
    gone = [ready, begun[1], *old[1:]]
    assert daemonset.plan(owner, nodes, gone) == daemonset.Plan(create=("c",))
    useless = [daemon("a", ready=False), *old[1:]]
    assert names(daemonset.plan(owner, nodes, useless)) == ["d-a"]


def test_on_delete_leaves_outdated_daemons_running() -> None:
    new = daemons(template={"spec": {}}, updateStrategy={"type": "OnDelete"})
    assert daemonset.plan(new, [node("a")], [daemon("a")]) == daemonset.Plan()
    assert daemonset.status(new, [node("a")], [daemon("a")]).updated_number_scheduled == 0


def test_the_status_of_a_daemon_set_counts_nodes() -> None:
    owner = daemons(template={"spec": {"nodeSelector": {"gpu": "true"}}})
    nodes = [node("a", labels={"gpu": "true"}), node("b", labels={"gpu": "true"}), node("c")]
    status = daemonset.status(owner, nodes, [daemon("a", owner), daemon("c", owner)])
    assert (status.desired_number_scheduled, status.current_number_scheduled, status.number_ready) == (2, 1, 1)
    assert (status.number_misscheduled, status.number_unavailable) == (1, 1)


def work(**spec: Any) -> Job:
    body = {"metadata": {"name": "j", "namespace": "default", "uid": "uid-j"}, "spec": {"template": TEMPLATE, **spec}}
    return msgspec.convert(body, Job)


def indexed(number: int, **fields: Any) -> Pod:
    return pod(f"j-{number}", annotations={job.INDEX_ANNOTATION: str(number)}, **fields)


def test_a_job_runs_as_many_pods_as_parallelism_and_completions_allow() -> None:
    owner = work(completions=5, parallelism=3)
    assert job.plan(owner, []).create == (None, None, None)
    done = [pod(f"d{i}", phase="Succeeded") for i in range(4)]
    assert job.plan(owner, done).create == (None,)
    assert job.plan(owner, [*done, pod("r")]).create == ()


def test_indexes_are_given_from_the_lowest_and_never_twice() -> None:
    owner = work(completions=4, parallelism=2, completionMode="Indexed")
    assert job.plan(owner, []).create == (0, 1)
    assert job.plan(owner, [indexed(0, phase="Succeeded"), indexed(1)]).create == (2,)
    assert job.plan(owner, [indexed(0, terminating=True)]).create == (1, 2)
    assert job.plan(owner, [indexed(0, phase="Failed"), indexed(1)]).create == (0,)


def test_a_job_is_complete_with_its_last_success() -> None:
    owner = work(completions=2, completionMode="Indexed")
    status = job.status(owner, [indexed(0, phase="Succeeded"), indexed(1, phase="Succeeded")])
    assert [(c["type"], c["status"]) for c in status.conditions] == [
        ("SuccessCriteriaMet", "True"),
        ("Complete", "True"),
    ]
    assert status.completed_indexes == "0-1"
    assert status.completion_time is not None


def test_a_job_fails_when_more_pods_failed_than_its_limit_and_ends_the_others() -> None:
    owner = work(backoffLimit=1, completions=3, parallelism=2)
    pods = [pod("a", phase="Failed"), pod("b", phase="Failed"), pod("c")]
    assert names(job.plan(owner, pods)) == ["c"]
    assert not job.status(owner, pods).conditions
    status = job.status(owner, pods[:2])
    assert status.conditions[-1]["reason"] == "BackoffLimitExceeded"
    assert job.ended(msgspec.structs.replace(owner, status=status))


def test_a_job_that_ended_starts_nothing_and_keeps_its_status() -> None:
    ended = msgspec.convert(
        {"spec": {"completions": 1}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}, Job
    )
    assert job.plan(ended, []) == job.Plan()
    assert job.status(ended, []) is ended.status


def test_a_suspended_job_stops_its_pods() -> None:
    assert names(job.plan(work(suspend=True), [pod("a")])) == ["a"]


def test_a_work_queue_job_is_complete_when_one_succeeded_and_all_ended() -> None:
    owner = work(parallelism=2)
    assert job.outcome(owner, [pod("a", phase="Succeeded"), pod("b")]) == ""
    assert job.outcome(owner, [pod("a", phase="Succeeded"), pod("b", phase="Succeeded")]) == "Complete"
    assert job.plan(owner, [pod("a", phase="Succeeded")]).create == ()


def test_after_a_long_past_failure_the_next_pod_may_start_at_once() -> None:
    assert job.wait_left([pod("a", phase="Failed")]) == 0.0
    assert job.wait_left([]) == 0.0


@given(st.sets(st.integers(0, 30)))
def test_ranges_name_each_number_once(numbers: set[int]) -> None:
    text = job.ranges(numbers)
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == numbers


def test_a_pod_is_its_template_with_owner_account_and_tolerations() -> None:
    body = PodMaker(toleration=1.5).make(TEMPLATE, owner=stateful(), labels={"b": "y"})
    assert body["metadata"]["generateName"] == "s-"
    assert body["metadata"]["labels"] == {"a": "x", "b": "y"}
    assert body["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"
    assert body["spec"]["serviceAccountName"] == "default"
    assert [(entry["key"], entry["tolerationSeconds"]) for entry in body["spec"]["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 2),
        ("node.kubernetes.io/unreachable", 2),
    ]
    assert TEMPLATE["metadata"] == {"labels": {"a": "x"}}


def test_tolerations_that_the_template_has_are_not_doubled() -> None:
    everything = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    assert PodMaker(toleration=1).make(everything, owner=stateful())["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_equal_templates_have_equal_hashes_whatever_their_order() -> None:
    assert template_hash({"a": 1, "b": {"c": 2, "d": 3}}) == template_hash({"b": {"d": 3, "c": 2}, "a": 1})
    assert template_hash({"a": 1}) != template_hash({"a": 2})


def test_a_controller_waits_until_it_has_seen_what_it_asked_for() -> None:
    expected: Expectations[tuple[str, str]] = Expectations()
    expected.expect(KEY, creations=2, deletions=["u"])
    expected.created(KEY)
    expected.deleted(KEY, "u")
    assert not expected.met(KEY)
    expected.created(KEY)
    assert expected.met(KEY)


def test_an_expectation_that_is_never_met_ends_after_its_limit() -> None:
    now = 0.0
    expected: Expectations[tuple[str, str]] = Expectations(limit=30, clock=lambda: now)
    expected.expect(KEY, creations=1)
    assert not expected.met(KEY)
    now = 30.0
    assert expected.met(KEY)


def test_an_event_that_nobody_expected_changes_nothing() -> None:
    expected: Expectations[tuple[str, str]] = Expectations()
    expected.created(KEY)
    expected.deleted(KEY, "u")
    expected.expect(KEY, creations=1)
    assert not expected.met(KEY)


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (6, [1, 2, 3]), (18, [1, 2, 4, 8, 3])])
def test_pods_are_made_in_growing_batches(count: int, sizes: list[int]) -> None:
    assert [len(batch) for batch in batches(range(count))] == sizes

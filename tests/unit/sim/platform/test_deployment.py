"""Deployments: one ReplicaSet a template, and rolling updates within their limits."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.platform.workloadkinds import Deployment, ReplicaSet
from interlace.sim.platform.workloads import deployment as deployments
from interlace.sim.platform.workloads import replicaset as replica_sets
from tests.unit.sim.platform.objects import pod


def deployment(replicas: int | None = 4, *, image: str = "v1", **spec: Any) -> Deployment:
    body = {
        "metadata": {"name": "w", "namespace": "default", "uid": "uid-w", "generation": 3},
        "spec": {
            "selector": {"matchLabels": {"job": "x"}},
            "template": {"metadata": {"labels": {"job": "x"}}, "spec": {"containers": [{"image": image}]}},
            **spec,
        },
    }
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    return msgspec.convert(body, Deployment)


def made(owner: Deployment, *, replicas: int, available: int | None = None, revision: int = 1) -> ReplicaSet:
    """The ReplicaSet that the plan makes, with a size and a status."""
    body = deployments.plan(owner, []).create
    assert body is not None
    body["metadata"]["uid"] = "uid-" + body["metadata"]["name"]
    body["metadata"]["annotations"] = {deployments.REVISION: str(revision)}
    body["spec"]["replicas"] = replicas
    ready = replicas if available is None else available
    body["status"] = {"replicas": replicas, "readyReplicas": ready, "availableReplicas": ready}
    return msgspec.convert(msgspec.to_builtins(body), ReplicaSet)


def sizes(plan: deployments.Plan) -> list[int]:
    return [size for _, size in plan.scale]


def test_the_first_replica_set_gets_all_replicas_a_hash_and_a_revision() -> None:
    body = deployments.plan(deployment(), []).create
    assert body is not None
    name = body["metadata"]["labels"][deployments.HASH_LABEL]
    assert body["metadata"]["name"] == f"w-{name}"
    assert body["spec"]["replicas"] == 4
    assert body["spec"]["selector"]["matchLabels"] == {"job": "x", deployments.HASH_LABEL: name}
    assert body["spec"]["template"]["metadata"]["labels"] == {"job": "x", deployments.HASH_LABEL: name}
    assert body["metadata"]["annotations"] == {deployments.REVISION: "1"}
    assert body["metadata"]["ownerReferences"][0]["uid"] == "uid-w"


def test_without_a_number_there_is_one_replica() -> None:
    body = deployments.plan(deployment(None), []).create
    assert body is not None
    assert body["spec"]["replicas"] == 1


def test_scaling_changes_the_replica_set_at_once_in_both_directions() -> None:
    present = made(deployment(), replicas=4)
    assert sizes(deployments.plan(deployment(18), [present])) == [18]
    assert sizes(deployments.plan(deployment(2), [present])) == [2]
    assert sizes(deployments.plan(deployment(4), [present])) == []


def test_an_update_starts_with_the_surge_alone() -> None:
    old = made(deployment(), replicas=4)
    plan = deployments.plan(deployment(image="v2"), [old])
    assert plan.create is not None
    assert plan.create["spec"]["replicas"] == 1
    assert plan.revision == "2"


def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    old = made(deployment(), replicas=4)
    wanted = deployment(image="v2", strategy={"type": "Recreate"})
    assert deployments.plan(wanted, [old]) == deployments.Plan(scale=((old, 0),))
    gone = made(deployment(), replicas=0)
    plan = deployments.plan(wanted, [gone])
    assert plan.create is not None
    assert plan.create["spec"]["replicas"] == 4


def test_a_paused_deployment_is_scaled_but_not_updated() -> None:
    present = made(deployment(), replicas=4)
    assert deployments.plan(deployment(image="v2", paused=True), [present]) == deployments.Plan()
    assert sizes(deployments.plan(deployment(5, paused=True), [present])) == [5]


def test_going_back_to_an_old_template_reuses_its_replica_set_with_a_new_revision() -> None:
    first = made(deployment(), replicas=0, revision=1)
    second = made(deployment(image="v2"), replicas=4, revision=2)
    plan = deployments.plan(deployment(), [first, second])
    assert plan.create is None
    assert plan.revise == (first, "3")


def test_old_replica_sets_beyond_the_history_limit_are_deleted_oldest_first() -> None:
    old = [made(deployment(image=f"v{i}"), replicas=0, revision=i) for i in (1, 2, 3)]
    present = made(deployment(image="v4"), replicas=4, revision=4)
    plan = deployments.plan(deployment(image="v4", revisionHistoryLimit=1), [old[2], present, old[0], old[1]])
    assert plan.delete == (old[0], old[1])


def test_a_deployment_that_is_being_deleted_does_nothing() -> None:
    dying = msgspec.structs.replace(
        deployment(), metadata=msgspec.structs.replace(deployment().metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    assert deployments.plan(dying, []) == deployments.Plan()


@pytest.mark.parametrize(
    ("rolling", "limits"),
    [
        (None, (3, 2)),
        ({"maxSurge": 0, "maxUnavailable": 0}, (0, 1)),
        ({"maxSurge": "10%", "maxUnavailable": "10%"}, (1, 1)),
        ({"maxSurge": 2, "maxUnavailable": 0}, (2, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailability_down(rolling: Any, limits: tuple[int, int]) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert deployments.limits(deployment(10, strategy=strategy)) == limits


def test_status_sums_the_replica_sets_and_says_whether_there_are_enough() -> None:
    old, new = made(deployment(image="v1"), replicas=2), made(deployment(image="v2"), replicas=3, available=1)
    status = deployments.status(deployment(image="v2"), [old, new])
    assert (status.replicas, status.updated_replicas, status.available_replicas) == (5, 3, 3)
    assert status.unavailable_replicas == 2
    assert status.observed_generation == 3
    assert {c["type"]: (c["status"], c["reason"]) for c in status.conditions} == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }


def test_a_status_that_does_not_change_stays_equal() -> None:
    owner, present = deployment(), made(deployment(), replicas=4)
    once = deployments.status(owner, [present])
    again = deployments.status(msgspec.structs.replace(owner, status=once), [present])
    assert once == again


@dataclasses.dataclass
class Roll:
    """A rolling update with pods that become available when they like."""

    owner: Deployment
    sets: list[ReplicaSet]

    def act(self) -> bool:
        """Carry out the plan; whether there was one."""
        plan = deployments.plan(self.owner, self.sets)
        if plan.create is not None:
            self.sets.append(made(self.owner, replicas=plan.create["spec"]["replicas"], available=0, revision=2))
        for item, size in plan.scale:
            self.change(item, size)
        return plan.create is not None or bool(plan.scale)

    def change(self, item: ReplicaSet, size: int) -> None:
        """Pods that are not available go first."""
        index = self.sets.index(item)
        ready = min(item.status.available_replicas, size)
        spec = msgspec.structs.replace(item.spec, replicas=size)
        status = msgspec.structs.replace(item.status, replicas=size, ready_replicas=ready, available_replicas=ready)
        self.sets[index] = msgspec.structs.replace(item, spec=spec, status=status)

    def ready(self, count: int) -> None:
        """So many more pods of the newest set become available."""
        item = self.sets[-1]
        available = min(replica_sets.wanted(item), item.status.available_replicas + count)
        status = msgspec.structs.replace(item.status, ready_replicas=available, available_replicas=available)
        self.sets[-1] = msgspec.structs.replace(item, status=status)

    @property
    def asked(self) -> int:
        return sum(replica_sets.wanted(item) for item in self.sets)

    @property
    def available(self) -> int:
        return sum(item.status.available_replicas for item in self.sets)


@given(
    replicas=st.integers(1, 20),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    broken=st.integers(0, 5),
    data=st.data(),
)
def test_a_rolling_update_ends_and_never_leaves_its_limits(
    replicas: int, surge: int, unavailable: int, broken: int, data: st.DataObject
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    new = deployment(replicas, image="v2", strategy=strategy)
    old = made(deployment(replicas), replicas=replicas, available=max(0, replicas - broken))
    surge, unavailable = deployments.limits(new)
    roll = Roll(new, [old])
    start = roll.available
    for _ in range(200):
        acted = roll.act()
        assert roll.asked <= replicas + surge
        assert roll.available >= min(start, replicas - unavailable)
        if not acted and replica_sets.wanted(roll.sets[0]) == 0:
            break
        roll.ready(data.draw(st.integers(1, 3)))
    assert [replica_sets.wanted(item) for item in roll.sets] == [0, replicas]


def replica_set(replicas: int) -> ReplicaSet:
    return made(deployment(), replicas=replicas)


def test_missing_pods_are_made_and_dying_or_failed_ones_do_not_count() -> None:
    pods = [pod("a"), pod("b", terminating=True), pod("c", phase="Failed")]
    assert replica_sets.plan(replica_set(3), pods) == replica_sets.Plan(create=2)


def test_pods_whose_loss_costs_least_are_deleted_first() -> None:
    pods = [
        pod("ready-old", node="n", ready=True, created="2026-01-01T00:00:00Z"),
        pod("ready-new", node="n", ready=True, created="2026-01-02T00:00:00Z"),
        pod("starting", node="n"),
        pod("unscheduled"),
        pod("running", node="n", phase="Running"),
    ]
    order = [entry.metadata.name for entry in replica_sets.plan(replica_set(0), pods).delete]
    assert order == ["unscheduled", "starting", "running", "ready-new", "ready-old"]


def test_the_status_of_a_replica_set_counts_active_pods() -> None:
    status = replica_sets.status(replica_set(2), [pod("a", node="n", ready=True), pod("b"), pod("c", terminating=True)])
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (2, 1, 1)

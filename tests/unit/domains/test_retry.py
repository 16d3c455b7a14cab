from __future__ import annotations

from interlace.domains.retry import WAITING_FOR_KUBELET, pods_to_touch
from interlace.node.errors import Reason
from tests.unit.domains.objects import claim, ready_claim, said

WAITING = claim("a", node="n1", conditions=[said("True", reason=WAITING_FOR_KUBELET)])
FAILED = claim("a", node="n1", conditions=[said("False", reason="ImexStarting")])


def test_the_pod_is_touched_when_its_next_prepare_will_succeed() -> None:
    assert [(pod.namespace, pod.name, pod.uid) for pod in pods_to_touch(FAILED, WAITING)] == [
        ("team", "pod-a", "uid-of-pod-a")
    ]


def test_it_is_touched_once() -> None:
    assert pods_to_touch(WAITING, WAITING) == []


def test_a_new_leader_touches_what_the_last_one_may_have_missed() -> None:
    assert [pod.name for pod in pods_to_touch(None, WAITING)] == ["pod-a"]


def test_a_prepare_that_waited_and_ended_well_needs_no_touch() -> None:
    assert pods_to_touch(FAILED, ready_claim("a", node="n1")) == []
    assert pods_to_touch(None, FAILED) == []


def test_a_claim_that_is_gone_touches_nothing() -> None:
    assert pods_to_touch(WAITING, None) == []


def test_controller_and_agent_use_the_same_word() -> None:
    assert str(Reason.WAITING_FOR_KUBELET) == WAITING_FOR_KUBELET

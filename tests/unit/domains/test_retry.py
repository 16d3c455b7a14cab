from __future__ import annotations

from interlace.domains.retry import SILENCE, WAITING_FOR_KUBELET, Silence, pods_to_touch
from interlace.node.errors import Reason
from tests.unit.domains.objects import claim, ready_claim, said

WAITING = claim("a", node="n1", conditions=[said("False", reason=WAITING_FOR_KUBELET)])
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


def names(silence: Silence, *claims: str, now: float) -> list[str]:
    return [pod.name for pod in silence.due([claim(name, node="n1") for name in claims], now=now)]


def test_a_claim_that_no_agent_reports_on_has_its_pod_touched_more_and_more_rarely() -> None:
    silence = Silence()
    touched = [now for now in range(100) if names(silence, "a", now=float(now))]
    assert touched == [SILENCE, 3 * SILENCE, 7 * SILENCE, 15 * SILENCE]


def test_a_report_in_time_spares_the_touch_and_the_next_silence_counts_anew() -> None:
    silence = Silence()
    assert names(silence, "a", now=0) == []
    assert names(silence, now=SILENCE - 1) == []
    assert names(silence, "a", now=SILENCE) == []
    assert silence.next_in(now=SILENCE) == SILENCE
    assert names(silence, "a", now=2 * SILENCE) == ["pod-a"]


def test_each_silent_claim_has_its_own_time() -> None:
    silence = Silence()
    names(silence, "a", now=0)
    names(silence, "a", "b", now=1)
    assert names(silence, "a", "b", now=SILENCE) == ["pod-a"]
    assert silence.next_in(now=SILENCE) == 1
    assert Silence().next_in(now=0) is None

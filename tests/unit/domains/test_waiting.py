from __future__ import annotations

from typing import Any

import pytest

from interlace.api.resource import ResourceClaim
from interlace.domains.cliques import Plan
from interlace.domains.membership import membership
from interlace.domains.reasons import WaitReason
from interlace.domains.status import node_rows
from interlace.domains.waiting import PATIENCE, Patience, Wait, waits
from tests.unit.domains.objects import claim, clique, ready_claim, said


def waiting(*claims: ResourceClaim, rows: list[tuple[str, int, str]] | None = None, **plan: Any) -> list[Wait]:
    found = membership(claims, namespace="team")
    nodes = node_rows(found.members, cliques=[clique(rows or [])], fabricless=[], places={})
    return waits(found, plan=Plan(drafts={}, **plan), nodes=nodes, domain="team/cd")


def test_a_pod_with_its_channel_waits_for_nothing() -> None:
    assert waiting(ready_claim("a", node="n1"), rows=[("n1", 0, "10.0.0.1")]) == []


@pytest.mark.parametrize(
    ("one", "plan", "reason", "says"),
    [
        (claim("a"), {}, WaitReason.ALLOCATION, "team/a is not allocated"),
        (claim("a", node="n1"), {"no_agent": ("n1",)}, WaitReason.AGENT, "node n1 has published no ResourceSlice"),
        (claim("a", node="n1"), {"no_host": ("n1",)}, WaitReason.HOST, "Node n1 has no imex-host Pod"),
        (claim("a", node="n1"), {"full": {"n1": "rack.0"}}, WaitReason.CLIQUE_FULL, "rack.0 already holds"),
        (claim("a", node="n1"), {}, WaitReason.CLIQUE, "not in the IMEX node map"),
        (
            claim("a", node="n1", namespace="other"),
            {},
            WaitReason.WRONG_NAMESPACE,
            "other/a asks for a channel of ComputeDomain team/cd",
        ),
    ],
)
def test_each_wait_names_what_is_missing(one: ResourceClaim, plan: Any, reason: WaitReason, says: str) -> None:
    (found,) = waiting(one, **plan)
    assert found.reason is reason
    assert says in found.message


def test_a_pod_on_a_member_node_waits_for_imex_with_the_agents_words() -> None:
    rows = [("n1", 0, "10.0.0.1")]
    (silent,) = waiting(claim("a", node="n1"), rows=rows)
    assert silent.reason is WaitReason.PREPARE
    assert "its agent has not reported on ResourceClaim team/a" in silent.message
    failing = claim("a", node="n1", conditions=[said("False", reason="CrashLoop", message="it ended 5 times.")])
    (told,) = waiting(failing, rows=rows)
    assert told.reason is WaitReason.IMEX
    assert told.message == "IMEX on node n1 is not ready (CrashLoop): it ended 5 times."


def test_the_reason_that_needs_a_person_comes_first() -> None:
    found = waiting(claim("a"), claim("b", node="n1"), claim("c", node="n1", namespace="other"))
    assert [wait.reason for wait in found] == [
        WaitReason.WRONG_NAMESPACE,
        WaitReason.ALLOCATION,
        WaitReason.CLIQUE,
    ]


def test_a_claim_that_is_being_deleted_waits_for_nothing() -> None:
    assert waiting(claim("a", node="n1", deleting=True)) == []


class TestPatience:
    def wait(self, name: str = "a", reason: WaitReason = WaitReason.HOST) -> Wait:
        return Wait(claim=claim(name), reason=reason, message="why")

    def test_nobody_hears_of_a_short_wait(self) -> None:
        patience = Patience()
        assert patience.due([self.wait()], now=0) == []
        assert patience.due([self.wait()], now=PATIENCE - 0.01) == []
        assert patience.due([], now=PATIENCE) == []

    def test_a_long_wait_is_told_once(self) -> None:
        patience = Patience()
        patience.due([self.wait()], now=0)
        assert patience.next_in(now=1) == PATIENCE - 1
        assert patience.due([self.wait()], now=PATIENCE) == [self.wait()]
        assert patience.due([self.wait()], now=PATIENCE + 1) == []
        assert patience.next_in(now=PATIENCE + 1) is None

    def test_another_reason_is_another_wait(self) -> None:
        patience = Patience()
        patience.due([self.wait()], now=0)
        patience.due([self.wait()], now=PATIENCE)
        imex = self.wait(reason=WaitReason.IMEX)
        assert patience.due([imex], now=PATIENCE + 1) == []
        assert patience.due([imex], now=2 * PATIENCE + 1) == [imex]

    def test_a_wait_that_comes_back_is_told_again(self) -> None:
        patience = Patience()
        for begin in (0, 100):
            assert patience.due([self.wait()], now=begin) == []
            assert patience.due([self.wait()], now=begin + PATIENCE) == [self.wait()]
            assert patience.due([], now=begin + PATIENCE + 1) == []

    def test_what_waiting_never_ends_is_told_at_once(self) -> None:
        full = self.wait(reason=WaitReason.CLIQUE_FULL)
        assert Patience().due([full], now=0) == [full]

    def test_each_claim_has_its_own_time(self) -> None:
        patience = Patience()
        patience.due([self.wait("a")], now=0)
        patience.due([self.wait("a"), self.wait("b")], now=3)
        assert [w.claim.metadata.name for w in patience.due([self.wait("a"), self.wait("b")], now=5)] == ["a"]
        assert patience.next_in(now=5) == 3

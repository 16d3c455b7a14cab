"""How long Pods wait although there is room, and what room is."""

from __future__ import annotations

import pytest

from bench.scale.room import PLACES, Clock, Places, Waiting, with_room


def _places(
    *nodes: str, claims: dict[str, list[str]] | None = None, prepared: dict[str, frozenset[str]] | None = None
) -> Places:
    return Places(nodes=frozenset(nodes), claims=claims or {}, prepared=prepared or {})


def _waiting(pod: str, *, domain: str = "a", made: str = "1", node: str = "") -> Waiting:
    return Waiting(pod=pod, domain=domain, made=made, node=node)


def test_a_free_node_is_room_for_one_pod_and_the_oldest_has_it() -> None:
    waiting = [_waiting("young", made="2"), _waiting("old", made="1")]
    assert with_room(waiting, _places("n1")) == {"old"}


def test_a_free_node_is_room_for_a_pod_of_each_domain() -> None:
    waiting = [_waiting("p", domain="a"), _waiting("q", domain="b")]
    assert with_room(waiting, _places("n1")) == {"p", "q"}


def test_a_node_of_another_domain_is_no_room() -> None:
    assert with_room([_waiting("p")], _places("n1", claims={"n1": ["b"]})) == set()


def test_a_node_whose_kubelet_has_not_ended_another_domain_is_no_room() -> None:
    assert with_room([_waiting("p")], _places("n1", prepared={"n1": frozenset({"b"})})) == set()


@pytest.mark.parametrize("held", [1, PLACES - 1, PLACES])
def test_a_node_of_the_own_domain_has_eight_places(held: int) -> None:
    waiting = [_waiting(f"p{number}") for number in range(PLACES)]
    found = with_room(waiting, _places("n1", claims={"n1": ["a"] * held}))
    assert len(found) == PLACES - held


def test_a_pod_with_a_node_has_room_as_soon_as_the_last_tenant_has_ended() -> None:
    bound = _waiting("p", node="n1")
    claims = {"n1": ["a"]}
    assert with_room([bound], _places("n1", claims=claims, prepared={"n1": frozenset({"b"})})) == set()
    assert with_room([bound], _places("n1", claims=claims)) == {"p"}


def test_the_time_starts_anew_when_the_room_was_taken() -> None:
    clock = Clock()
    clock.look({"p"}, now=0.0)
    clock.look(set(), now=3.0)
    clock.look({"p"}, now=10.0)
    assert clock.open(now=11.0) == [(1.0, "p")]
    clock.look(set(), now=12.0)
    assert clock.longest == [(3.0, "p"), (2.0, "p")]

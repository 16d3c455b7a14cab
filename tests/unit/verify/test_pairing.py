"""Schedules of pairs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.verify.pairing import match, matchings, on_rails, tournament, two_levels


def _names(count: int, prefix: str = "n") -> list[str]:
    return [f"{prefix}{number:03d}" for number in range(count)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 40))
def test_a_tournament_has_every_pair_once_and_no_node_twice_a_round(count: int) -> None:
    rounds = tournament(_names(count))
    played = Counter(each for step in rounds for each in step)
    assert len(played) == count * (count - 1) // 2
    assert set(played.values()) <= {1}
    for step in rounds:
        assert len({node for each in step for node in each.nodes}) == 2 * len(step)


def test_eighteen_nodes_take_seventeen_rounds_and_153_pairs() -> None:
    rounds = tournament(_names(18))
    assert (len(rounds), sum(map(len, rounds))) == (17, 153)
    assert len(tournament(_names(17))) == 17


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 30), st.integers(1, 8), st.integers(0, 1000))
def test_matchings_are_perfect_distinct_and_the_same_for_a_seed(count: int, wanted: int, seed: int) -> None:
    rounds = matchings(_names(count), count=wanted, seed=seed)
    assert rounds == matchings(reversed(_names(count)), count=wanted, seed=seed)
    assert all(len(step) == count // 2 for step in rounds)
    assert len(rounds) == min(wanted, count - 1 + count % 2)
    played = [each for step in rounds for each in step]
    assert len(set(played)) == len(played)


def test_another_seed_makes_other_matchings() -> None:
    assert matchings(_names(18), count=3, seed=1) != matchings(_names(18), count=3, seed=2)


def test_cliques_play_inside_first_and_then_every_two_of_them_once() -> None:
    cliques = {"a": _names(4, "a"), "b": _names(4, "b"), "c": _names(2, "c")}
    rounds = two_levels(cliques, seed=3)
    for step in rounds:
        assert len({node for each in step for node in each.nodes}) == 2 * len(step)
        assert len({each.level for each in step}) == 1
    played = [each for step in rounds for each in step]
    levels = [each.level for each in played]
    assert levels == sorted(levels, reverse=True)
    assert sum(each.level == "inside" for each in played) == 6 + 6 + 1
    between = Counter(each.a[0] + each.b[0] for each in played if each.level == "between")
    assert between == {"ab": 4, "ac": 2, "bc": 2}


def test_rails_are_measured_one_after_the_other() -> None:
    rounds = on_rails(tournament(["x", "y"]), rails=4)
    assert [step[0].rail for step in rounds] == [0, 1, 2, 3]


def test_a_match_is_the_same_whoever_is_named_first() -> None:
    assert match("y", "x") == match("x", "y")
    assert match("y", "x").partner("x") == "y"

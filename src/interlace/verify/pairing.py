"""Which nodes measure with which, and in what order: tournaments, random matchings, two levels, rails.

Pure, and a function of its arguments alone: the same nodes and the same seed give the same schedule, so that what was
interrupted can be continued. Invariant: in one round no node has two partners (on one rail).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

Level = Literal["inside", "between"]
"""``inside`` one clique (or a cluster without cliques), or ``between`` two: they have bandwidths of their own."""


class Match(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Two nodes that measure together; ``a`` sorts before ``b``."""

    a: str
    b: str
    rail: int | None = None
    """Index of the one GPU and NIC on both nodes; None: all of them."""
    level: Level = "inside"

    @property
    def nodes(self) -> tuple[str, str]:
        """Both."""
        return (self.a, self.b)

    def partner(self, node: str) -> str:
        """The other one."""
        return self.b if node == self.a else self.a


Round = tuple[Match, ...]
"""Matches that may run at once."""


def match(one: str, other: str, *, rail: int | None = None, level: Level = "inside") -> Match:
    """A match of two nodes, in whatever order they are given."""
    return Match(a=min(one, other), b=max(one, other), rail=rail, level=level)


def tournament(nodes: Iterable[str]) -> tuple[Round, ...]:
    """Every pair once: N - 1 rounds for an even number of nodes, N with a bye in each for an odd one.

    The circle method of 1-factorisation: one place stays, the others turn.
    """
    return tuple(tuple(match(one, other) for one, other in pairs) for pairs in _circle(sorted(set(nodes))))


def matchings(nodes: Iterable[str], *, count: int, seed: int) -> tuple[Round, ...]:
    """``count`` random perfect matchings, without a pair twice while there are others; odd numbers have a bye each.

    Finds slow nodes with N/2 pairs a round: a good node has only bad partners with a probability of about
    (d / (N - 1)) ** count for d bad nodes. It cannot tell all links.
    """
    shuffled = sorted(set(nodes))
    random.Random(seed).shuffle(shuffled)
    rounds = [tuple(match(one, other) for one, other in pairs) for pairs in _circle(shuffled)]
    random.Random(seed + 1).shuffle(rounds)
    return tuple(rounds[:count])


def two_levels(cliques: Mapping[str, Sequence[str]], *, seed: int) -> tuple[Round, ...]:
    """A tournament in every clique, all side by side; then a tournament of cliques, one random matching for each pair.

    Where two cliques differ in size, as many nodes of the larger one as the smaller one has take part.
    """
    inside = [tournament(members) for _, members in sorted(cliques.items())]
    rounds = [
        tuple(each for schedule in inside if step < len(schedule) for each in schedule[step])
        for step in range(max((len(schedule) for schedule in inside), default=0))
    ]
    dice = random.Random(seed)
    for pairs in _circle(sorted(cliques)):
        found: list[Match] = []
        for one, other in pairs:
            left, right = sorted(cliques[one]), sorted(cliques[other])
            dice.shuffle(left)
            dice.shuffle(right)
            found += [match(*pair, level="between") for pair in zip(left, right, strict=False)]
        rounds.append(tuple(found))
    return tuple(each for each in rounds if each)


def on_rails(rounds: Iterable[Round], *, rails: int) -> tuple[Round, ...]:
    """Each round once for each rail: one GPU and one NIC of the same index on both nodes."""
    return tuple(
        tuple(msgspec.structs.replace(each, rail=rail) for each in step) for step in rounds for rail in range(rails)
    )


def _circle(places: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Rounds of the circle method over ``places``; who would meet the empty place of an odd number rests."""
    ring: list[str | None] = [*places, None] if len(places) % 2 else [*places]
    size = len(ring)
    rounds = []
    for step in range(size - 1):
        order = [size - 1, *((step + shift) % (size - 1) for shift in range(size - 1))]
        # The fixed place meets the one on top, the others face each other across the ring.
        faced = [(order[0], order[1]), *((order[1 + shift], order[size - shift]) for shift in range(1, size // 2))]
        pairs = [(ring[one], ring[other]) for one, other in faced]
        rounds.append([(one, other) for one, other in pairs if one is not None and other is not None])
    return [each for each in rounds if each]

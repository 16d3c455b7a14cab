"""Bandwidths of pairs of nodes as a report takes them, with racks, cliques and what is to be expected.

The documented JSON of ``--pairs`` (docs/reports.md); fields that a report does not need are passed over. Invariant:
every pair names two different nodes that are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median
from typing import Final, Literal

import msgspec

from interlace.verify.verdict import Verdict, worst

Level = Literal["inside", "between"]
Outcome = Literal["measured", "failed", "wrong data"]

_TYPICAL_PASS: Final = 0.80
_TYPICAL_DEGRADED: Final = 0.65
"""Shares of the median pair that stand in for a band where there is none."""


class MatrixError(ValueError):
    """The document is none of pairs; the message says where."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node and its place; empty is unknown."""

    name: str
    rack: str = ""
    clique: str = ""
    share: float | None = None
    """Of what is typical that the node reaches with its partners; None where nobody can tell."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """What two nodes reached together."""

    a: str
    b: str
    rail: int | None = None
    """Index of the one GPU and NIC of both nodes; None: all of them."""
    level: Level = "inside"
    outcome: Outcome = "measured"
    busbw: float | None = None
    """GB/s; None if nothing was measured."""
    note: str = ""


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What a pair of one level should reach, in GB/s."""

    bound: float
    passes: float = msgspec.field(name="pass")
    degraded: float
    source: str = ""
    """Where the figures come from, in a clause."""

    def __post_init__(self) -> None:
        if not 0 < self.degraded <= self.passes <= self.bound < math.inf:
            raise ValueError("degraded, pass and bound must rise and be above 0")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something bad, with its name."""

    kind: Literal["node", "link", "pair", "uplink", "all"]
    names: tuple[str, ...]
    text: str
    """A sentence without its full stop."""
    fault: Literal["slow", "fails", "wrong data"] = "slow"
    rail: int | None = None
    """None: all rails, or measured together."""


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All pairs of one measurement."""

    nodes: tuple[Node, ...]
    pairs: tuple[Pair, ...] = ()
    findings: tuple[Finding, ...] = ()
    expected: dict[Level, Expected] = {}
    verdict: Verdict | None = None
    cause: str = ""
    remedy: str = ""
    simulated: bool = False
    """No hardware was measured."""

    def rails(self) -> tuple[int | None, ...]:
        """What was measured one by one, or None alone."""
        return tuple(sorted({pair.rail for pair in self.pairs}, key=lambda rail: -1 if rail is None else rail))

    def ordered(self) -> tuple[Node, ...]:
        """By rack, clique and name."""
        return tuple(sorted(self.nodes, key=lambda node: (node.rack, node.clique, node.name)))

    def expectation(self, level: Level) -> Expected | None:
        """What pairs of the level should reach: as the document says, else shares of their median."""
        if level in self.expected:
            return self.expected[level]
        reached = [pair.busbw for pair in self.pairs if pair.level == level and pair.busbw and pair.busbw > 0]
        if not reached:
            return None
        typical = median(reached)
        passes, degraded = _TYPICAL_PASS * typical, _TYPICAL_DEGRADED * typical
        return Expected(bound=typical, passes=passes, degraded=degraded, source="shares of the median pair")

    def conclusion(self) -> tuple[Verdict, str]:
        """The document's verdict and cause, else what its findings and bands say."""
        if self.verdict is not None:
            return self.verdict, self.cause or "no cause was given"
        if not self.pairs:
            return "cannot tell", "no pair of nodes was measured"
        verdict = worst(self._verdicts())
        told = "; ".join(each.text for each in self.findings)
        if told:
            return verdict, told
        told = {
            "pass": f"all {len(self.pairs)} pairs of {len(self.nodes)} nodes reach what they should",
            "cannot tell": "pairs were measured, and nobody said what they should reach",
        }.get(verdict, "pairs are slower than they should be, and no node or link stands out")
        return verdict, told

    def _verdicts(self) -> Iterator[Verdict]:
        yield from ("degraded" if each.fault == "slow" else "fail" for each in self.findings)
        for pair in self.pairs:
            expected = self.expected.get(pair.level)
            if pair.outcome != "measured":
                yield "fail"
            elif expected is None or pair.busbw is None:
                yield "cannot tell"
            elif pair.busbw < expected.degraded:
                yield "fail"
            else:
                yield "degraded" if pair.busbw < expected.passes else "pass"


def decode(data: bytes) -> Matrix:
    """The document's matrix. Raises MatrixError."""
    try:
        matrix = msgspec.json.decode(data, type=Matrix)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise MatrixError(f"this is no document of pairs: {error}") from None
    names = [node.name for node in matrix.nodes]
    known = set(names)
    if len(known) != len(names):
        raise MatrixError("a node is listed twice")
    for number, pair in enumerate(matrix.pairs):
        stranger = next((name for name in (pair.a, pair.b) if name not in known), None)
        if stranger is not None:
            raise MatrixError(f"pairs[{number}] names {stranger!r}, which is not among the nodes")
        if pair.a == pair.b:
            raise MatrixError(f"pairs[{number}] names {pair.a!r} twice")
        if pair.outcome == "measured" and not (pair.busbw is not None and 0 <= pair.busbw < math.inf):
            raise MatrixError(f"pairs[{number}] was measured and has no busbw")
    return matrix

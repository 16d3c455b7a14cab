"""Pairs without a bandwidth: whose fault it is that measurements fail, or that data come out wrong.

Pure. Invariant: a node is named only if at least two of its partners saw it and most did; a failure that did not come
back when the pair was measured again is nobody's. Wrong data are never forgiven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from interlace.verify.measurement import Reading
from interlace.verify.pairing import Match

Fault = Literal["slow", "fails", "wrong data"]

_LEAST: Final = 2
"""Partners that must have seen it."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A node, a link, or a pair of which that cannot be told."""

    names: tuple[str, ...]
    fault: Fault
    kind: Literal["node", "link", "pair"]
    rail: int | None = None
    note: str = ""
    matches: int = 0
    """In which it was seen."""


def failures(matches: Mapping[Match, Sequence[Reading]]) -> tuple[Failure, ...]:
    """Who is to blame for readings without a bandwidth; wrong data first."""
    wrong = {
        match: next(each.note for each in taken if each.outcome == "wrong data")
        for match, taken in matches.items()
        if any(each.outcome == "wrong data" for each in taken)
    }
    failed = {
        match: taken[-1].note
        for match, taken in matches.items()
        if match not in wrong and all(each.outcome == "failed" for each in taken)
    }
    return (*_blame(wrong, matches, fault="wrong data"), *_blame(failed, matches, fault="fails"))


def _blame(bad: Mapping[Match, str], matches: Mapping[Match, Sequence[Reading]], *, fault: Fault) -> Sequence[Failure]:
    """The node that most bad matches share, as long as there is one; what is left are links and pairs."""
    left = dict(bad)
    nodes: list[Failure] = []
    named: set[str] = set()
    while left:
        seen: dict[str, list[Match]] = {}
        for match in left:
            for node in match.nodes:
                seen.setdefault(node, []).append(match)
        node = max(sorted(seen), key=lambda each: len(seen[each]))
        partners = {match.partner(node) for match in seen[node]}
        all_partners = {match.partner(node) for match in matches if node in match.nodes} - named
        if len(partners) < _LEAST or 2 * len(partners) <= len(all_partners):
            break
        rails = {match.rail for match in seen[node]}
        nodes.append(
            Failure(
                names=(node,),
                fault=fault,
                kind="node",
                rail=rails.pop() if len(rails) == 1 else None,
                note=left[seen[node][0]],
                matches=len(seen[node]),
            )
        )
        named.add(node)
        left = {match: note for match, note in left.items() if node not in match.nodes}
    return (*nodes, *(_pair(match, note, matches, bad=bad, fault=fault) for match, note in sorted(left.items())))


def _pair(
    match: Match, note: str, matches: Mapping[Match, Sequence[Reading]], *, bad: Mapping[Match, str], fault: Fault
) -> Failure:
    """A link if both its nodes are well with others, else a pair."""
    good = all(any(node in each.nodes and each not in bad for each in matches) for node in match.nodes)
    kind: Literal["link", "pair"] = "link" if good else "pair"
    return Failure(names=match.nodes, fault=fault, kind=kind, rail=match.rail, note=note, matches=1)

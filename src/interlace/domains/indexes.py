"""Which slot of the IMEX node map a node gets.

IMEX fixes its own id when it starts and peers keep handles that name it, so: an index never
changes while the node belongs to the clique; a node that comes back gets its old index if it is
free; anyone else gets one that was never used, and only then the one that has been unused longest.
Two nodes never hold the same index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class Indexes(msgspec.Struct, frozen=True, kw_only=True):
    """Indexes of one clique: those held now and those that nodes left behind."""

    held: Mapping[str, int] = {}
    left: tuple[tuple[str, int], ...] = ()
    """``(node, index)`` of nodes that left and whose index nobody took since, longest ago first."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of ``assign``."""

    indexes: Indexes
    refused: tuple[str, ...] = ()
    """Nodes for which no slot was free."""


def assign(before: Indexes, *, nodes: Iterable[str], slots: int) -> Assignment:
    """Indexes after the clique's nodes have become ``nodes``; ``slots`` bounds new indexes, not held ones."""
    wanted = set(nodes)
    held = {node: index for node, index in before.held.items() if node in wanted}
    gone = sorted((index, node) for node, index in before.held.items() if node not in wanted)
    left = {index: node for node, index in before.left} | dict(gone)
    arrivals = sorted(wanted - held.keys())
    old = {node: index for index, node in left.items() if index < slots}
    for node in arrivals:
        if node in old:
            held[node] = old[node]
            del left[old[node]]
    used = {*held.values(), *left}
    fresh = [index for index in range(slots) if index not in used]
    free = iter([*fresh, *(index for index in left if index < slots)])
    refused = []
    for node in arrivals:
        if node in held:
            continue
        index = next(free, None)
        if index is None:
            refused.append(node)
        else:
            held[node] = index
            left.pop(index, None)
    return Assignment(
        indexes=Indexes(held=held, left=tuple((node, index) for index, node in left.items())),
        refused=tuple(refused),
    )

"""Words of findings that depend on numbers."""

from __future__ import annotations


def counted(count: int, noun: str, *, plural: str = "") -> str:
    """``1 node``, ``2 nodes``; ``plural`` where it is not the noun with an s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"

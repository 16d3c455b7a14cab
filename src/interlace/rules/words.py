"""Words of findings: those that depend on numbers, and those that somebody else wrote."""

from __future__ import annotations


def counted(count: int, noun: str, *, plural: str = "") -> str:
    """``1 node``, ``2 nodes``; ``plural`` where it is not the noun with an s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def plain(text: str) -> str:
    """One line, in which what a terminal would take for a command is made visible."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in " ".join(text.split()))

"""What a page of shell consists of, as far as gcloud commands depend on it.

Invariant: words stand as they do in the page; nothing is expanded, and no loop is unrolled.
"""

from __future__ import annotations

import msgspec

from interlace.gke.gcloud.words import Word


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A gcloud command. ``before``: variables set for it alone. ``inside``: the condition that it stands in, if any."""

    words: tuple[Word, ...]
    line: int
    last: int
    before: tuple[tuple[str, Word], ...] = ()
    inside: str = ""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A variable of the page. ``word``: None for what is no plain value, an array. ``inside``: as of a command."""

    name: str
    word: Word | None
    line: int
    inside: str = ""


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """``for NAME in WORDS``."""

    name: str
    words: tuple[Word, ...]
    body: tuple[Statement, ...]
    line: int


Statement = Command | Assignment | Loop


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something odd in the page, ``kind`` as in ``lexer``, or ``stray-flag``: a flag where a command should begin."""

    kind: str
    line: int
    text: str


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    statements: tuple[Statement, ...]
    notes: tuple[Note, ...]

"""Fills the holes of a page in: brackets around optional flags, variables that it never sets, words to be replaced.

Invariant: every hole that is filled or left out is a finding; a page without holes comes out as it went in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from interlace.gke.gcloud.faults import REPLACEABLE, finding, placeholder
from interlace.gke.gcloud.interpreting import Invocation, invocations
from interlace.gke.gcloud.settings import region_of
from interlace.gke.gcloud.statements import Page
from interlace.gke.gcloud.table import table
from interlace.rules.finding import Finding

_PROJECT: Final = frozenset({"PROJECT", "PROJECT_ID", "PROJECT_NAME", "GOOGLE_CLOUD_PROJECT", "PREFIX"})
_REGION: Final = frozenset({"REGION", "COMPUTE_REGION", "CLUSTER_REGION"})
_PLACE: Final = frozenset(
    {"ZONE", "LOCATION", "COMPUTE_ZONE", "CLUSTER_ZONE", "CONTROL_PLANE_LOCATION", "CLUSTER_LOCATION"}
)

_NAMES: Final = frozenset({"--cluster", "--network", "--subnetwork", "--additional-node-network"})
"""Flags that are not left out for a word that nobody can replace: it becomes a name."""


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """``original``: the commands as they stand in the page, with holes. ``unsaid``: names made up for holes;
    ``incomplete``: lines of commands without a flag whose value nobody can say.
    """

    invocations: list[Invocation]
    original: list[Invocation]
    findings: list[Finding]
    unsaid: frozenset[str]
    incomplete: frozenset[int]


def filled(page: Page, *, project: str, location: str, known: Mapping[str, str]) -> Filled:
    """The commands of a page with values in all places where one can be said. Raises PageError."""
    unset: dict[str, int] = {}
    original = invocations(page, known=known, project=project, unset=unset)
    found = [
        finding(
            "variable", line, f"the variable {name} is used and never set",
            f"Set it before its first use, {name}=..., or give it with --set {name}=VALUE",
        )
        for name, line in unset.items()
    ]  # fmt: skip
    values = dict.fromkeys(_PROJECT, project) | {name: known[name] for name in known}
    if location:
        values |= {name: region_of(location) for name in _REGION - known.keys()}
        values |= dict.fromkeys(_PLACE - known.keys(), location)
    holes = _Holes(values)
    result = []
    for each in original:
        words = _without_brackets(each, found)
        result.append(msgspec.structs.replace(each, words=tuple(holes.fill(words, line=each.line))))
    for word, places in holes.seen.items():
        line, where = places[0]
        others = f" and {len(places) - 1} more times" if len(places) > 1 else ""
        if word not in unset:
            found.append(
                finding(
                    "placeholder", line, f"{word} in {where}{others} is a word to be replaced, not a value",
                    f"Write the value, or give it with --set {word}=VALUE",
                )
            )  # fmt: skip
    return Filled(
        invocations=result,
        original=original,
        findings=found,
        unsaid=frozenset(holes.unsaid),
        incomplete=frozenset(holes.incomplete),
    )


def _without_brackets(each: Invocation, found: list[Finding]) -> list[str]:
    """The words without brackets around optional flags, and without these flags if a value of theirs is a hole."""
    words: list[str] = []
    optional: list[str] | None = None
    for word in each.words:
        if optional is None and re.match(r"\[--?[a-z]", word):
            optional = []
            word = word[1:]  # noqa: PLW2901  the bracket is no part of it
        if optional is None:
            words.append(word)
            continue
        closed = word.endswith("]")
        optional.append(word.removesuffix("]"))
        if closed:
            words += _optional(optional, each.line, found)
            optional = None
    return words + (_optional(optional, each.line, found) if optional else [])


def _optional(flags: list[str], line: int, found: list[Finding]) -> list[str]:
    whole = not any(placeholder(each) for each in flags)
    found.append(
        finding(
            "bracket", line,
            f"the brackets around {' '.join(flags)} are no part of a command, and gcloud refuses them",
            "Take the brackets out, or the flags between them" + ("" if whole else "; here the flags are left out"),
        )
    )  # fmt: skip
    return flags if whole else []


class _Holes:
    """Fills words to be replaced. ``seen``: word to the lines and values that it stands in."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.seen: dict[str, list[tuple[int, str]]] = {}
        self.unsaid: set[str] = set()
        self.incomplete: set[int] = set()

    def fill(self, words: list[str], *, line: int) -> list[str]:
        """The words with values; a flag is left out whose value nobody can say."""
        result: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            flag, equals, value = word.partition("=")
            if not flag.startswith("--"):
                result.append(self._filled(word, word, line))
            elif flag not in REPLACEABLE:
                result.append(word)
                if not equals and rest and table().takes_value(flag):
                    result.append(rest.pop(0))
            elif equals:
                filled = self._value(flag, value, word, line)
                result += [] if filled is None else [f"{flag}={filled}"]
            elif rest and placeholder(rest[0]) and not rest[0].startswith("-"):
                value = rest.pop(0)
                filled = self._value(flag, value, f"{flag} {value}", line)
                result += [] if filled is None else [flag, filled]
            else:
                result.append(word)
        return result

    def _value(self, flag: str, value: str, where: str, line: int) -> str | None:
        filled = self._filled(value, where, line)
        if flag in _NAMES or not any(name in filled and name not in value for name in self.unsaid):
            return filled
        self.incomplete.add(line)
        return None

    def _filled(self, text: str, where: str, line: int) -> str:
        while hole := placeholder(text):
            self.seen.setdefault(hole, []).append((line, where))
            name = hole.lower().replace("_", "-")
            if hole not in self.values:
                self.unsaid.add(name)
            text = text.replace(hole, self.values.get(hole, name))
        return text


def with_values(words: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """The words with the values that were given for words to be replaced; nothing else changes."""
    return tuple(_given(word, values) for word in words)


def _given(word: str, values: Mapping[str, str]) -> str:
    hole = placeholder(word)
    return word.replace(hole, values[hole]) if hole in values and placeholder(values[hole]) != hole else word

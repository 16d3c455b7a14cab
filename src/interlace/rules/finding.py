"""A finding: what one rule has to say about one place. The form that every check prints, as text and as JSON.

Invariant: a finding stands alone: its text names object, value and cause, its remedy says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from interlace.rules.words import counted, plain

Severity = Literal["error", "warning", "info"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""Worst first."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``rule``: id of the rule. ``pointer``: JSON pointer into the document that was checked."""

    rule: str
    severity: Severity
    pointer: str
    text: str
    remedy: str


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity among them; None if there are none."""
    found = {each.severity for each in findings}
    return next((severity for severity in SEVERITIES if severity in found), None)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first, otherwise as they came, each once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: SEVERITIES.index(each.severity)))


def lines(findings: Iterable[Finding]) -> Iterator[str]:
    """The findings for people, worst first: two lines each, and a last one that counts them."""
    counts = dict.fromkeys(SEVERITIES, 0)
    for each in ordered(findings):
        counts[each.severity] += 1
        yield f"{each.severity:<7} {each.rule}  {plain(each.pointer or '/')}"
        yield f"        {_sentence(each.text)}"
        if each.remedy:
            yield f"        To do: {_sentence(each.remedy)}"
    yield (
        ", ".join(_counted(counts[severity], severity) for severity in SEVERITIES if counts[severity]) or "no findings"
    )


def _sentence(text: str) -> str:
    """One line that ends with a stop."""
    line = plain(text)
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _counted(count: int, severity: Severity) -> str:
    return counted(count, severity, plural="info" if severity == "info" else "")

"""Rules and the registry that runs them, for any kind of subject. Pure.

A rule is a function from a subject to breaches, with an id (``object.fault``: ``network.mtu``), a severity, a cause
and a remedy. Invariants: ids are unique; a rule that needs what was not read is reported as skipped, never as passed;
findings come in the order in which rules were registered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from interlace.rules.finding import Finding, Severity

S = TypeVar("S")

_ID: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One place where a rule does not hold. ``cause``, ``remedy`` and ``severity`` replace those of the rule.

    Texts are one sentence each, without the full stop. The finding says what is wrong, and then the cause.
    """

    pointer: str
    text: str
    cause: str = ""
    remedy: str = ""
    severity: Severity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[S]):
    """``cause``: what happens where the rule does not hold, and why. ``needs``: parts of the subject that it reads."""

    id: str
    severity: Severity
    cause: str
    remedy: str
    needs: tuple[str, ...]
    judge: Callable[[S], Iterable[Breach]]

    def findings(self, subject: S) -> Iterator[Finding]:
        """What it has to say about ``subject``."""
        for breach in self.judge(subject):
            yield Finding(
                rule=self.id,
                severity=breach.severity or self.severity,
                pointer=breach.pointer,
                text=f"{breach.text.rstrip('.')}. {_capital(breach.cause or self.cause)}",
                remedy=breach.remedy or self.remedy,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``skipped``: part of the subject that was not read, to the ids of the rules that needed it."""

    findings: tuple[Finding, ...]
    skipped: Mapping[str, tuple[str, ...]]


class Rules(Generic[S]):
    """The rules for one kind of subject, in the order in which they were registered."""

    def __init__(self, *parts: Rules[S]) -> None:
        """A registry that begins with the rules of ``parts``."""
        self._rules: dict[str, Rule[S]] = {}
        for part in parts:
            for rule in part:
                self._add(rule)

    def __iter__(self) -> Iterator[Rule[S]]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    def __getitem__(self, id: str) -> Rule[S]:
        return self._rules[id]

    def rule(
        self, id: str, *, severity: Severity = "error", cause: str, remedy: str, needs: tuple[str, ...] = ()
    ) -> Callable[[Callable[[S], Iterable[Breach]]], Callable[[S], Iterable[Breach]]]:
        """Register the decorated function. Raises ValueError if the id is taken or no id, or a text is missing."""

        def register(judge: Callable[[S], Iterable[Breach]]) -> Callable[[S], Iterable[Breach]]:
            self._add(Rule(id=id, severity=severity, cause=cause, remedy=remedy, needs=needs, judge=judge))
            return judge

        return register

    def check(self, subject: S, *, unread: Collection[str] = ()) -> Outcome:
        """Judge ``subject``; rules that need one of ``unread`` are skipped."""
        found: list[Finding] = []
        skipped: dict[str, list[str]] = {}
        for rule in self:
            missing = [need for need in rule.needs if need in unread]
            for need in missing:
                skipped.setdefault(need, []).append(rule.id)
            if not missing:
                found += rule.findings(subject)
        return Outcome(findings=tuple(found), skipped={need: tuple(ids) for need, ids in skipped.items()})

    def _add(self, rule: Rule[S]) -> None:
        if not _ID.match(rule.id):
            raise ValueError(f"{rule.id!r} is no id of a rule; write it like network.mtu")
        if rule.id in self._rules:
            raise ValueError(f"there is a rule {rule.id} already")
        if not rule.cause or not rule.remedy:
            raise ValueError(f"rule {rule.id} needs a cause and a remedy")
        self._rules[rule.id] = rule


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

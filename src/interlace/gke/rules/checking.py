"""Runs the rules over what there is: one call for each source of a state.

Invariant: a part that was not read is named in an info finding together with the rules that it kept from being
judged; nothing passes in silence.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from interlace.gke.observed.state import State
from interlace.gke.rules import (
    cluster,
    firewalls,
    networks,
    nics,
    nodes,
    objects,
    placement,
    pools,
    preflight,
    quotas,
    reservations,
)
from interlace.gke.rules.subject import SECTIONS, Subject
from interlace.rules.finding import Finding, ordered
from interlace.rules.rule import Rules

RULES: Final[Rules[Subject]] = Rules(
    preflight.RULES,
    cluster.RULES,
    pools.RULES,
    nics.RULES,
    networks.RULES,
    firewalls.RULES,
    placement.RULES,
    reservations.RULES,
    quotas.RULES,
    objects.RULES,
    nodes.RULES,
)
"""All rules, in the order in which they are shown."""

NOT_OBSERVED: Final = "state.not-observed"


def check_observed(state: State, *, now: datetime | None = None) -> tuple[Finding, ...]:
    """Findings about what there is in a project, worst first."""
    subject = Subject(state=state, now=now)
    outcome = RULES.check(subject, unread=subject.unread)
    unread = (_unread(section, outcome.skipped[section]) for section in SECTIONS if section in outcome.skipped)
    return ordered((*outcome.findings, *unread))


def _unread(section: str, rules: tuple[str, ...]) -> Finding:
    return Finding(
        rule=NOT_OBSERVED,
        severity="info",
        pointer=f"/{section}",
        text=f"{section} was not observed, so nothing is known about {', '.join(rules)}",
        remedy="give a bundle that has it, or ask for the right to read it",
    )

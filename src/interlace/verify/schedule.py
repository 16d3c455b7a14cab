"""What is still to be measured: the schedule first, then again what looks bad, until nothing is in doubt.

Pure. What a stage looks at again follows from the readings of the stages before it alone. So whoever is interrupted in
the middle of one and goes on later asks for the same measurements, and none twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from interlace.verify.attribution import suspects
from interlace.verify.measurement import Reading
from interlace.verify.pairing import Match, Round, match, matchings, on_rails, tournament, two_levels
from interlace.verify.polish import PARTNERS

REPEATS: Final = (2, 4)
"""How often a suspect pair is measured again in each later stage."""
_SUSPECT: Final = (2.0, 2.5)
"""Standard errors from which a pair is suspect after each stage."""
_SWAPS: Final = 3
"""Partners that a node of a suspect pair meets in addition, where it has met few."""

Mode = Literal["tournament", "quick"]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured; the same plan gives the same schedule."""

    nodes: tuple[str, ...]
    cliques: Mapping[str, str] = {}
    """Of each node; none or one for all: one level."""
    quick: int = 0
    """Random matchings instead of a tournament; 0: the tournament."""
    rails: int = 0
    """GPUs and NICs of a node that are measured one by one; 0: all together."""
    seed: int = 0
    noise: float = 0.0
    """Relative noise that is assumed where it cannot be estimated."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement to be made."""

    match: Match
    stage: int = 0
    attempt: int = 0

    @property
    def key(self) -> tuple[Match, int, int]:
        """As of its reading."""
        return (self.match, self.stage, self.attempt)


def rounds(plan: Plan) -> tuple[Round, ...]:
    """The schedule of the first stage."""
    cliques: dict[str, list[str]] = {}
    for node in plan.nodes:
        cliques.setdefault(plan.cliques.get(node, ""), []).append(node)
    if plan.quick:
        found = matchings(plan.nodes, count=plan.quick, seed=plan.seed)
        found = tuple(tuple(match(*each.nodes, level=_level(plan, each)) for each in step) for step in found)
    else:
        found = two_levels(cliques, seed=plan.seed) if len(cliques) > 1 else tournament(plan.nodes)
    return on_rails(found, rails=plan.rails) if plan.rails else found


def missing(
    plan: Plan, readings: Collection[Reading], *, without: Collection[tuple[Match, int, int]] = ()
) -> tuple[Task, ...]:
    """What is to be measured next, in this order; empty when all is known. Those of one stage may run at once.

    Later stages are asked for when the one before is complete. ``without``: keys of tasks that cannot be had now.
    """
    done = {each.key for each in readings} | set(without)
    tasks: Sequence[Task] = [Task(match=each) for step in rounds(plan) for each in step]
    for stage in range(1 + len(REPEATS)):
        if stage:
            tasks = _again(plan, [each for each in readings if each.stage < stage], stage=stage)
        left = tuple(each for each in tasks if each.key not in done)
        if left:
            return left
    return ()


def next_tasks(tasks: Iterable[Task], *, busy: Collection[str], room: int) -> tuple[Task, ...]:
    """Of ``tasks`` those that may start now: at most ``room``, none with a node that is ``busy`` or has another."""
    held = set(busy)
    chosen: list[Task] = []
    for task in tasks:
        if len(chosen) >= room:
            break
        if not held & set(task.match.nodes):
            chosen.append(task)
            held |= set(task.match.nodes)
    return tuple(chosen)


def _again(plan: Plan, readings: Sequence[Reading], *, stage: int) -> list[Task]:
    again = suspects(readings, cliques=plan.cliques, noise=plan.noise, sure=_SUSPECT[stage - 1])
    if stage > 1:  # what was cleared stays so
        looked = {each.match for each in readings if each.stage == stage - 1}
        again = tuple(each for each in again if each in looked)
    tasks = [Task(match=each, stage=stage, attempt=attempt) for attempt in range(REPEATS[stage - 1]) for each in again]
    met = {each.match for each in readings}
    return [*tasks, *(Task(match=each, stage=stage) for each in _swapped(plan, again, met))] if stage == 1 else tasks


def _swapped(plan: Plan, again: Iterable[Match], met: Collection[Match]) -> list[Match]:
    """New partners for the nodes of suspect pairs that have met too few to be told from their links."""
    again = list(again)
    suspected = {node for each in again for node in each.nodes}
    partners: dict[tuple[str, int | None], set[str]] = {}
    for each in met:
        for node in each.nodes:
            partners.setdefault((node, each.rail), set()).add(each.partner(node))
    found: list[Match] = []
    for each in again:
        for node in each.nodes:
            old = partners[node, each.rail]
            if len(old) > PARTNERS:
                continue
            others = [other for other in sorted(plan.nodes) if other != node and other not in old]
            others.sort(key=lambda other: (other in suspected, plan.cliques.get(other) != plan.cliques.get(node)))
            for other in others[:_SWAPS]:
                new = match(node, other, rail=each.rail)
                partners[node, each.rail].add(other)
                partners[other, each.rail].add(node)
                found.append(msgspec.structs.replace(new, level=_level(plan, new)))
    return found


def _level(plan: Plan, pair: Match) -> Literal["inside", "between"]:
    one, other = (plan.cliques.get(node, "") for node in pair.nodes)
    return "inside" if one == other else "between"

"""Plays a plan: many pairs at once, within a budget of GPU-hours, each reading kept as soon as it is there.

Invariant: a node is never in two measurements; a measurement that was begun is either kept or made again another
time; when this is cancelled, every measurement cleans up behind itself first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from statistics import mean
from typing import Literal

import msgspec

from interlace.verify.measurement import Reading
from interlace.verify.pairing import Match
from interlace.verify.schedule import Plan, Task, missing, next_tasks


class NotMeasuredError(Exception):
    """A measurement that could not be made now, and says nothing about its nodes: they were busy, for instance."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What may be spent."""

    gpus: int
    """That one measurement holds."""
    seconds: float
    """That one is thought to take, until the first ones are over."""
    gpu_hours: float | None = None
    """None: no limit."""

    def spent(self, readings: Sequence[Reading]) -> float:
        """GPU-hours."""
        return sum(each.seconds for each in readings) * self.gpus / 3600

    def allows(self, readings: Sequence[Reading], *, running: int) -> bool:
        """Whether one more may be begun while ``running`` are."""
        if self.gpu_hours is None:
            return True
        known = [each.seconds for each in readings if each.seconds]
        each = mean(known) if known else self.seconds
        return self.spent(readings) + (running + 1) * each * self.gpus / 3600 <= self.gpu_hours


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """How far a tournament is."""

    stage: int
    done: int
    """Measurements of all stages."""
    left: int
    """Of this stage."""
    running: tuple[Match, ...]
    latest: Reading | None = None


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """How a tournament ended."""

    stopped: Literal["", "budget"] = ""
    left: int = 0
    """Measurements of the stage that was begun which are still to be made."""
    not_measured: tuple[tuple[Task, str], ...] = ()
    """Those that could not be made, and why."""


async def play(
    plan: Plan,
    *,
    readings: Sequence[Reading],
    measure: Callable[[Task], Awaitable[Reading]],
    keep: Callable[[Reading], None],
    budget: Budget,
    at_once: int,
    tell: Callable[[Standings], None] = lambda _standings: None,
) -> Played:
    """Measure what ``plan`` asks for beyond ``readings``, which ``keep`` makes longer.

    ``measure`` makes one reading, or raises NotMeasuredError; its other errors end everything, in a group.
    """
    skipped: dict[tuple[Match, int, int], tuple[Task, str]] = {}
    running: dict[tuple[Match, int, int], Task] = {}
    changed = asyncio.Event()

    async def one(task: Task) -> None:
        try:
            reading = await measure(task)
        except NotMeasuredError as error:
            skipped[task.key] = (task, str(error))
        else:
            keep(reading)
            told(reading)
        finally:
            running.pop(task.key, None)
            changed.set()

    def told(latest: Reading | None) -> None:
        matches = tuple(task.match for task in running.values())
        stage = latest.stage if latest is not None else queue[0].stage if queue else 0
        tell(Standings(stage=stage, done=len(readings), left=len(queue), running=matches, latest=latest))

    queue: list[Task] = []
    async with asyncio.TaskGroup() as group:
        while True:
            changed.clear()
            if not queue and not running:
                queue = list(missing(plan, readings, without=skipped))
                if not queue:
                    return Played(not_measured=tuple(skipped.values()))
                told(None)
            busy = {node for task in running.values() for node in task.match.nodes}
            chosen = next_tasks(queue, busy=busy, room=at_once - len(running))
            for task in chosen:
                if not budget.allows(readings, running=len(running)):
                    break
                queue.remove(task)
                running[task.key] = task
                group.create_task(one(task))
            if not running:
                return Played(stopped="budget", left=len(queue), not_measured=tuple(skipped.values()))
            await changed.wait()

"""How far a run is: which tasks run, what Google says about them, and how long the rest will take.

Invariant: the estimate is the longest chain of what is left, with what Google itself reports where it does; it is shown
as an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from interlace.gke.applying import Watcher
from interlace.gke.durations import expected
from interlace.gke.operations import Operation
from interlace.gke.plan import Task
from interlace.gke.resource import Key
from interlace.gke.scheduling import Ending, critical_path

_LEAST = 0.1
"""Part of the expected time that a task that is overdue still counts for."""


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """``share`` from 0 to 1: what Google reports, else the part of the expected time that has gone by."""

    task: Task
    seconds: float
    share: float
    detail: str = ""
    operation: str = ""


class Progress(Watcher):
    """Of the tasks of ``work``. ``changed`` is called after each change."""

    def __init__(
        self,
        work: Mapping[Task, AbstractSet[Task]],
        *,
        clock: Callable[[], float],
        changed: Callable[[Ending[Task] | Task], None] = lambda _: None,
    ) -> None:
        self._work = work
        self._clock = clock
        self._changed = changed
        self._began: dict[Task, float] = {}
        self._said: dict[Key, Operation] = {}
        self.endings: dict[Task, Ending[Task]] = {}

    def began(self, task: Task) -> None:
        self._began[task] = self._clock()
        self._changed(task)

    def told(self, key: Key, operation: Operation) -> None:
        self._said[key] = operation

    def ended(self, ending: Ending[Task]) -> None:
        self.endings[ending.key] = ending
        self._changed(ending)

    @property
    def total(self) -> int:
        return len(self._work)

    @property
    def done(self) -> int:
        return sum(ending.state == "done" for ending in self.endings.values())

    def running(self) -> tuple[Running, ...]:
        """Tasks that have begun and not ended, longest first."""
        now = self._clock()
        found = []
        for task, began in self._began.items():
            if task not in self.endings:
                seconds, said = now - began, self._said.get(task.key)
                guess = min(seconds / expected(task.key.kind), 1 - _LEAST)
                share = said.progress if said is not None and said.progress is not None else guess
                found.append(
                    Running(
                        task=task,
                        seconds=seconds,
                        share=share,
                        detail=said.detail if said else "",
                        operation=said.name if said else "",
                    )
                )
        return tuple(sorted(found, key=lambda each: -each.seconds))

    def waiting(self) -> tuple[Task, ...]:
        """Tasks that have not begun."""
        return tuple(task for task in self._work if task not in self._began and task not in self.endings)

    def seconds_left(self) -> float:
        """An estimate of what is still to come."""
        shares = {each.task: each.share for each in self.running()}
        left = {
            task: 0.0 if task in self.endings else expected(task.key.kind) * max(1 - shares.get(task, 0.0), _LEAST)
            for task in self._work
        }
        return critical_path(self._work, left)

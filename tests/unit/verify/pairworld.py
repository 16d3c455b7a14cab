"""A world of pairs for tests: bandwidths with faults and heavy-tailed noise, the same for the same seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from interlace.verify.measurement import Reading
from interlace.verify.pairing import Match
from interlace.verify.schedule import Plan, Task, missing

NODES = tuple(f"node-{number:02d}" for number in range(18))


@dataclass(frozen=True, kw_only=True)
class World:
    """What each measurement gives; ``slow`` has the share that is left of a node, a pair, or a node's rail."""

    seed: int = 0
    slow: Mapping[Any, float] = field(default_factory=dict)
    spread: tuple[float, float] = (0.05, 0.10)
    """Standard deviation of ln(busbw), drawn for each pair between these."""
    fails: Callable[[Match], bool] = lambda _match: False
    wrong: Callable[[Match], bool] = lambda _match: False

    def measure(self, task: Task) -> Reading:
        """Student's t with three degrees of freedom, scaled to the pair's standard deviation."""
        match = task.match
        done: dict[str, Any] = {"match": match, "stage": task.stage, "attempt": task.attempt, "seconds": 40.0}
        if self.fails(match):
            return Reading(**done, outcome="failed", note="the peer does not answer")
        if self.wrong(match):
            return Reading(**done, outcome="wrong data", note="3 wrong elements")
        sigma = random.Random(f"{self.seed} {match}").uniform(*self.spread)
        dice = random.Random(f"{self.seed} {task.key}")
        tail = dice.gauss(0, 1) / math.sqrt(sum(dice.gauss(0, 1) ** 2 for _ in range(3)))
        busbw = 160.0 * self.slow.get(match.nodes, 1.0)
        for node in match.nodes:
            busbw *= self.slow.get(node, 1.0)
            if match.rail is not None:
                busbw *= self.slow.get((node, match.rail), 1.0)
        return Reading(**done, busbw=busbw * math.exp(sigma * tail), size=1 << 30)

    def readings(self, plan: Plan) -> list[Reading]:
        """All that the schedule asks for."""
        found: list[Reading] = []
        while tasks := missing(plan, found):
            found += [self.measure(task) for task in tasks]
        return found

"""Random jobs: created, scaled, deleted, their Pods deleted, by force too; the same ones for the same seed.

What is chosen depends on the seed and on the number of the step alone, not on what the cluster did meanwhile, as
far as that is possible: which Pods are hit is chosen among those that are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

from bench.scale.jobs import Jobs
from interlace.kube.errors import Conflict

Step = Literal["create", "scale", "delete", "recreate", "domain", "pods", "force"]
STEPS: Final[Sequence[Step]] = ("create", "scale", "scale", "delete", "recreate", "domain", "pods", "force", "force")
RACE_STEPS: Final[Sequence[Step]] = ("scale", "scale", "pods", "force", "force")
"""Those that leave the domains there."""
HIT: Final = 4
"""Most Pods deleted in one step."""


class Churn:
    """Shakes the jobs ``names``; ``done`` counts the steps by kind."""

    def __init__(
        self, jobs: Jobs, *, names: Sequence[str], most: int, seed: int, gpus: int, steps: Sequence[Step] = STEPS
    ) -> None:
        self.done: Counter[str] = Counter()
        self._jobs = jobs
        self._names = names
        self._most = most
        self._chance = random.Random(seed)
        self._gpus = gpus
        self._steps = steps

    async def run(self, *, seconds: float, pause: float) -> None:
        """One step after the other; ``pause`` is the mean time between two, in seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await self.step()
            rest = self._chance.expovariate(1 / pause)
            await asyncio.sleep(min(rest, 4 * pause, max(0.0, end - time.monotonic())))

    async def step(self) -> None:
        """One of them."""
        name, step = self._chance.choice(self._names), self._chance.choice(self._steps)
        count, hit, jobs = self._chance.randint(1, self._most), self._chance.randint(1, HIT), self._jobs
        there = jobs.domain(name)
        if there is None and step in {"scale", "delete", "domain", "pods", "force"}:
            step = "create"
        self.done[step] += 1
        match step:
            case "create":
                with contextlib.suppress(Conflict):  # it is on its way out
                    await jobs.start(name, count=count, gpus=self._gpus)
            case "scale":
                await jobs.scale(name, count=count, gpus=self._gpus)
            case "delete":
                await jobs.remove(name)
            case "recreate":
                await jobs.remove(name)
                with contextlib.suppress(Conflict):
                    await jobs.start(name, count=count, gpus=self._gpus)
            case "domain":
                await jobs.remove_domain(name)
            case _:
                found = sorted(jobs.pods(name), key=lambda pod: pod.metadata.name)
                for pod in self._chance.sample(found, min(len(found), hit)):
                    await jobs.remove_pod(pod, force=step == "force")

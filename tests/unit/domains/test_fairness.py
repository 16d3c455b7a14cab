"""The queue of the controller between domains: nobody waits for a neighbour's flood or failures. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from interlace.domains.settings import ControllerSettings
from interlace.kube.queue import WorkQueue, work

pytestmark = pytest.mark.looptime

PASS = 0.02
"""Seconds that a pass over a domain takes here."""
NEIGHBOURS = 60
FLOOD = 10_000
"""Changes of one domain, one a millisecond."""


class Passes:
    """What the controller's workers did, on a queue like its own."""

    def __init__(self) -> None:
        self.queue: WorkQueue[str] = WorkQueue(name="domains")
        self.asked: dict[str, float] = {}
        self.waited: list[float] = []
        self.count: dict[str, int] = {}

    def change(self, domain: str) -> None:
        """Something of the domain changed."""
        self.asked.setdefault(domain, asyncio.get_running_loop().time())
        self.queue.add(domain)

    async def reconcile(self, domain: str) -> None:
        began = asyncio.get_running_loop().time()
        if (asked := self.asked.pop(domain, None)) is not None and domain.startswith("neighbour"):
            self.waited.append(began - asked)
        self.count[domain] = self.count.get(domain, 0) + 1
        await asyncio.sleep(PASS)
        if domain.startswith("poisoned"):
            raise ValueError("a pass over it always fails")


@asynccontextmanager
async def controller(workers: int) -> AsyncIterator[Passes]:
    passes = Passes()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work(passes.queue, passes.reconcile, workers=workers))
        try:
            yield passes
        finally:
            task.cancel()


def workers() -> int:
    return ControllerSettings(identity="x").workers


async def test_a_flood_of_one_domain_is_worked_as_one_key_and_costs_neighbours_one_pass() -> None:
    async with controller(workers()) as passes:
        for number in range(FLOOD):
            passes.change("noisy")
            if number % 100 == 0:
                passes.change(f"neighbour-{number // 100 % NEIGHBOURS}")
            if number % 10 == 9:  # many at once, as a watch delivers them
                await asyncio.sleep(0.01)
    assert len(passes.waited) == FLOOD // 100
    assert max(passes.waited) <= PASS
    assert passes.count["noisy"] <= FLOOD * 0.001 / PASS + 1


async def test_domains_whose_passes_always_fail_cost_neighbours_one_pass_each_at_most() -> None:
    poisoned = 20
    async with controller(workers()) as passes:
        for number in range(poisoned):
            passes.change(f"poisoned-{number}")
        for number in range(600):
            passes.change(f"neighbour-{number % NEIGHBOURS}")
            await asyncio.sleep(0.1)
    assert len(passes.waited) == 600
    assert max(passes.waited) <= PASS * (poisoned / workers() + 1)
    # Back-off: a minute of failures is a few tries, not one after the other.
    assert all(tries <= 12 for domain, tries in passes.count.items() if domain.startswith("poisoned"))


async def test_all_neighbours_at_once_wait_for_each_other_and_not_for_the_flood() -> None:
    async with controller(workers()) as passes:
        passes.change("noisy")
        for number in range(NEIGHBOURS):
            passes.change(f"neighbour-{number}")
        for _ in range(1_000):
            passes.change("noisy")
            await asyncio.sleep(0.001)
    assert len(passes.waited) == NEIGHBOURS
    # A hot key takes its turn behind those that came before it, so at most one of each round is its.
    assert max(passes.waited) <= PASS * (NEIGHBOURS / workers() + 1) * 1.5

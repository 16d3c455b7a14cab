"""Order, bounds and endings of work that depends on other work."""

from __future__ import annotations

import asyncio
from graphlib import CycleError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.gke.scheduling import Failure, critical_path, run_in_order

pytestmark = pytest.mark.looptime


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, set[int]], set[int], int]:
    """A graph without cycles, what fails in it, and how much may run at once."""
    size = draw(st.integers(1, 8))
    needs = {key: draw(st.sets(st.integers(0, key - 1), max_size=3)) if key else set() for key in range(size)}
    return needs, draw(st.sets(st.integers(0, size - 1), max_size=2)), draw(st.integers(1, 4))


@settings(max_examples=80, deadline=None)
@given(graph=graphs())
def test_all_work_ends_once_in_order_and_within_bounds(graph: tuple[dict[int, set[int]], set[int], int]) -> None:
    needs, bad, parallel = graph
    begun: list[int] = []
    finished: list[int] = []
    running = 0

    async def work(key: int) -> None:
        nonlocal running
        assert needs[key] <= set(finished)
        running += 1
        assert running <= parallel
        begun.append(key)
        for _ in range(key % 3 + 1):
            await asyncio.sleep(0)
        running -= 1
        if key in bad:
            raise Failure(ValueError(str(key)))
        finished.append(key)

    endings = asyncio.run(run_in_order(needs, work, parallel=parallel))

    def hopeless(key: int) -> bool:
        return any(other in bad or hopeless(other) for other in needs[key])

    assert set(endings) == set(needs)
    assert len(begun) == len(set(begun))
    for key, ending in endings.items():
        expected = "blocked" if hopeless(key) else "failed" if key in bad else "done"
        assert ending.state == expected
        if expected == "blocked":
            assert ending.because in bad


async def test_independent_work_runs_at_once() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def work(_: int) -> None:
        await asyncio.sleep(1)

    await run_in_order({key: set() for key in range(10)}, work, parallel=5)
    assert loop.time() - began == pytest.approx(2, abs=0.01)


async def test_a_fault_of_our_own_ends_everything() -> None:
    ended: list[int] = []

    async def work(key: int) -> None:
        try:
            await asyncio.sleep(key)
        finally:
            ended.append(key)
        if key == 1:
            raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await run_in_order({1: set(), 50: set()}, work, parallel=2)
    assert caught.group_contains(ZeroDivisionError)
    assert sorted(ended) == [1, 50]


async def test_cancelling_cancels_what_runs_and_starts_nothing() -> None:
    begun: list[int] = []

    async def work(key: int) -> None:
        begun.append(key)
        await asyncio.sleep(100)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await run_in_order({1: set(), 2: {1}}, work, parallel=2)
    assert begun == [1]


async def test_a_cycle_is_an_error_before_anything_begins() -> None:
    async def work(_: int) -> None:
        raise AssertionError

    with pytest.raises(CycleError):
        await run_in_order({1: {2}, 2: {1}}, work, parallel=1)


def test_the_longest_chain_counts() -> None:
    assert critical_path({1: set(), 2: {1}, 3: set()}, {1: 2.0, 2: 3.0, 3: 4.0}) == 5.0
    assert critical_path({}, {}) == 0.0

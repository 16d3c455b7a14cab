"""Tokens in virtual time: the burst at once, the rest at the rate, in order."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.kube.bucket import TokenBucket
from tests.unit.kube.support import now, run_virtual, running, wait_for


@settings(deadline=None, max_examples=50)
@given(
    rate=st.sampled_from([0.5, 3.0, 50.0]),
    burst=st.integers(1, 10),
    pauses=st.lists(st.sampled_from([0.0, 0.1, 2.0]), max_size=30),
)
def test_in_no_interval_pass_more_than_burst_and_rate_allow(rate: float, burst: int, pauses: list[float]) -> None:
    passed: list[tuple[float, int]] = []

    async def take(bucket: TokenBucket, number: int) -> None:
        await bucket.take()
        passed.append((now(), number))

    async def scenario() -> None:
        bucket = TokenBucket(rate=rate, burst=burst)
        async with asyncio.TaskGroup() as group:
            for number, pause in enumerate(pauses):
                await asyncio.sleep(pause)
                group.create_task(take(bucket, number))

    run_virtual(scenario)
    assert [number for _, number in passed] == list(range(len(pauses))), "first come, first served"
    times = [time for time, _ in passed]
    for first in range(len(times)):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + rate * (times[last] - times[first]) + 0.001


@pytest.mark.looptime
async def test_a_cancelled_wait_gives_its_token_back() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    await bucket.take()
    async with running(bucket.take()) as (task,):
        await asyncio.sleep(0.5)
        task.cancel()
        await wait_for(task)
    await bucket.take()
    assert now() == pytest.approx(1.0, abs=0.01)


@pytest.mark.looptime
async def test_try_take_never_waits() -> None:
    bucket = TokenBucket(rate=1, burst=2)
    assert [bucket.try_take() for _ in range(3)] == [True, True, False]
    await asyncio.sleep(1.1)
    assert [bucket.try_take() for _ in range(2)] == [True, False]


@pytest.mark.looptime
async def test_no_rate_is_no_limit() -> None:
    bucket = TokenBucket(rate=0, burst=1)
    for _ in range(1000):
        await bucket.take()
    assert bucket.try_take()
    assert now() == 0


def test_an_empty_bucket_is_refused() -> None:
    with pytest.raises(ValueError, match="a burst of at least 1, not 0"):
        TokenBucket(rate=1, burst=0)

"""Keys in, one worker a key, nothing lost: in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.kube.backoff import backoff
from interlace.kube.errors import Conflict, TooManyRequests, api_error
from interlace.kube.meters import Registry
from interlace.kube.metrics import Metrics
from interlace.kube.queue import WorkQueue, work
from tests.unit.kube.support import now, run_virtual, running, wait_for

pytestmark = pytest.mark.looptime


async def test_a_key_added_twice_is_taken_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert len(queue) == 2
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_added_while_it_is_worked_is_taken_once_more_afterwards() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0, "no second worker gets it meanwhile"
    queue.done(key)
    assert await queue.get() == "a"
    queue.done("a")
    assert queue.idle


async def test_the_earliest_of_several_delays_wins_and_only_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 5)
    await queue.get()
    assert now() == pytest.approx(3, abs=0.001)
    queue.done("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(100):
            await queue.get()


async def test_a_delay_that_ends_while_the_key_is_worked_counts_as_an_addition() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add_after("a", 1)
    await queue.get()
    await asyncio.sleep(2)
    queue.done("a")
    assert await queue.get() == "a"


async def test_no_delay_is_an_addition() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0)
    assert len(queue) == 1


async def test_the_back_off_of_a_key_doubles_to_its_cap_and_starts_anew_after_success() -> None:
    queue: WorkQueue[str] = WorkQueue(base=1.0, cap=8.0)
    waits = []
    for _ in range(6):
        before = now()
        queue.retry("a")
        await queue.get()
        waits.append(now() - before)
        queue.done("a")
    for wait, step in zip(waits, [1, 2, 4, 8, 8, 8], strict=True):
        assert step / 2 <= wait <= step + 0.001
    assert queue.failures("a") == 6
    queue.forget("a")
    before = now()
    queue.retry("a")
    await queue.get()
    assert now() - before <= 1.001


async def test_the_back_off_of_one_key_does_not_delay_another() -> None:
    queue: WorkQueue[str] = WorkQueue(base=10.0)
    queue.retry("a")
    queue.retry("b")
    queue.add("c")
    assert await queue.get() == "c"
    assert now() < 1


async def test_fresh_keys_go_before_those_of_timers_which_still_get_their_share() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for index in range(4):
        queue.add_after(f"late{index}", 1)
    await asyncio.sleep(2)
    for index in range(12):
        queue.add(f"fresh{index}")
    taken = [await queue.get() for _ in range(16)]
    assert taken[:3] == ["fresh0", "fresh1", "fresh2"]
    assert [index for index, key in enumerate(taken) if key.startswith("late")] == [3, 7, 11, 15]


async def test_a_late_key_that_is_asked_for_afresh_moves_to_the_front() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 1)
    queue.add_after("b", 1)
    await asyncio.sleep(2)
    queue.add("b")
    assert [await queue.get(), await queue.get()] == ["b", "a"]


async def test_a_cancelled_get_loses_no_key() -> None:
    queue: WorkQueue[str] = WorkQueue()

    async def take() -> None:
        await queue.get()

    async with running(take()) as (task,):
        await asyncio.sleep(0)
        queue.add("a")
        task.cancel()
        await wait_for(task)
    if not task.cancelled():  # it had the key already
        queue.done("a")
        queue.add("a")
    assert await queue.get() == "a"


async def test_a_number_returned_means_again_in_so_many_seconds() -> None:
    queue: WorkQueue[str] = WorkQueue()
    times: list[float] = []

    async def reconcile(key: str) -> float | None:
        times.append(now())
        return 30.0 if len(times) < 3 else None

    async with running(work(queue, reconcile, workers=1)):
        queue.add("a")
        await asyncio.sleep(1000)
    assert times == pytest.approx([0, 30, 60], abs=0.01)


async def test_a_failure_is_tried_again_and_does_not_stop_the_worker() -> None:
    queue: WorkQueue[str] = WorkQueue(base=1.0)
    seen: list[str] = []

    async def reconcile(key: str) -> None:
        seen.append(key)
        if seen.count("bad") <= 2 and key == "bad":
            raise RuntimeError("no")

    async with running(work(queue, reconcile, workers=1)):
        queue.add("bad")
        queue.add("good")
        await asyncio.sleep(100)
    assert seen == ["bad", "good", "bad", "bad"]
    assert queue.failures("bad") == 0


async def test_the_servers_own_wait_is_respected_by_the_back_off() -> None:
    queue: WorkQueue[str] = WorkQueue(base=0.1)
    times: list[float] = []

    async def reconcile(key: str) -> None:
        times.append(now())
        if len(times) == 1:
            raise api_error(429, b"", method="POST", path="/x", retry_after=20)

    async with running(work(queue, reconcile, workers=1)):
        queue.add("a")
        await asyncio.sleep(100)
    assert times == pytest.approx([0, 20], abs=0.01)


@pytest.mark.parametrize("named", [3600.0, float("inf")])
async def test_a_wait_of_hours_is_cut_to_the_longest_back_off(named: float) -> None:
    queue: WorkQueue[str] = WorkQueue(cap=60)
    queue.retry("a", at_least=named)
    assert await queue.get() == "a"
    assert now() == pytest.approx(60)


async def test_work_that_takes_too_long_is_cut_and_tried_again() -> None:
    queue: WorkQueue[str] = WorkQueue(base=1.0)
    times: list[float] = []

    async def reconcile(key: str) -> None:
        times.append(now())
        if len(times) == 1:
            await asyncio.Event().wait()

    async with running(work(queue, reconcile, workers=1, limit=10)):
        queue.add("a")
        await asyncio.sleep(100)
    assert len(times) == 2
    assert 10.5 <= times[1] <= 11.1


async def test_cancelling_the_work_cancels_what_is_worked() -> None:
    queue: WorkQueue[str] = WorkQueue()
    started, ended = asyncio.Event(), asyncio.Event()

    async def reconcile(key: str) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with running(work(queue, reconcile, workers=3)) as (task,):
        queue.add("a")
        await started.wait()
        task.cancel()
        await wait_for(task)
        assert task.cancelled()
        assert ended.is_set()
        assert queue.failures("a") == 0


async def test_a_queue_counts_depth_latency_work_and_retries() -> None:
    registry = Registry()
    queue: WorkQueue[str] = WorkQueue(name="pods", base=1.0, metrics=Metrics(registry))

    async def reconcile(key: str) -> None:
        await asyncio.sleep(3)
        if queue.failures(key) == 0:
            raise Conflict("changed", status=409)

    def value(name: str) -> float | None:
        return registry.value(name, queue="pods")

    queue.add("a")
    queue.add("b")
    assert value("interlace_queue_depth") == 2
    async with running(work(queue, reconcile, workers=1)):
        await asyncio.sleep(100)
    assert value("interlace_queue_depth") == 0
    assert value("interlace_queue_retries_total") == 2
    assert value("interlace_queue_latency_seconds_count") == 4
    assert value("interlace_queue_work_seconds_sum") == pytest.approx(12, abs=0.01)


async def test_no_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 worker"):
        await work(WorkQueue[str](), _nothing, workers=0)


@given(st.integers(1, 2000), st.floats(0.001, 10), st.floats(0.001, 1000))
def test_a_back_off_lies_between_half_its_step_and_its_cap(failures: int, base: float, cap: float) -> None:
    wait = backoff(failures, base=base, cap=cap)
    step = min(cap, base * 2.0 ** min(failures - 1, 60))
    assert step / 2 <= wait <= step <= cap


KEYS = st.sampled_from("abc")
ACTIONS = st.one_of(
    st.tuples(st.just("add"), KEYS, st.just(0.0)),
    st.tuples(st.just("later"), KEYS, st.sampled_from([0.5, 1.0, 7.0])),
    st.tuples(st.just("pass"), KEYS, st.sampled_from([0.0, 0.3, 2.0])),
    st.tuples(st.just("fail"), KEYS, st.just(0.0)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTIONS, max_size=30), st.integers(1, 3), st.sampled_from([0.0, 0.1, 1.0]))
def test_whatever_happens_every_added_key_is_worked_after_its_last_addition_and_by_one_worker(
    actions: list[tuple[str, str, float]], workers: int, effort: float
) -> None:
    """``fail`` lets the next work on the key raise; delayed additions count when they are due."""
    working: set[str] = set()
    twice: list[str] = []
    began: dict[str, float] = {}
    added: dict[str, float] = {}
    failing: dict[str, int] = {}

    async def reconcile(key: str) -> None:
        twice.extend({key} & working)
        working.add(key)
        began[key] = now()
        try:
            await asyncio.sleep(effort)
            if failing.get(key, 0):
                failing[key] -= 1
                raise TooManyRequests("no", status=429)
        finally:
            working.discard(key)

    async def scenario() -> None:
        queue: WorkQueue[str] = WorkQueue(base=0.5, cap=4.0)
        last: dict[str, float] = {}
        async with running(work(queue, reconcile, workers=workers)):
            for what, key, seconds in actions:
                if what == "add":
                    queue.add(key)
                    added[key] = now()
                elif what == "later":
                    queue.add_after(key, seconds)
                    # At the latest then; an earlier one may stand for it.
                    last[key] = max(last.get(key, 0.0), now())
                elif what == "fail":
                    failing[key] = failing.get(key, 0) + 1
                else:
                    await asyncio.sleep(seconds)
            await asyncio.sleep(1000)
            assert queue.idle
            assert len(queue) == 0
            assert twice == [], "worked by two at a time"
            for key, when in (added | {k: max(v, added.get(k, 0.0)) for k, v in last.items()}).items():
                assert began.get(key, -1.0) >= when
                assert queue.failures(key) == 0

    run_virtual(scenario)


async def _nothing(key: str) -> None:
    pass

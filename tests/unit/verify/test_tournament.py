"""Playing a plan: never a node twice at once, never beyond the budget, and nothing lost."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec
import pytest

from interlace.fabric.bands import band
from interlace.verify.attribution import attribute
from interlace.verify.measurement import Reading
from interlace.verify.report import matrix
from interlace.verify.schedule import Plan, Task
from interlace.verify.standing import document, stand
from interlace.verify.tournament import Budget, NotMeasuredError, Played, Standings, play
from tests.unit.verify.pairworld import NODES, World

PLAN = Plan(nodes=NODES[:8], noise=0.1)
QUIET = World(spread=(0.01, 0.02))
MINUTE = Budget(gpus=16, seconds=60.0)


class Bench:
    """Measures in virtual time and watches who is busy."""

    def __init__(self, world: World, *, busy: frozenset[str] = frozenset()) -> None:
        self.world = world
        self.unavailable = busy
        self.readings: list[Reading] = []
        self.most = 0
        self._holding: Counter[str] = Counter()

    async def measure(self, task: Task) -> Reading:
        nodes = task.match.nodes
        if self.unavailable & set(nodes):
            raise NotMeasuredError("the node is in use")
        self._holding.update(nodes)
        assert max(self._holding.values()) == 1
        self.most = max(self.most, sum(self._holding.values()) // 2)
        try:
            await asyncio.sleep(60.0)
        finally:
            self._holding.subtract(nodes)
        return self.world.measure(task)

    async def play(self, *, budget: Budget = MINUTE, at_once: int = 4) -> tuple[Played, list[Standings]]:
        told: list[Standings] = []
        played = await play(
            PLAN,
            readings=self.readings,
            measure=self.measure,
            keep=self.readings.append,
            budget=budget,
            at_once=at_once,
            tell=told.append,
        )
        return played, told


@pytest.mark.looptime
async def test_all_pairs_are_measured_with_as_many_at_once_as_there_are_nodes_for() -> None:
    bench = Bench(QUIET)
    began = asyncio.get_running_loop().time()
    played, told = await bench.play()
    assert played == Played()
    assert bench.most == 4
    assert asyncio.get_running_loop().time() - began == pytest.approx(7 * 60)
    assert told[-1].done == len(bench.readings) == 28


@pytest.mark.looptime
async def test_no_more_than_allowed_run_at_once() -> None:
    bench = Bench(QUIET)
    await bench.play(at_once=2)
    assert bench.most == 2


@pytest.mark.looptime
async def test_a_budget_stops_before_it_is_exceeded_and_a_larger_one_goes_on() -> None:
    bench = Bench(QUIET)
    small = Budget(gpus=16, seconds=60.0, gpu_hours=2.0)
    played, _ = await bench.play(budget=small)
    assert played.stopped == "budget"
    assert 0 < small.spent(bench.readings) <= 2.0
    assert played.left == 28 - len(bench.readings)
    before = list(bench.readings)
    played, _ = await bench.play()
    assert played == Played()
    assert bench.readings[: len(before)] == before
    assert max(Counter(each.key for each in bench.readings).values()) == 1


@pytest.mark.looptime
async def test_what_cannot_be_measured_now_is_told_and_blamed_on_nobody() -> None:
    bench = Bench(QUIET, busy=frozenset({"node-03"}))
    played, _ = await bench.play()
    assert len(played.not_measured) == 7
    found = attribute(bench.readings, noise=0.1)
    standing = stand(found, played, bench.readings, bands={})
    assert (standing.verdict, standing.findings) == ("cannot tell", ())
    assert "the node is in use" in standing.cause
    bench.unavailable = frozenset()
    assert (await bench.play())[0] == Played()


@pytest.mark.looptime
async def test_cancelling_ends_all_measurements_and_loses_no_reading() -> None:
    bench = Bench(QUIET)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(90.0):
            await bench.play()
    assert len(bench.readings) == 4
    assert bench.most == 4


@pytest.mark.looptime
async def test_an_error_of_a_measurement_ends_everything() -> None:
    async def measure(_task: Task) -> Reading:
        raise OSError("no server")

    with pytest.raises(ExceptionGroup):
        await play(PLAN, readings=[], measure=measure, keep=lambda _: None, budget=MINUTE, at_once=4)


def test_a_verdict_needs_a_band_to_pass_and_a_finding_to_fail() -> None:
    healthy, row = World(spread=(0.01, 0.02)).readings(PLAN), band("a3-mega", scope="nodes", collective="all_gather")
    assert row is not None
    found = attribute(healthy, noise=0.1)
    assert stand(found, Played(), healthy, bands={}).verdict == "cannot tell"
    assert stand(found, Played(), healthy, bands={"inside": row}).verdict == "pass"
    assert stand(attribute([]), Played(), [], bands={"inside": row}).verdict == "cannot tell"
    slow = World(spread=(0.01, 0.02), slow={"node-01": 0.9}).readings(PLAN)
    assert stand(attribute(slow, noise=0.01), Played(), slow, bands={"inside": row}).verdict == "degraded"
    broken = World(fails=lambda each: "node-01" in each.nodes).readings(PLAN)
    standing = stand(attribute(broken), Played(), broken, bands={"inside": row})
    assert standing.verdict == "fail"
    assert standing.remedy.startswith("Take the node out")


def test_the_document_is_one_that_reports_read() -> None:
    readings = World(slow={"node-01": 0.5}, wrong=lambda each: "node-02" in each.nodes).readings(PLAN)
    found = attribute(readings, noise=0.1)
    standing = stand(found, Played(), readings, bands={})
    row = band("a3-mega", scope="nodes", collective="all_gather")
    assert row is not None
    text = document(standing, found, PLAN, readings, bands={"inside": row}, racks={}, simulated=True, gpu_hours=1.5)
    read = matrix.decode(msgspec.json.encode(text))
    assert (read.verdict, read.simulated) == ("fail", True)
    assert len(read.pairs) == 28
    assert {each.names for each in read.findings} == {("node-01",), ("node-02",)}
    assert read.expected["inside"].passes == 160.0


def test_a_slow_node_is_named_with_what_its_measurements_say() -> None:
    world = World(slow={"node-01": 0.1}, spread=(0.01, 0.02))
    readings = [
        Reading(match=each.match, stage=each.stage, attempt=each.attempt, busbw=each.busbw, note="sockets")
        if "node-01" in each.match.nodes
        else each
        for each in world.readings(PLAN)
    ]
    standing = stand(attribute(readings), Played(), readings, bands={})
    assert [each.note for each in standing.findings] == ["sockets"]

"""Prepare, Unprepare, rows and the host in any order: what must never happen."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlace.imex.order import Order
from interlace.node.errors import Refusal
from tests.unit.node.parts import DOMAIN, OTHER, Bench, a_claim, ref

CLAIMS = {1: DOMAIN, 2: DOMAIN, 3: OTHER, 4: OTHER}
numbers = st.sampled_from(sorted(CLAIMS))
domains = st.sampled_from([DOMAIN, OTHER])


class Node(RuleBasedStateMachine):
    """One node, two domains, four claims."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.calls: dict[int, list[asyncio.Task[Any]]] = {number: [] for number in CLAIMS}
        self.run(self.start())

    async def start(self) -> None:
        self.bench = Bench(self.root, prompt=False, prepare_timeout=3600.0, report_after=3600.0)
        self.bench.api.add(*(a_claim(number, domain=domain) for number, domain in CLAIMS.items()))

    def run(self, coroutine: Any) -> Any:
        """Run it, then everything that can go on."""
        result = self.loop.run_until_complete(coroutine)
        self.loop.run_until_complete(self.settle())
        return result

    async def settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    @rule(number=numbers)
    def kubelet_calls_prepare(self, number: int) -> None:
        async def call() -> None:
            self.calls[number].append(self.loop.create_task(self.bench.preparer.prepare(ref(number))))

        self.run(call())

    @rule(number=numbers)
    def kubelet_gives_up_a_call(self, number: int) -> None:
        async def cancel() -> None:
            for task in self.calls[number][:1]:
                task.cancel()

        self.run(cancel())

    @rule(number=numbers)
    def kubelet_unprepares(self, number: int) -> None:
        self.run(self.bench.preparer.unprepare(ref(number)))
        assert self.bench.checkpoint.get(f"uid-{number}") is None
        assert not any(f"uid-{number}" in name for name in self.bench.specs())
        for task in self.calls[number]:
            assert task.done(), "a Prepare goes on after Unprepare"

    @rule(domain=domains, index=st.integers(0, 3))
    def controller_writes_the_row(self, domain: str, index: int) -> None:
        if domain not in self.bench.state.memberships:
            self.run(self.later(lambda: self.bench.join(domain, index=index)))

    @rule(domain=domains)
    def controller_removes_the_row(self, domain: str) -> None:
        self.run(self.later(lambda: self.bench.leave(domain)))

    @rule()
    @precondition(lambda self: bool(self.bench.link.wanted))
    def host_obeys(self) -> None:
        self.run(self.later(self.bench.link.obey))

    @rule()
    def host_goes_away(self) -> None:
        self.run(self.later(lambda: self.bench.link.say(None)))

    async def later(self, step: Any) -> None:
        step()

    @invariant()
    def answers_are_whole(self) -> None:
        for number, tasks in self.calls.items():
            for task in [task for task in tasks if task.done()]:
                tasks.remove(task)
                if task.cancelled() or task.exception() is not None:
                    assert task.cancelled() or isinstance(task.exception(), Refusal)
                    continue
                held = task.result()
                assert held.completed
                assert held.domain == CLAIMS[number]

    @invariant()
    def prepared_means_spec_and_the_other_way_round(self) -> None:
        prepared = {held.claim.uid for held in self.bench.checkpoint if held.completed}
        assert {f"k8s.compute-domain.nvidia.com-claim_{uid}.json" for uid in prepared} == set(self.bench.specs())

    @invariant()
    def a_node_serves_one_domain(self) -> None:
        assert len({held.domain for held in self.bench.checkpoint if held.completed}) <= 1

    @invariant()
    def imex_is_never_taken_from_under_a_prepared_claim(self) -> None:
        prepared = {held.domain for held in self.bench.checkpoint if held.completed}
        last = self.bench.link.wanted[-1] if self.bench.link.wanted else None
        if prepared:
            assert isinstance(last, Order)
            assert last.domain in prepared

    @invariant()
    def what_the_file_says_is_what_memory_says(self) -> None:
        from interlace.node.checkpoint import decode

        path = self.bench.checkpoint.path
        stored = decode(path.read_bytes())[1] if path.exists() else []
        assert {held.claim.uid: held for held in stored} == {held.claim.uid: held for held in self.bench.checkpoint}

    @invariant()
    def no_call_no_memory(self) -> None:
        waiting = {f"uid-{number}" for number, tasks in self.calls.items() if any(not task.done() for task in tasks)}
        assert set(self.bench.state.waiting) <= waiting
        assert len(self.bench.preparer._turns) <= len(waiting)

    async def end(self) -> None:
        pending = [task for tasks in self.calls.values() for task in tasks]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def teardown(self) -> None:
        try:
            self.loop.run_until_complete(self.end())
        finally:
            self.loop.close()
        shutil.rmtree(self.root)


TestNode = Node.TestCase
TestNode.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.looptime
async def test_a_claim_can_be_prepared_again_after_its_unprepare(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.api.add(a_claim())
    bench.join()
    for _ in range(3):
        await bench.preparer.prepare(ref())
        await bench.preparer.unprepare(ref())
    assert bench.specs() == []

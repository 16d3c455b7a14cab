"""Book-keeping between a decision and its echo: nothing is over-committed and nothing given twice."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from interlace.sim.platform.devicekinds import Allocation, ResourceClaim
from interlace.sim.platform.kinds import Pod
from interlace.sim.platform.scheduling import consumption
from interlace.sim.platform.scheduling.cycle import Offer, Placed, decide
from interlace.sim.platform.scheduling.devices import pools_by_node
from interlace.sim.platform.scheduling.ledger import DeviceLedger, NodeLedger, allocation_of, devices_of
from interlace.sim.platform.scheduling.snapshot import describe
from tests.unit.sim.platform.objects import DRIVER, allocation, claim, device_class, device_slice, node, pod

CHANNEL = (DRIVER, "n", "channel-0")


def body(node_name: str = "n") -> Allocation:
    return msgspec.convert(allocation(node_name), Allocation)


def test_nodes_come_in_natural_order_of_their_names() -> None:
    ledger = NodeLedger()
    for name in ("n-10", "n-9", "m", "n-1"):
        ledger.set_node(node(name))
    assert [entry.name for entry in ledger.snapshot({}).nodes] == ["m", "n-1", "n-9", "n-10"]
    ledger.drop_node("n-9")
    assert [entry.name for entry in ledger.snapshot({}).nodes] == ["m", "n-1", "n-10"]


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    ledger = NodeLedger()
    ledger.set_node(node())
    wants = pod(requests={"cpu": "1"})
    ledger.assume(describe(wants), "n")
    assert ledger.snapshot({}).nodes[0].requested["cpu"] == 1000
    ledger.forget(wants.metadata.uid)
    assert ledger.snapshot({}).nodes[0].requested == {}


def test_an_update_of_a_pod_without_node_does_not_undo_the_decision() -> None:
    ledger = NodeLedger()
    ledger.set_node(node())
    ledger.assume(describe(pod()), "n")
    ledger.set_pod(pod())
    assert ledger.is_placed("uid-a")


def test_a_binding_that_the_watch_has_shown_is_not_forgotten() -> None:
    ledger = NodeLedger()
    ledger.set_node(node())
    ledger.assume(describe(pod()), "n")
    ledger.set_pod(pod(node="n"))
    ledger.forget("uid-a")
    assert ledger.is_placed("uid-a")


def test_pods_are_remembered_while_their_node_is_not_known() -> None:
    ledger = NodeLedger()
    ledger.set_pod(pod(node="n"))
    ledger.set_node(node())
    assert [entry.name for entry in ledger.snapshot({}).nodes[0].pods] == ["a"]


def test_a_reserved_device_is_taken_until_the_decision_is_released() -> None:
    ledger = DeviceLedger()
    ledger.set_claim(claim())
    ledger.reserve("uid-c", body())
    assert ledger.is_pending("uid-c")
    assert CHANNEL in ledger.taken
    ledger.release("uid-c")
    assert not ledger.taken


def test_an_answered_write_counts_before_the_watch_has_shown_it() -> None:
    ledger = DeviceLedger()
    before = claim(version=1)
    ledger.set_claim(before)
    ledger.reserve("uid-c", body())
    written = claim(version=5, allocation=allocation())
    ledger.settle(written)
    assert ledger.newest(before) is written
    ledger.set_claim(claim(version=3))
    assert CHANNEL in ledger.taken
    ledger.set_claim(written)
    ledger.set_claim(claim(version=6))
    assert not ledger.taken


def test_an_echo_that_overtakes_its_answer_leaves_nothing_behind() -> None:
    ledger = DeviceLedger()
    ledger.set_claim(claim(version=1))
    ledger.reserve("uid-c", body())
    written = claim(version=5, allocation=allocation())
    ledger.set_claim(written)
    ledger.settle(written)
    assert not ledger.is_pending("uid-c")
    ledger.set_claim(claim(version=6))
    assert not ledger.taken


def test_a_claim_that_is_gone_holds_nothing() -> None:
    ledger = DeviceLedger()
    ledger.set_claim(claim(allocation=allocation()))
    ledger.drop_claim("uid-c")
    ledger.settle(claim(version=9, allocation=allocation()))
    assert not ledger.taken


def test_administrative_access_holds_nothing() -> None:
    assert devices_of(allocation_of(claim(allocation=allocation(admin=True)))) == ()


@given(st.lists(st.sampled_from(["1", "2"]), max_size=6))
def test_a_device_shared_by_two_claims_is_free_only_when_both_are_gone(order: list[str]) -> None:
    ledger = DeviceLedger()
    for name in ("1", "2"):
        ledger.set_claim(claim(name, allocation=allocation()))
    gone = set()
    for name in order:
        ledger.drop_claim(f"uid-{name}")
        gone.add(name)
    assert (CHANNEL in ledger.taken) == (gone != {"1", "2"})


class Scheduling(RuleBasedStateMachine):
    """Decisions, failing and succeeding writes, late echoes and deletions in any order, on three nodes of two GPUs."""

    pods = Bundle("pods")
    decided = Bundle("decided")
    echoes = Bundle("echoes")

    @initialize()
    def start(self) -> None:
        self.nodes = NodeLedger()
        self.devices = DeviceLedger()
        self.names = ("n-0", "n-1", "n-2")
        for name in self.names:
            self.nodes.set_node(node(name, allocatable={"nvidia.com/gpu": "2"}))
        self.pools = pools_by_node([device_slice(name) for name in self.names])
        self.serial = 0
        self.bound: dict[str, tuple[str, int]] = {}
        self.held: dict[str, tuple[str, str, str]] = {}

    @rule(target=pods, gpus=st.integers(1, 2), with_claim=st.booleans())
    def arrive(self, gpus: int, with_claim: bool) -> tuple[Pod, ResourceClaim | None]:
        self.serial += 1
        name = f"p{self.serial}"
        refs = [{"name": "cd-0", "resourceClaimName": name}] if with_claim else []
        made = pod(name, requests={"nvidia.com/gpu": gpus}, resourceClaims=refs)
        wish = claim(name, version=self.serial) if with_claim else None
        if wish is not None:
            self.devices.set_claim(wish)
        return (made, wish)

    @rule(target=decided, entry=consumes(pods))
    def choose(self, entry: tuple[Pod, ResourceClaim | None]) -> object:
        made, wish = entry
        use = consumption.consider(made, lambda _name: wish, self.devices.is_pending)
        offer = Offer(
            pools=self.pools,
            taken=self.devices.taken,
            classes={"channel": device_class()},
            matches=lambda _expression, _candidate: True,
        )
        answer = decide(describe(made), self.nodes.snapshot({}), demand=use.demand, offer=offer)
        if not isinstance(answer, Placed):
            return multiple()
        self.nodes.assume(describe(made), answer.node)
        if wish is not None:
            self.devices.reserve(wish.metadata.uid, answer.allocations[0])
        return (made, wish, answer)

    @rule(target=echoes, entry=consumes(decided))
    def write(self, entry: tuple[Pod, ResourceClaim | None, Placed]) -> object:
        made, wish, answer = entry
        gpus = describe(made).requests["nvidia.com/gpu"]
        self.bound[made.metadata.uid] = (answer.node, gpus)
        written = None
        if wish is not None:
            self.serial += 1
            written = claim(wish.metadata.name, version=self.serial, allocation=allocation(answer.node))
            self.devices.settle(written)
            self.held[wish.metadata.uid] = devices_of(answer.allocations[0])[0]
        echo = pod(made.metadata.name, node=answer.node, requests={"nvidia.com/gpu": gpus})
        return (echo, written)

    @rule(entry=consumes(decided))
    def fail(self, entry: tuple[Pod, ResourceClaim | None, Placed]) -> None:
        made, wish, _ = entry
        self.nodes.forget(made.metadata.uid)
        if wish is not None:
            self.devices.release(wish.metadata.uid)

    @rule(entry=consumes(echoes), deleted=st.booleans())
    def see(self, entry: tuple[Pod, ResourceClaim | None], deleted: bool) -> None:
        echo, written = entry
        self.nodes.set_pod(echo)
        if written is not None:
            self.devices.set_claim(written)
        if deleted:
            self.nodes.drop_pod(echo.metadata.uid)
            del self.bound[echo.metadata.uid]
            if written is not None:
                self.devices.drop_claim(written.metadata.uid)
                del self.held[written.metadata.uid]

    @invariant()
    def no_node_is_over_committed(self) -> None:
        for name in self.names:
            assert sum(gpus for place, gpus in self.bound.values() if place == name) <= 2
        assert all(entry.requested.get("nvidia.com/gpu", 0) <= 2 for entry in self.nodes.snapshot({}).nodes)

    @invariant()
    def no_device_has_two_owners(self) -> None:
        held = list(self.held.values())
        assert len(held) == len(set(held))
        assert set(held) <= set(self.devices.taken)


TestScheduling = Scheduling.TestCase
TestScheduling.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)

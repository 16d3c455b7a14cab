"""The deciding part: examples in virtual time, then a state machine over every sequence of events."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlace.imex.order import Order, State
from interlace.imex.reasons import Reason
from interlace.imex.supervisor import (
    HEALTHY,
    KILL_PATIENCE,
    LONGEST_PAUSE,
    LOOP,
    READY_PATIENCE,
    RELOAD_WINDOW,
    TERM_PATIENCE,
    Action,
    BecameReady,
    Event,
    Exited,
    Fault,
    Health,
    HostsFailed,
    Kill,
    Model,
    NotStarted,
    Ordered,
    Released,
    Reload,
    Resumed,
    Start,
    Started,
    Terminate,
    Tick,
    WriteHosts,
    describe,
    identity,
    step,
    wake_at,
)
from tests.unit.imex.support import DOMAIN, OTHER_DOMAIN, make_order

CRASH = Fault(reason=Reason.CRASHED, message="it fell over")
ONE = make_order(0, {0: "10.0.0.1"})
TWO = make_order(0, {0: "10.0.0.1", 1: "10.0.0.2"})
OTHER = make_order(0, {0: "10.0.0.1"}, domain=OTHER_DOMAIN)


class Life:
    """Drives the model in virtual time and plays the machine: every Start gives a process."""

    def __init__(self) -> None:
        self.model = Model()
        self.now = 1000.0
        self.pids = itertools.count(1)
        self.actions: list[tuple[float, Action]] = []
        self.startable = True

    def feed(self, event: Event) -> list[Action]:
        done: list[Action] = []
        events = [event]
        while events:
            self.model, actions = step(self.model, events.pop(0), now=self.now)
            for action in actions:
                done.append(action)
                self.actions.append((self.now, action))
                if isinstance(action, Start):
                    assert self.model.process is None, "started beside a living process"
                    failed = NotStarted(Fault(reason=Reason.BINARY_MISSING, message="no program"))
                    events.append(Started(next(self.pids)) if self.startable else failed)
        return done

    def sleep(self, seconds: float) -> list[Action]:
        """Let time pass, with a tick whenever one is due."""
        end, done = self.now + seconds, list[Action]()
        while (due := wake_at(self.model)) is not None and due <= end:
            self.now = max(self.now, due)
            done += self.feed(Tick())
        self.now = end
        return done

    @property
    def pid(self) -> int:
        return self.state.pid

    @property
    def state(self) -> State:
        return describe(self.model)

    def ready(self, order: Order = ONE) -> None:
        self.feed(Ordered(order))
        self.feed(BecameReady(self.pid))
        assert self.state.phase == "Ready"

    def crash(self) -> list[Action]:
        return self.feed(Exited(self.pid, CRASH))


@pytest.fixture
def life() -> Life:
    return Life()


def test_an_order_starts_and_becomes_ready(life: Life) -> None:
    assert life.feed(Ordered(ONE)) == [Start(ONE)]
    assert (life.state.phase, life.state.domain, life.state.index) == ("Starting", DOMAIN, 0)
    life.feed(BecameReady(life.pid))
    assert life.state.phase == "Ready"


def test_the_same_order_again_does_nothing(life: Life) -> None:
    life.ready()
    assert life.feed(Ordered(ONE)) == []
    assert life.sleep(100) == []


def test_another_address_is_a_hosts_write_and_one_reload(life: Life) -> None:
    life.ready()
    assert life.feed(Ordered(TWO)) == [WriteHosts(TWO), Reload()]
    assert life.sleep(100) == []


def test_changes_inside_the_window_are_written_at_once_and_reloaded_once_after_it(life: Life) -> None:
    life.ready()
    life.feed(Ordered(TWO))
    start = life.now
    for number in range(3, 20):
        life.sleep(0.1)
        order = make_order(0, {0: "10.0.0.1", 1: f"10.0.0.{number}"})
        assert life.feed(Ordered(order)) == [WriteHosts(order)]
    assert life.sleep(60) == [Reload()]
    reloads = [time for time, action in life.actions if action == Reload()]
    assert reloads == [start, pytest.approx(start + RELOAD_WINDOW)]


def test_no_reload_before_ready_because_the_signal_would_kill_a_program_without_a_handler(life: Life) -> None:
    life.feed(Ordered(ONE))
    assert life.feed(Ordered(TWO)) == [WriteHosts(TWO)]
    assert life.sleep(5) == []
    assert life.feed(BecameReady(life.pid)) == [Reload()]


@pytest.mark.parametrize(
    "order",
    [OTHER, make_order(1, {1: "10.0.0.1"}), make_order(0, {0: "10.0.0.1"}, config={"SERVER_PORT": "50100"})],
    ids=["domain", "index", "config"],
)
def test_another_domain_index_or_config_is_stop_wait_start(life: Life, order: Order) -> None:
    life.ready()
    assert life.feed(Ordered(order)) == [Terminate()]
    assert life.state.phase == "Starting"
    assert life.state.domain == order.domain
    assert life.sleep(TERM_PATIENCE - 1) == []
    assert life.crash() == [Start(order)]


def test_a_process_that_ignores_term_is_killed_and_until_then_nothing_starts(life: Life) -> None:
    life.ready()
    life.feed(Ordered(OTHER))
    assert life.sleep(TERM_PATIENCE) == [Kill()]
    assert life.state.reason == ""
    assert life.sleep(KILL_PATIENCE) == [Kill()]
    assert (life.state.phase, life.state.reason) == ("Failed", Reason.PROCESS_STUCK)
    assert life.crash() == [Start(OTHER)]
    assert life.state.phase == "Starting"


def test_the_last_of_several_orders_during_a_stop_wins(life: Life) -> None:
    life.ready()
    life.feed(Ordered(OTHER))
    assert life.feed(Ordered(TWO)) == []
    assert life.crash() == [Start(TWO)]
    assert life.state.restarts == 0


def test_a_release_of_the_domain_stops_and_of_another_does_nothing(life: Life) -> None:
    life.ready()
    assert life.feed(Released(OTHER_DOMAIN)) == []
    assert life.feed(Released(DOMAIN)) == [Terminate()]
    assert (life.state.phase, life.state.domain) == ("Stopping", DOMAIN)
    assert life.crash() == []
    assert life.state == State()


def test_a_stale_release_does_not_stop_the_successor(life: Life) -> None:
    life.ready()
    life.feed(Ordered(OTHER))
    life.feed(Released(DOMAIN))
    assert life.crash() == [Start(OTHER)]


def test_crashes_are_restarted_with_growing_pauses_up_to_a_cap(life: Life) -> None:
    life.feed(Ordered(ONE))
    pauses = []
    for _ in range(9):
        life.crash()
        crashed, due = life.now, wake_at(life.model)
        assert due is not None
        assert life.sleep(due - crashed) == [Start(ONE)]
        pauses.append(due - crashed)
    assert pauses == [0.5, 1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    assert life.state.restarts == 9


def test_a_crash_loop_stays_failed_until_ready(life: Life) -> None:
    life.feed(Ordered(ONE))
    seen = []
    for _ in range(LOOP):
        life.crash()
        seen.append(life.state.reason)
        life.sleep(LONGEST_PAUSE)
    assert seen == [Reason.CRASHED, Reason.CRASHED, Reason.CRASH_LOOP]
    assert life.state.phase == "Failed"
    assert "it fell over" in life.state.message
    life.feed(BecameReady(life.pid))
    assert (life.state.phase, life.state.reason) == ("Ready", "")


def test_a_healthy_minute_resets_the_back_off(life: Life) -> None:
    life.ready()
    for _ in range(4):
        life.crash()
        life.sleep(LONGEST_PAUSE)
    life.feed(BecameReady(life.pid))
    life.sleep(HEALTHY)
    life.crash()
    assert wake_at(life.model) == life.now + 0.5


def test_a_missing_program_is_tried_again(life: Life) -> None:
    life.startable = False
    life.feed(Ordered(ONE))
    assert (life.state.phase, life.state.reason) == ("Failed", Reason.BINARY_MISSING)
    assert "install the nvidia-imex package" in life.state.message
    life.startable = True
    assert Start(ONE) in life.sleep(2)


def test_an_order_that_cannot_be_is_failed_for_good_until_a_good_one_comes(life: Life) -> None:
    bad = make_order(0, {0: "10.0.0.1"}, config={"DAEMONIZE": "1"})
    assert life.feed(Ordered(bad)) == []
    assert (life.state.phase, life.state.reason) == ("Failed", Reason.CONFIG_REFUSED)
    assert life.sleep(1000) == []
    assert life.feed(Ordered(ONE)) == [Start(ONE)]


def test_a_bad_order_for_the_running_domain_leaves_it_running_and_says_so(life: Life) -> None:
    life.ready()
    bad = msgspec.structs.replace(TWO, addresses=["nonsense"] * 4)
    assert life.feed(Ordered(bad)) == []
    assert (life.state.phase, life.state.reason) == ("Ready", Reason.ORDER_INVALID)
    life.feed(Ordered(ONE))
    assert life.state.reason == ""


def test_a_bad_order_for_another_domain_ends_the_old_one(life: Life) -> None:
    life.ready()
    bad = msgspec.structs.replace(OTHER, index=9)
    assert life.feed(Ordered(bad)) == [Terminate()]
    assert life.crash() == []
    assert (life.state.phase, life.state.reason, life.state.domain) == ("Failed", Reason.ORDER_INVALID, OTHER_DOMAIN)


def test_a_hosts_file_that_cannot_be_written_is_tried_again_and_reloaded_then(life: Life) -> None:
    life.ready()
    life.feed(Ordered(TWO))
    life.feed(HostsFailed(Fault(reason=Reason.FILES_NOT_WRITTEN, message="disk full")))
    assert life.state.reason == Reason.FILES_NOT_WRITTEN
    assert life.sleep(2) == [WriteHosts(TWO)]
    assert life.state.reason == ""
    assert life.sleep(RELOAD_WINDOW) == [Reload()]


def test_ready_that_does_not_come_is_said_but_the_process_is_left_alone(life: Life) -> None:
    life.feed(Ordered(ONE))
    assert life.sleep(READY_PATIENCE + 1) == []
    assert (life.state.phase, life.state.reason) == ("Starting", Reason.NOT_READY_YET)
    life.feed(BecameReady(life.pid))
    assert life.state.reason == ""


def test_an_adopted_process_of_the_wanted_order_is_kept(life: Life) -> None:
    assert life.feed(Resumed(wanted=ONE, running=ONE, pid=77, reload_pending=False)) == []
    assert (life.state.phase, life.state.pid) == ("Starting", 77)
    life.feed(BecameReady(77))
    assert life.state.phase == "Ready"
    assert life.sleep(60) == []


def test_an_adopted_process_gets_the_reload_that_was_owed_a_window_later(life: Life) -> None:
    life.feed(Resumed(wanted=ONE, running=ONE, pid=77, reload_pending=True))
    assert life.feed(BecameReady(77)) == []
    assert life.sleep(RELOAD_WINDOW) == [Reload()]


def test_an_adopted_process_of_another_order_is_replaced(life: Life) -> None:
    assert life.feed(Resumed(wanted=ONE, running=OTHER, pid=77, reload_pending=False)) == [Terminate()]
    assert life.crash() == [Start(ONE)]


def test_an_adopted_process_that_nobody_wants_is_stopped(life: Life) -> None:
    assert life.feed(Resumed(wanted=None, running=OTHER, pid=77, reload_pending=False)) == [Terminate()]


def test_a_stored_order_without_a_process_starts_by_itself(life: Life) -> None:
    assert life.feed(Resumed(wanted=ONE, running=None, pid=0, reload_pending=False)) == [Start(ONE)]


def test_health_is_shown_with_its_reason_and_forgotten_when_the_peers_change(life: Life) -> None:
    life.ready(TWO)
    fault = Fault(reason=Reason.PEERS_DISCONNECTED, message="no connection to node 1")
    life.feed(Health("Disconnected", (1,), fault))
    assert (life.state.phase, life.state.peers, life.state.disconnected) == ("Ready", "Disconnected", [1])
    assert "TCP port 50000" in life.state.message
    life.feed(Ordered(ONE))
    assert (life.state.peers, life.state.disconnected, life.state.reason) == ("Unknown", [], "")


orders = st.builds(
    lambda domain, index, extra, port: make_order(
        index, {index: "10.0.0.1", **extra}, domain=domain, config={"SERVER_PORT": port} if port else {}
    ),
    st.sampled_from([DOMAIN, OTHER_DOMAIN]),
    st.integers(0, 1),
    st.dictionaries(st.integers(2, 3), st.sampled_from(["10.0.0.8", "10.0.0.9"]), max_size=1),
    st.sampled_from(["", "50100"]),
)


class Machine(RuleBasedStateMachine):
    """Every sequence of events; ticks come when they are due, as from the runner."""

    def __init__(self) -> None:
        super().__init__()
        self.life = Life()
        self.files: Order | None = None
        """The order whose addresses IMEX has read: at its start, or by a reload after the hosts write."""
        self.hosts: Order | None = None
        self.wanted: Order | None = None

    def settle(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Start):
                self.files = self.hosts = action.order
            elif isinstance(action, WriteHosts):
                self.hosts = action.order
            elif isinstance(action, Reload):
                self.files = self.hosts

    @rule(order=orders)
    def order(self, order: Order) -> None:
        self.wanted = order
        self.settle(self.life.feed(Ordered(order)))

    @rule(domain=st.sampled_from([DOMAIN, OTHER_DOMAIN]))
    def release(self, domain: str) -> None:
        if self.wanted is not None and self.wanted.domain == domain:
            self.wanted = None
        self.settle(self.life.feed(Released(domain)))

    @rule(startable=st.booleans())
    def machine(self, startable: bool) -> None:
        self.life.startable = startable

    @precondition(lambda self: self.life.pid)
    @rule()
    def ready(self) -> None:
        self.settle(self.life.feed(BecameReady(self.life.pid)))

    @precondition(lambda self: self.life.pid)
    @rule()
    def exit(self) -> None:
        self.settle(self.life.crash())

    @rule(pid=st.integers(100, 110))
    def late_news_of_an_old_process(self, pid: int) -> None:
        before = self.life.model
        self.settle(self.life.feed(Exited(-pid, CRASH)))
        self.settle(self.life.feed(BecameReady(-pid)))
        assert self.life.model == before

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 30.0, 100.0]))
    def sleep(self, seconds: float) -> None:
        self.settle(self.life.sleep(seconds))

    @invariant()
    def reloads_keep_their_distance(self) -> None:
        starts = 0
        last: float | None = None
        for time, action in self.life.actions:
            if isinstance(action, Start):
                starts, last = starts + 1, None
            elif isinstance(action, Reload):
                assert last is None or time - last >= RELOAD_WINDOW - 1e-6
                last = time

    @invariant()
    def the_state_is_about_the_last_order(self) -> None:
        if self.wanted is not None:
            assert (self.life.state.domain, self.life.state.index) == (self.wanted.domain, self.wanted.index)
        else:
            assert self.life.state.phase in ("Idle", "Stopping", "Failed")

    @invariant()
    def ready_means_the_wanted_process(self) -> None:
        if self.life.state.phase == "Ready":
            process = self.life.model.process
            assert process is not None
            assert self.wanted is not None
            assert identity(process.order) == identity(self.wanted)

    @invariant()
    def something_is_always_due_or_everything_is_as_wanted(self) -> None:
        model = self.life.model
        if wake_at(model) is not None:
            return
        process = model.process
        if process is None:
            assert self.wanted is None
        elif process.ready_since is not None:
            assert self.files is not None
            assert self.wanted is not None
            assert self.files.addresses == self.wanted.addresses


Machine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestEverySequence = Machine.TestCase

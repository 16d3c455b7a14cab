from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlace.domains.debounce import (
    LIMIT,
    SETTLE,
    STALL,
    STATUS_INTERVAL,
    Pending,
    map_due_in,
    observe,
    status_due_in,
)


def writes(changes: dict[float, int], *, waiting_until: float, grows: bool = True) -> list[tuple[float, int]]:
    """Simulated controller: what is wanted becomes each value at its time; times and values of the writes."""
    pending: Pending | None = None
    written, wanted, now = 0, changes.get(0.0, 0), 0.0
    done: list[tuple[float, int]] = []
    moments = sorted({*changes, waiting_until})
    while True:
        due = None
        if wanted != written:
            pending = observe(pending, wanted=wanted, now=now)
            due = map_due_in(pending, waiting=now < waiting_until, grows=grows, now=now)
            if due == 0:
                done.append((round(now, 6), wanted))
                written, pending, due = wanted, None, None
        else:
            pending = None
        later = [moment for moment in moments if moment > now]
        nexts = [*([later[0]] if later else []), *([now + due] if due is not None else [])]
        if not nexts:
            return done
        now = min(nexts)
        wanted = changes.get(now, wanted)


def test_the_map_is_written_as_soon_as_no_claim_waits() -> None:
    assert writes({0.0: 1, 0.05: 2, 0.1: 3}, waiting_until=0.1) == [(0.1 + SETTLE, 3)]


def test_the_map_is_written_at_the_latest_a_while_after_the_first_change() -> None:
    changes = {i / 10: i + 1 for i in range(20)}
    times = [when for when, _ in writes(changes, waiting_until=5.0)]
    assert times[0] == LIMIT
    assert len(times) == 2


def test_the_map_is_written_when_the_scheduler_stalls() -> None:
    changes = {0.0: 1, 0.1: 2, 3.0: 3}
    assert writes(changes, waiting_until=3.0) == [(0.1 + STALL, 2), (3.0 + SETTLE, 3)]


def test_a_domain_of_18_that_a_busy_scheduler_places_is_written_once() -> None:
    changes = {i * 0.05: i + 1 for i in range(18)}
    assert [value for _, value in writes(changes, waiting_until=17 * 0.05)] == [18]


def test_nodes_that_only_leave_are_gathered_until_no_more_leave() -> None:
    changes = {i * 0.02: i + 1 for i in range(10)}
    assert writes(changes, waiting_until=0.0, grows=False) == [(0.18 + STALL, 10)]


def test_what_goes_back_to_what_is_written_is_not_written() -> None:
    assert writes({0.0: 1, 0.01: 0}, waiting_until=0.0) == []


@given(
    st.dictionaries(st.integers(0, 2000).map(lambda ms: ms / 1000), st.integers(1, 50), max_size=30),
    st.integers(0, 3000).map(lambda ms: ms / 1000),
    st.booleans(),
)
def test_the_last_change_is_always_written_in_time_and_never_more_often_than_it_changes(
    changes: dict[float, int], waiting_until: float, grows: bool
) -> None:
    done = writes(changes, waiting_until=waiting_until, grows=grows)
    if not changes:
        assert done == []
        return
    last = max(changes)
    assert len(done) <= len(changes)
    assert (done[-1][1] if done else 0) == changes[last]
    if done:
        assert done[-1][0] <= last + LIMIT + 1e-6


def test_a_status_is_written_at_once_and_then_once_a_second() -> None:
    assert status_due_in(written_at=None, formed=False, now=5.0) == 0
    assert status_due_in(written_at=5.0, formed=False, now=5.25) == STATUS_INTERVAL - 0.25
    assert status_due_in(written_at=5.0, formed=False, now=9.0) == 0


def test_that_a_domain_is_formed_is_written_at_once() -> None:
    assert status_due_in(written_at=5.0, formed=True, now=5.25) == 0

"""docs/scale.md, what is kept for it, and the calculation on paper."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.scale import page, paper, record
from bench.scale.crowd import Crowd, Idle, State, Wide
from bench.scale.formation import Formed
from bench.scale.leaks import Rest, leaks
from bench.scale.shaken import Shaken, Spread
from bench.scale.sizes import Size
from bench.scale.trend import Trend

FORMED = Formed(pods=18, bound=0.5, prepared=1.0, ready=1.1, imex=0.3, requests=45, gone=0.4, controller=9)


def _state(what: str, *, nodes: int, domains: int = 0, prepared: float = 1.0, memory: float = 40.0) -> State:
    formed = [msgspec.structs.replace(FORMED, prepared=prepared)]
    return State(
        what=what,
        nodes=nodes,
        domains=domains,
        formed=formed,
        controller=memory,
        apiserver=500,
        clique_bytes=180_000,
    )


def _crowd(*, prepared: float = 1.4, memory: float = 80.0, asked: int = 6) -> Crowd:
    return Crowd(
        server="real",
        nodes=1000,
        domains=60,
        per_domain=16,
        states=[
            _state("its own nodes alone", nodes=18),
            _state("all nodes", nodes=1000, memory=60.0),
            _state("all nodes and domains", nodes=1000, domains=60, prepared=prepared, memory=memory),
        ],
        idle=Idle(seconds=60, requests={"agent get resourceclaims": asked}, leases=30, watches=100),
        wide=Wide(formed=FORMED, cliques=56, domain_bytes=200_000, clique_bytes=2_000, controller=90.0),
        installed=100,
    )


def _shaken(**changes: object) -> Shaken:
    spread = Spread(count=100, median=0.5, p99=2.0, longest=4.0)
    plain = Shaken(
        server="real",
        nodes=36,
        seconds=60,
        seed=7,
        steps={"force": 3},
        allocations=10,
        prepared=9,
        maps=8,
        breaches=[],
        waited=spread,
        slow=[],
        late_looks=0.1,
    )
    return msgspec.structs.replace(plain, **changes)


def test_a_crowd_within_its_budgets_holds() -> None:
    assert page.crowd_holds(_crowd())
    shown = page.crowd_table(_crowd())
    assert "1.40 | 1.50 (1.5 × alone) | met" in shown
    assert "| 0.10 | 1 | met |" in shown


@pytest.mark.parametrize(
    ("crowd", "missed"),
    [(_crowd(prepared=1.6), 1), (_crowd(memory=151.0), 1), (_crowd(asked=30), 1), (_crowd(asked=90), 2)],
    ids=["slow", "large", "busy in the long run", "busy"],
)
def test_each_budget_of_a_crowd_can_be_missed(crowd: Crowd, missed: int) -> None:
    assert not page.crowd_holds(crowd)
    assert page.crowd_table(crowd).count("**missed**") == missed


def test_the_last_channel_is_measured_from_the_last_binding_and_less_the_start_of_imex() -> None:
    good = Size(nodes=36, cliques=2, volume_wait=0.05, formed=[FORMED])
    assert page.sizes_hold([good])
    late = msgspec.structs.replace(good, formed=[msgspec.structs.replace(FORMED, prepared=1.2)])
    assert "0.70 | 0.60 (0.25 + IMEX + 0.05 of kubelet) | **missed**" in page.sizes_table([late])


def test_a_churn_with_a_breach_a_leak_or_growth_does_not_hold() -> None:
    grows = Trend(what="memory", unit="MB", seconds=(0, 1, 2, 3), values=(0, 0, 9, 9), allowed=1)
    assert page.churn_holds(_shaken())
    for broken in (_shaken(breaches=["two of them"]), _shaken(leaks=["left"]), _shaken(trends=[grows])):
        assert not page.churn_holds(broken)
    shown = page.churn_table(_shaken(breaches=["two of them"], trends=[grows]))
    assert "* two of them" in shown
    assert "**grows**" in shown


def test_a_race_holds_while_no_pod_waits_too_long() -> None:
    assert page.race_holds(_shaken())
    assert not page.race_holds(_shaken(waited=Spread(count=1, median=6, p99=6, longest=6)))
    assert not page.race_holds(_shaken(breaches=["met"]))


def test_times_become_a_few_figures() -> None:
    assert Spread.of([]) == Spread(count=0, median=0, p99=0, longest=0)
    assert Spread.of([float(number) for number in range(100, -1, -1)]) == Spread(
        count=101, median=50, p99=99, longest=100
    )


def test_ten_thousand_nodes_are_straight_lines_through_what_was_measured() -> None:
    lines = {line.what: line.value for line in paper.calculate(_crowd(memory=76.0))}
    # 20 MB for 982 nodes, 16 MB more for 960 members
    assert lines["memory of the controller, all nodes in domains"] == pytest.approx(
        40 + (10_000 - 18) * 20 / 982 + 10_000 * 16 / 960
    )
    assert lines["requests while each node changes its job 1 time an hour"] == pytest.approx(2.5 * 10_000 / 3600)


def test_less_memory_with_more_nodes_is_noise_and_no_gain() -> None:
    crowd = _crowd()
    shrunk = [crowd.states[0], _state("all nodes", nodes=1000, memory=10.0), crowd.states[2]]
    lines = {line.what: line.value for line in paper.calculate(msgspec.structs.replace(crowd, states=shrunk))}
    assert lines["memory of the controller, nodes without a domain"] == 40


def test_what_is_kept_is_read_again_and_becomes_a_page(tmp_path: Path) -> None:
    about = record.Circumstances()
    about.busy = 0.42
    record.save("crowd", "real", [_crowd()], about=about, folder=tmp_path)
    record.save("races", "embedded", [_shaken(server="embedded")], about=about, folder=tmp_path)
    crowd = record.load("crowd", "real", Crowd, folder=tmp_path)
    races = record.load("races", "embedded", Shaken, folder=tmp_path)
    assert crowd is not None
    assert races is not None
    shown = page.render(crowds=[crowd], sizes=[], churns=[], races=[races])
    assert crowd.found == [_crowd()]
    assert "On the embedded API server" in shown
    assert "42% busy" in shown
    assert shown.count("Not measured yet.") == 2
    assert record.load("races", "real", Shaken, folder=tmp_path) is None


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    record.path("sizes", "real", folder=tmp_path).write_text('{"subject": 3}')
    with pytest.raises(ValueError, match=r"scale-sizes\.json: not a result of bench\.scale"):
        record.load("sizes", "real", Size, folder=tmp_path)


def test_leaks_are_what_was_not_there_before() -> None:
    before = Rest(
        things=frozenset({"Pod a/b"}),
        slices=frozenset({"n1: 1 of ''"}),
        prepared=0,
        tasks=1000,
        files=frozenset({"n1/etc/hosts"}),
    )
    assert leaks(before, before) == []
    after = Rest(
        things=frozenset({"ResourceClaim a/c"}),
        slices=frozenset({"n1: 8 of 'x'"}),
        prepared=2,
        tasks=1100,
        files=frozenset({"n1/etc/hosts", "n1/a", "n1/b", "n1/c"}),
    )
    assert leaks(before, after) == [
        "left behind: ResourceClaim a/c",
        "a node offers something else: n1: 8 of 'x'",
        "2 claims are left in the checkpoints of agents",
        "1100 tasks where there were 1000",
        "4 files where there were 1, among them n1/a, n1/b, n1/c",
    ]


def test_a_thousand_agents_at_rest_ask_less_than_once_a_second_ends_of_watches_included() -> None:
    lines = {line.what: line.value for line in paper.calculate(_crowd(), nodes=1000)}
    assert lines["requests of agents at rest"] + lines["watches that end and begin anew"] < 1

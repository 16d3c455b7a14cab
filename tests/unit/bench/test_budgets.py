"""Which budgets hold for a run, and whether they are met."""

from __future__ import annotations

from bench.domains.budgets import BUDGETS
from bench.domains.record import Requests, Run, Seconds
from bench.domains.report import COMPONENTS
from tests.unit.bench.runs import make_run

AS_SET = "creation to last channel prepared, s (1.0 + start of IMEX as set)"
AS_MEASURED = "the same (1.0 + start of IMEX as measured)"
TWO_EACH = "creation to last channel prepared of two pods a node, s"
AFTER_BINDING = "last pod bound to last channel prepared, s (0.25 + start of IMEX as measured)"


def _limits(run: Run) -> dict[str, float | None]:
    return {budget.what: budget.limit(run) for budget in BUDGETS}


def _missed(run: Run) -> list[str]:
    return [
        budget.what
        for budget in BUDGETS
        if (limit := budget.limit(run)) is not None and budget.measure(run, COMPONENTS[run.driver]) > limit
    ]


def test_eighteen_nodes_have_the_budgets_of_the_design() -> None:
    limits = _limits(make_run())
    assert limits["requests of our components to form"] == 48
    assert limits["writes among them"] == 30
    assert limits["conflicts among them"] == 0
    assert limits["requests to tear down"] == 8
    assert limits[AS_SET] == limits[AS_MEASURED] == 1.05
    assert limits["clique watch traffic to form, MB"] == 0.15


def test_thirty_six_nodes_are_timed_from_the_last_binding() -> None:
    limits = _limits(make_run(nodes=36, cliques=2))
    assert limits[AS_SET] is limits[AS_MEASURED] is None
    assert limits[AFTER_BINDING] == 0.3
    assert limits["requests of our components to form"] == 96
    assert limits["clique watch traffic to form, MB"] == 0.5


def test_two_pods_a_node_have_a_budget_of_their_own() -> None:
    limits = _limits(make_run(pods_per_node=2))
    assert limits["requests of our components to form"] == 110
    assert limits[TWO_EACH] == 2.5
    assert limits[AS_SET] is limits[AS_MEASURED] is None
    assert limits["ResourceSlice writes"] == 18


def test_a_good_run_misses_no_budget() -> None:
    assert _missed(make_run()) == []


def test_each_excess_is_noticed() -> None:
    run = make_run(
        requests={
            "formation": {"agent": Requests(writes=30, conflicts=1, get=18)},
            "teardown": {"agent": Requests(writes=9)},
        },
        requests_detail={"formation": {"agent": {"update resourceslices": 1, "get resourceslices": 1}}},
        seconds=Seconds(all_bound=0.1, all_prepared=1.06),
        watch_bytes={"formation": {"computedomaincliques.resource.nvidia.com": 150_001}},
    )
    assert _missed(run) == [budget.what for budget in BUDGETS if budget.what not in (AFTER_BINDING, TWO_EACH)]


def test_two_pods_a_node_that_come_late_are_noticed() -> None:
    assert _missed(make_run(pods_per_node=2, seconds=Seconds(all_bound=0.1, all_prepared=2.51))) == [TWO_EACH]


def test_the_start_of_imex_is_given_as_it_was_set_and_as_it_was_measured() -> None:
    limits = _limits(make_run(imex_starts=[0.2, 0.5, 0.9]))
    assert (limits[AS_SET], limits[AS_MEASURED]) == (1.05, 1.5)

"""Bad nodes and bad links are named, and nothing else."""

from __future__ import annotations

from interlace.verify.attribution import Attribution, attribute
from interlace.verify.measurement import Reading
from interlace.verify.pairing import match
from interlace.verify.schedule import Plan
from tests.unit.verify.pairworld import NODES, World

SEEDS = range(100)
ALL = Plan(nodes=NODES)


def _attributed(world: World, plan: Plan) -> Attribution:
    return attribute(world.readings(plan), cliques=plan.cliques, noise=plan.noise)


def _named(found: Attribution) -> set[tuple[str, tuple[str, ...]]]:
    return {(each.kind, each.names) for each in found.findings}


def test_a_slow_node_and_a_slow_link_are_named_and_nothing_else() -> None:
    slow = {"node-05": 0.85, ("node-03", "node-11"): 0.70}
    wanted = {("node", ("node-05",)), ("link", ("node-03", "node-11"))}
    right = sum(_named(_attributed(World(seed=seed, slow=slow), ALL)) == wanted for seed in SEEDS)
    assert right >= 95


def test_nothing_is_named_where_nothing_is_wrong() -> None:
    right = sum(not _attributed(World(seed=seed), ALL).findings for seed in SEEDS)
    assert right >= 99


def test_a_link_of_a_slow_node_is_still_told_from_it() -> None:
    slow = {"node-05": 0.80, ("node-05", "node-11"): 0.60}
    found = _attributed(World(slow=slow, spread=(0.01, 0.02)), ALL)
    assert _named(found) == {("node", ("node-05",)), ("link", ("node-05", "node-11"))}
    assert abs(found.effects["node-05"] - 0.8) < 0.03


def test_a_quiet_fabric_names_nothing_below_the_floor() -> None:
    found = _attributed(World(slow={"node-05": 0.97}, spread=(0.001, 0.002)), ALL)
    assert not found.findings


def test_three_random_matchings_find_a_slow_node() -> None:
    plan = Plan(nodes=NODES, quick=3, noise=0.1)
    for seed in range(10):
        assert _named(_attributed(World(seed=seed, slow={"node-05": 0.7}), plan)) == {("node", ("node-05",))}


def test_of_two_nodes_alone_the_pair_is_named_and_neither_node() -> None:
    plan = Plan(nodes=NODES[:2])
    found = attribute(World().readings(plan), expected={"inside": 250.0})
    assert [each.kind for each in found.findings] == ["all"]
    assert "at least 250 GB/s" in found.findings[0].text


def test_of_a_few_nodes_a_slow_one_is_named_alone_whatever_the_noise() -> None:
    for count in (4, 5, 6):
        plan = Plan(nodes=NODES[:count], noise=0.02)
        for seed in range(30):
            found = _attributed(World(seed=seed, slow={NODES[count - 1]: 0.7}, spread=(0.001, 0.002)), plan)
            assert _named(found) == {("node", (NODES[count - 1],))}
            assert abs(found.typical["inside", None] - 160.0) < 2.0


def test_a_pair_that_is_only_noisier_than_others_is_not_named() -> None:
    readings = World(spread=(0.01, 0.02)).readings(ALL)
    noisy = match("node-03", "node-11")
    values = (120.0, 128.0, 154.0, 135.0, 110.0, 159.0, 161.0)
    readings = [each for each in readings if each.match != noisy]
    readings += [Reading(match=noisy, stage=1, attempt=number, busbw=busbw) for number, busbw in enumerate(values)]
    assert not attribute(readings).findings
    steady = [Reading(match=noisy, stage=1, attempt=number, busbw=135.0 + number / 10) for number in range(7)]
    assert _named(attribute([*readings[:-7], *steady])) == {("link", noisy.nodes)}


def test_of_four_nodes_with_two_faults_pairs_are_named_and_no_link() -> None:
    plan = Plan(nodes=NODES[:4], noise=0.01)
    slow = {"node-03": 0.7, ("node-00", "node-02"): 0.5}
    found = _attributed(World(slow=slow, spread=(0.01, 0.012)), plan)
    assert ("pair", ("node-00", "node-02")) in _named(found)
    assert {each.kind for each in found.findings} <= {"pair", "node"}


def test_an_uplink_between_two_cliques_is_named_and_not_its_pairs() -> None:
    nodes = tuple(f"{rack}-{number}" for rack in "abcd" for number in range(8))
    slow = {(one, other): 0.6 for one in nodes for other in nodes if one[0] == "a" and other[0] == "b"}
    plan = Plan(nodes=nodes, cliques={node: node[0] for node in nodes}, noise=0.1)
    found = _attributed(World(slow=slow), plan)
    assert _named(found) == {("uplink", ("a", "b"))}


def test_a_slow_rail_is_named_with_its_node_and_a_node_that_is_slow_on_all_once() -> None:
    plan = Plan(nodes=NODES[:8], rails=4, noise=0.05)
    quiet = (0.01, 0.02)
    found = _attributed(World(slow={("node-02", 3): 0.5}, spread=quiet), plan)
    assert [(each.kind, each.names, each.rail) for each in found.findings] == [("node", ("node-02",), 3)]
    found = _attributed(World(slow={"node-02": 0.5}, spread=quiet), plan)
    assert [(each.kind, each.names, each.rail) for each in found.findings] == [("node", ("node-02",), None)]
    assert "on all 4 rails" in found.findings[0].text


def test_a_node_whose_measurements_all_fail_is_named_once() -> None:
    found = _attributed(World(fails=lambda each: "node-07" in each.nodes), ALL)
    assert [(each.kind, each.names, each.fault) for each in found.findings] == [("node", ("node-07",), "fails")]


def test_two_nodes_that_fail_alone_with_each_other_are_a_link() -> None:
    found = _attributed(World(fails=lambda each: each.nodes == ("node-01", "node-02")), ALL)
    assert [(each.kind, each.fault) for each in found.findings] == [("link", "fails")]
    assert "does not answer" in found.findings[0].text


def test_what_failed_once_and_then_measured_is_blamed_on_nobody() -> None:
    readings = World().readings(ALL)
    readings.append(Reading(match=match("node-01", "node-02"), stage=3, outcome="failed", note="evicted"))
    assert not attribute(readings).findings


def test_wrong_data_are_named_and_never_counted_as_bandwidth() -> None:
    found = _attributed(World(wrong=lambda each: "node-09" in each.nodes), ALL)
    assert [(each.kind, each.names, each.fault) for each in found.findings] == [("node", ("node-09",), "wrong data")]
    assert not any("node-09" in each.nodes for each in found.pairs)


def test_nothing_measured_names_nothing() -> None:
    assert attribute([]).findings == ()

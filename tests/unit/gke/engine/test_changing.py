"""A file that changes, and a cluster that is changed by hand: what is changed in place, replaced, refused, adopted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlace.gke.adopting import adopt, adoptable
from interlace.gke.client import Client
from interlace.gke.journal import Entry, Journal, adopted
from interlace.gke.observing import observe
from interlace.gke.ownership import owner_of
from interlace.gke.picture import scope_of_cluster
from interlace.gke.plan import Plan, make_plan
from interlace.gke.resource import Key
from tests.unit.gke.engine.sky import PROJECT, SMALL, Sky, apply_on, destroy_on, plan_on

pytestmark = pytest.mark.looptime

NODES = SMALL.replace("nodes: 2", "nodes: 1")
LABELS = SMALL.replace("nodes: 2", "nodes: 2\n      labels: {team: ml}\n      tags: [gpu]")
MTU = SMALL.replace("  pools:", "  network: {mtu: 8000}\n  pools:")
PODS = SMALL.replace("nodes: 2", "nodes: 2\n      maxPods: 64")
OPEN = {"sourceRanges": ["0.0.0.0/0"]}
ONE = SMALL.replace("nodes: 2", "nodes: 1")
TWO = ONE + "    - name: second\n      nodes: 1\n"


def actions(plan: Plan) -> dict[str, str]:
    return {str(step.key): step.action for step in plan.steps if step.action != "keep"}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (NODES, {"nodePool/gpu-pool": "update"}),
        (LABELS, {"nodePool/gpu-pool": "update"}),
        (MTU, {f"network/high-{name}": "update" for name in ("primary", "net-1", "net-2", "net-3", "net-4")}),
    ],
    ids=["nodes", "labels and tags", "mtu"],
)
async def test_what_can_be_changed_in_place_is(tmp_path: Path, text: str, changed: dict[str, str]) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    sky.read(text)
    assert actions(await plan_on(sky, tmp_path)) == changed
    run = await apply_on(sky, tmp_path)
    assert {str(ending.reason) for ending in run.endings.values() if ending.reason} == set()
    assert set(run.states()) == {f"update {name}" for name in changed}
    assert (await plan_on(sky, tmp_path)).empty


async def test_what_cannot_be_changed_is_replaced_only_when_that_is_allowed(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    sky.read(PODS)
    plan = await plan_on(sky, tmp_path)
    assert actions(plan) == {"nodePool/gpu-pool": "replace"}
    (step,) = plan.of("replace")
    assert [each.path for each in step.differences if each.replaces] == ["maxPodsConstraint.maxPodsPerNode"]
    before = sky.mutations()
    assert (await apply_on(sky, tmp_path)).endings == {}
    assert sky.mutations() == before
    run = await apply_on(sky, tmp_path, replace=True)
    assert {str(ending.reason) for ending in run.endings.values() if ending.reason} == set()
    assert run.states() == {"delete nodePool/gpu-pool": "done", "create nodePool/gpu-pool": "done"}
    assert (await plan_on(sky, tmp_path)).empty


async def test_a_replacement_takes_along_what_refers_to_it(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    sky.read(SMALL.replace("  pools:", "  network: {nics: [{range: 172.16.0.0/24}, {}, {}, {}]}\n  pools:"))
    plan = await plan_on(sky, tmp_path)
    replaced = actions(plan)
    assert replaced["subnetwork/high-sub-1"] == "replace"
    assert replaced["nodePool/gpu-pool"] == "replace"
    assert "which is replaced" in next(step.note for step in plan.steps if step.key.name == "gpu-pool")
    assert "cluster/high" not in replaced
    run = await apply_on(sky, tmp_path, replace=True)
    assert {str(ending.reason) for ending in run.endings.values() if ending.reason} == set()
    order = list(run.states())
    assert order.index("delete nodePool/gpu-pool") < order.index("delete subnetwork/high-sub-1")
    assert order.index("create subnetwork/high-sub-1") < order.index("create nodePool/gpu-pool")
    assert (await plan_on(sky, tmp_path)).empty


async def test_what_the_file_has_no_more_goes_only_when_that_is_asked_for(tmp_path: Path) -> None:
    sky = Sky(text=TWO, seconds=0.1)
    made = await apply_on(sky, tmp_path)
    assert {str(ending.reason) for ending in made.endings.values() if ending.reason} == set()
    sky.read(ONE)
    assert actions(await plan_on(sky, tmp_path)) == {"nodePool/second": "delete"}
    assert (await apply_on(sky, tmp_path)).endings == {}
    run = await apply_on(sky, tmp_path, prune=True)
    assert run.states() == {"delete nodePool/second": "done"}
    assert (await plan_on(sky, tmp_path)).empty


@pytest.mark.parametrize(
    ("end", "change", "found"),
    [
        ("firewalls/high-internal-1", {"disabled": True}, ("firewall/high-internal-1", "disabled", "update")),
        (
            "firewalls/high-internal-1",
            {"sourceRanges": ["0.0.0.0/0"]},
            ("firewall/high-internal-1", "sourceRanges", "update"),
        ),
        ("networks/high-net-1", {"mtu": 1460}, ("network/high-net-1", "mtu", "update")),
        ("nodePools/gpu-pool", {"initialNodeCount": 5}, ("nodePool/gpu-pool", "initialNodeCount", "update")),
    ],
)
async def test_a_change_by_hand_is_drift_and_is_mended(
    tmp_path: Path, end: str, change: dict[str, Any], found: tuple[str, str, str]
) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    path = next(each for each in sky.paths() if each.endswith(end))
    sky.world.store.objects[path].update(change)
    plan = await plan_on(sky, tmp_path)
    assert [(str(s.key), d.path, s.action) for s in plan.steps for d in s.differences] == [found]
    await apply_on(sky, tmp_path)
    assert (await plan_on(sky, tmp_path)).empty


async def test_the_order_of_nics_is_a_difference() -> None:
    from interlace.gke.difference import differences

    nics = [{"network": f"n-{i}", "subnetwork": f"s-{i}"} for i in range(4)]
    want = {"networkConfig": {"additionalNodeNetworkConfigs": nics}}
    have = {"networkConfig": {"additionalNodeNetworkConfigs": nics[::-1]}}
    (found,) = differences("nodePool", want=want, have=have)
    assert found.replaces


async def test_a_pool_without_machines_is_no_difference_and_not_well(tmp_path: Path) -> None:
    from interlace.sim.gke.faults import Fault, Kind

    sky = Sky(text=SMALL, seconds=0.1)
    sky.world.faults.active.append(Fault(kind=Kind.STOCKOUT, match="POST .*/nodePools$"))
    await apply_on(sky, tmp_path)
    plan = await plan_on(sky, tmp_path)
    assert plan.empty
    (ill,) = [step for step in plan.steps if step.trouble]
    assert str(ill.key) == "nodePool/gpu-pool"
    assert "GCE_STOCKOUT" in ill.note


async def test_what_others_made_under_our_names_is_never_touched_until_it_is_adopted(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    for path, body in sky.world.store.objects.items():
        if path.endswith(("networks/high-net-1", "firewalls/high-internal-1")):
            body["description"] = "by hand"
        if path.endswith("nodePools/gpu-pool"):
            body["config"]["resourceLabels"] = {}
    plan = await plan_on(sky, tmp_path)
    names = {"network/high-net-1", "firewall/high-internal-1", "nodePool/gpu-pool"}
    assert actions(plan) == dict.fromkeys(names, "foreign")
    assert (await apply_on(sky, tmp_path)).endings == {}

    wanted = sky.wanted()
    with Journal(tmp_path) as journal:
        client = Client(sky.send)
        picture = await observe(client, scope_of_cluster(sky.file, wanted))
        steps, others = adoptable(make_plan(wanted, picture, owner_of(sky.file)))
        assert others == ()
        await adopt(client, journal, picture, steps, owner_of(sky.file))
        assert {str(key) for key in adopted(journal.entries)} == names
    assert (await plan_on(sky, tmp_path)).empty
    # What can carry the mark has it now, so that a lost journal loses the network alone.
    assert set(actions(await plan_on(sky, tmp_path / "lost"))) == {"network/high-net-1"}
    left = await destroy_on(sky, tmp_path)
    assert {ending.state for ending in left.values()} == {"done"}
    assert not [path for path in sky.paths() if "high" in path]


async def test_the_networks_of_another_cluster_cannot_be_adopted(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path / "one")
    path = f"projects/{PROJECT}/global/networks/high-net-1"
    sky.world.store.objects[path]["description"] = "interlace.dev/cluster=example-project/us-east4-a/other"
    plan = await plan_on(sky, tmp_path / "one")
    free, others = adoptable(plan)
    assert free == ()
    assert [str(step.key) for step in others] == ["network/high-net-1"]
    assert "example-project/us-east4-a/other" in others[0].note


async def test_what_was_taken_over_and_not_marked_is_marked_by_the_next_run(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1, narrow=True)
    await apply_on(sky, tmp_path)
    rule = next(path for path in sky.paths() if path.endswith("firewalls/high-internal-1"))
    sky.world.store.objects[rule]["description"] = "by hand"
    with Journal(tmp_path) as journal:
        journal.append(Entry(event="adopted", key=Key("firewall", "global", "high-internal-1")))
    plan = await plan_on(sky, tmp_path)
    free, others = adoptable(plan)
    assert ([str(step.key) for step in free], others) == (["firewall/high-internal-1"], ())
    with Journal(tmp_path) as journal:
        client = Client(sky.send)
        await adopt(client, journal, await observe(client, scope_of_cluster(sky.file)), free, owner_of(sky.file))
    assert "interlace.dev/cluster=" in sky.world.store.objects[rule]["description"]
    assert adoptable(await plan_on(sky, tmp_path)) == ((), ())

"""Destroying takes what was made and leaves what was not; what stands in the way is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlace.gke.client import Client
from interlace.gke.destroying import InUse, teardown
from interlace.gke.observing import observe
from interlace.gke.ownership import owner_of
from interlace.gke.picture import scope_of_cluster
from interlace.gke.resource import Key
from interlace.sim.gke.faults import Fault, Kind
from tests.unit.gke.engine.sky import PROJECT, SMALL, Sky, apply_on, destroy_on, plan_on

pytestmark = pytest.mark.looptime


def _rule(sky: Sky, name: str, *, network: str) -> str:
    """Somebody else's firewall rule in a network; its path."""
    path = f"projects/{PROJECT}/global/firewalls/{name}"
    home = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/global"
    body: dict[str, Any] = {
        "kind": "compute#firewall",
        "id": sky.world.store.next_id(),
        "name": name,
        "description": "for ssh",
        "network": f"{home}/networks/{network}",
        "direction": "INGRESS",
        "priority": 1000,
        "sourceRanges": ["10.0.0.0/8"],
        "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}],
        "selfLink": f"{home}/firewalls/{name}",
    }
    sky.world.store.put(path, body)
    return path


async def test_a_foreign_rule_keeps_its_network_and_nothing_else(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    before = sky.paths()
    await apply_on(sky, tmp_path)
    rule = _rule(sky, "allow-ssh", network="high-net-2")
    endings = await destroy_on(sky, tmp_path)
    assert sky.paths() == sorted([*before, rule, f"projects/{PROJECT}/global/networks/high-net-2"])
    bad = {str(task): ending for task, ending in endings.items() if ending.state != "done"}
    assert list(bad) == ["delete network/high-net-2"]
    reason = bad["delete network/high-net-2"].reason
    assert isinstance(reason, InUse)
    assert "firewall/allow-ssh" in str(reason)
    assert "--with-foreign-rules" in str(reason)


async def test_foreign_rules_go_when_that_is_asked_for(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    before = sky.paths()
    await apply_on(sky, tmp_path)
    _rule(sky, "allow-ssh", network="high-net-2")
    elsewhere = _rule(sky, "allow-ssh-to-default", network="default")
    endings = await destroy_on(sky, tmp_path, with_foreign_rules=True)
    assert {ending.state for ending in endings.values()} == {"done"}
    assert sky.paths() == sorted([*before, elsewhere])


async def test_rules_that_gke_leaves_behind_are_found_when_the_cluster_is_gone(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    before = sky.paths()
    await apply_on(sky, tmp_path)
    sky.world.faults.active.append(Fault(kind=Kind.LEFTOVER_FIREWALLS, match="DELETE .*/clusters/"))
    first = await destroy_on(sky, tmp_path)
    assert [str(task) for task, ending in first.items() if ending.state != "done"] == ["delete network/high-primary"]
    second = await destroy_on(sky, tmp_path, with_foreign_rules=True)
    assert {ending.state for ending in second.values()} == {"done"}
    assert sky.paths() == before


async def test_a_cluster_stays_while_a_foreign_pool_is_in_it(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    cluster = f"projects/{PROJECT}/locations/us-central1-a/clusters/high"
    foreign = f"{cluster}/nodePools/by-hand"
    made = dict(next(body for path, body in sky.world.store.objects.items() if path.endswith("/nodePools/gpu-pool")))
    config = {**made["config"], "resourceLabels": {}}
    sky.world.store.put(foreign, {**made, "name": "by-hand", "config": config})
    endings = await destroy_on(sky, tmp_path)
    states = {str(task): ending.state for task, ending in endings.items()}
    assert states["delete cluster/high"] == "failed"
    assert states["delete nodePool/gpu-pool"] == "done"
    assert {foreign, cluster} <= set(sky.paths())
    assert states["delete network/high-primary"] == "blocked"
    assert states["delete network/high-net-1"] in {"done", "blocked"}


async def test_what_has_a_wanted_name_and_was_not_made_here_is_left_alone(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    path = f"projects/{PROJECT}/global/networks/high-net-1"
    sky.world.store.objects[path]["description"] = "mine"
    picture = await observe(Client(sky.send), scope_of_cluster(sky.file))
    keys = {resource.key for resource in sky.wanted()}
    plan = teardown(picture, owner_of(sky.file), wanted=keys)
    network = Key("network", "global", "high-net-1")
    assert plan.other == (network,)
    assert network not in plan.ours
    await destroy_on(sky, tmp_path)
    assert path in sky.paths()


async def test_the_networks_of_another_cluster_of_the_same_project_stay(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path / "one")
    one = sky.paths()
    sky.read(SMALL.replace("name: high", "name: other"))
    await apply_on(sky, tmp_path / "other")
    await destroy_on(sky, tmp_path / "other")
    assert sky.paths() == one
    sky.read(SMALL)
    assert (await plan_on(sky, tmp_path / "one")).empty


async def test_what_an_ended_apply_left_under_way_goes_too(tmp_path: Path) -> None:
    import asyncio

    sky = Sky(text=SMALL, seconds=5.0)
    before = sky.paths()
    try:
        async with asyncio.timeout(7):
            await apply_on(sky, tmp_path)
    except TimeoutError:
        pass
    assert sky.world.operations.running()
    endings = await destroy_on(sky, tmp_path)
    assert {ending.state for ending in endings.values()} == {"done"}
    assert sky.paths() == before

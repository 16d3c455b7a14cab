"""What is looked at, and what need not be readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlace.gke.client import Client
from interlace.gke.failures import ApiError
from interlace.gke.observing import observe
from interlace.gke.picture import references, scope_of_cluster
from interlace.gke.resource import Key
from interlace.sim.gke.faults import Fault, Kind
from tests.unit.gke.engine.sky import SMALL, Sky, apply_on

pytestmark = pytest.mark.looptime


async def test_each_collection_is_listed_once(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    before = len(sky.log)
    picture = await observe(Client(sky.send), scope_of_cluster(sky.file, sky.wanted()))
    assert {sent.method for sent in sky.log[before:]} == {"GET"}
    assert len(sky.log) - before == 8
    ours = {resource.key for resource in sky.wanted()}
    assert ours <= set(picture.bodies)


async def test_what_the_file_does_not_make_need_not_be_readable() -> None:
    sky = Sky(text=SMALL)
    denied = Fault(kind=Kind.PERMISSION_DENIED, match=r"GET .*/(networks|subnetworks|firewalls)$", times=None)
    sky.world.faults.active.append(denied)
    alone = [resource for resource in sky.wanted() if resource.key.kind in {"cluster", "nodePool"}]
    picture = await observe(Client(sky.send), scope_of_cluster(sky.file, alone))
    assert picture.bodies == {}
    with pytest.raises(ExceptionGroup) as caught:
        await observe(Client(sky.send), scope_of_cluster(sky.file, sky.wanted()))
    assert caught.group_contains(ApiError)


async def test_what_refers_to_what_is_read_from_bodies_too(tmp_path: Path) -> None:
    sky = Sky(text=SMALL, seconds=0.1)
    await apply_on(sky, tmp_path)
    picture = await observe(Client(sky.send), scope_of_cluster(sky.file, sky.wanted()))
    for resource in sky.wanted():
        found = set(references(resource.key, picture.bodies[resource.key], region="us-central1"))
        assert set(resource.after) <= found | {Key("cluster", "us-central1-a", "high")}

"""What is read of a live project, and what becomes of calls that are refused; the cloud is simulated."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from interlace.gke.client import Client
from interlace.gke.errors import Refused
from interlace.gke.observed.bundle import convert
from interlace.gke.observed.gathering import UNREADABLE, Gathered, NothingRead, Target, observe
from interlace.gke.request import Request
from interlace.gke.rules.checking import check_observed
from interlace.rules.finding import Finding
from interlace.sim.gke.faults import Kind
from tests.unit.gke.engine.sky import MEGA, PROJECT, Sky, apply_on
from tests.unit.gke.rules.bundles import NOW, errors

pytestmark = pytest.mark.looptime

ZONES = {"a4": "us-central1-b"}
TARGET = Target(project=PROJECT, location="us-central1-a", cluster="mega", flavour="a3-mega", nodes=2)


async def look(sky: Sky, target: Target = TARGET) -> Gathered:
    return await observe(Client(sky.send, patience=5.0), target)


def found(gathered: Gathered) -> tuple[Finding, ...]:
    return (*gathered.findings, *check_observed(convert(gathered.document), now=NOW))


async def test_a_project_without_cluster_is_read_whole() -> None:
    gathered = await look(Sky())
    assert gathered.findings == ()
    document = gathered.document
    assert document["cluster"] is None
    assert [each["name"] for each in document["networks"]] == ["default"]
    assert [each["name"] for each in document["machineTypes"]] == ["a3-megagpu-8g"]
    assert {each["quotaId"] for each in document["quotaInfos"]} >= {"GPUS-PER-GPU-FAMILY-per-project-region"}
    assert len(document["services"]) == 4
    assert document["permissions"]["asked"] == document["permissions"]["permissions"]
    assert document["want"] == {"flavour": "a3-mega", "nodes": 2, "clusterName": "mega"}
    assert not errors(found(gathered))


async def test_reading_changes_nothing() -> None:
    sky = Sky()
    await look(sky)
    assert sky.mutations() == []


@pytest.mark.parametrize("family", ["a3-high", "a3-mega", "a3-ultra", "a4", "a4x"])
async def test_a_cluster_that_was_made_from_a_file_has_no_errors(family: str, tmp_path: Path) -> None:
    sky = Sky(text=MEGA.replace("a3-mega", family).replace("us-central1-a", ZONES.get(family, "us-central1-a")))
    await apply_on(sky, tmp_path)
    zone = sky.file.spec.location
    gathered = await look(sky, msgspec.structs.replace(TARGET, flavour=family, location=zone))
    assert gathered.document["cluster"]["name"] == "mega"
    assert [each["name"] for each in gathered.document["cluster"]["nodePools"]] == ["default-pool", "gpu-pool"]
    assert not errors(found(gathered))


async def test_the_only_cluster_needs_no_name_and_of_several_one_must_be_named(tmp_path: Path) -> None:
    sky = Sky(text=MEGA)
    await apply_on(sky, tmp_path / "first")
    anyone = Target(project=PROJECT, location="us-central1-a")
    assert (await look(sky, anyone)).document["want"]["clusterName"] == "mega"
    sky.read(MEGA.replace("name: mega", "name: other"))
    await apply_on(sky, tmp_path / "second")
    with pytest.raises(Refused, match="There are 2 clusters at us-central1-a: mega, other"):
        await look(sky, anyone)


SECTIONS = {
    "networks": "global/networks",
    "subnetworks": "subnetworks",
    "firewalls": "global/firewalls",
    "resourcePolicies": "resourcePolicies",
    "reservations": "reservations",
    "machineTypes": "machineTypes",
    "quotaInfos": "quotaInfos",
    "services": "services/compute.googleapis.com$",
    "cluster": "/clusters",
    "permissions": "testIamPermissions",
    "regionInfo": "regions/us-central1$",
    "projectInfo": f"/compute/v1/projects/{PROJECT}$",
}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("kind", [Kind.PERMISSION_DENIED, Kind.API_DISABLED])
async def test_a_part_that_may_not_be_read_is_a_finding_and_the_others_are_read(section: str, kind: Kind) -> None:
    sky = Sky()
    sky.world.faults.add(kind, match=SECTIONS[section], times=None)
    gathered = await look(sky)
    assert gathered.document[section] is None
    told = [each for each in gathered.findings if each.pointer == f"/{section}"]
    assert [(each.rule, each.severity) for each in told] == [(UNREADABLE, "warning")]
    assert "HTTP 403" in told[0].text
    others = [each for each in SECTIONS if each not in (section, "cluster") and gathered.document[each] is None]
    assert others == []


async def test_rights_that_are_lacking_are_named() -> None:
    sky = Sky()
    sky.world.denied.add("compute.networks.create")
    told = [each for each in found(await look(sky)) if each.rule == "permission.missing"]
    assert [each.severity for each in told] == ["error"]
    assert "compute.networks.create" in told[0].text


async def test_where_nothing_may_be_read_there_is_one_error_that_says_why() -> None:
    sky = Sky()
    sky.world.faults.add(Kind.PERMISSION_DENIED, match=".", times=None)
    with pytest.raises(NothingRead, match="Nothing of project example-project could be read"):
        await look(sky)


async def test_a_reservation_that_pools_will_take_is_read_with_its_blocks() -> None:
    sky = Sky()
    body = {
        "name": "mine",
        "deploymentType": "DENSE",
        "specificReservationRequired": True,
        "specificReservation": {"count": "2", "instanceProperties": {"machineType": "a3-megagpu-8g"}},
    }
    path = f"/compute/v1/projects/{PROJECT}/zones/us-central1-a/reservations"
    await Client(sky.send).ask(Request(service="compute", method="POST", path=path, body=body))
    await asyncio.sleep(5)
    target = msgspec.structs.replace(TARGET, reservations=("mine/reservationBlocks/mine-block-0001",))
    gathered = await look(sky, target)
    assert gathered.findings == ()
    assert [each["name"] for each in gathered.document["reservations"]] == ["mine"]
    assert [each["name"] for each in gathered.document["reservationBlocks"]] == ["mine-block-0001"]

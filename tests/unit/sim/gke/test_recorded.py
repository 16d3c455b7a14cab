"""Requests that gcloud was recorded to send, sent to the simulated cloud: it takes them, or says why they cannot be."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import msgspec
import pytest

from tests.unit.sim.gke.cloud import CLUSTERS, REGION, ZONE, Clouded, cluster_body
from tests.unit.sim.gke.judge import DATA

KINDS = {"net", "sub", "fw", "cl", "np", "gp", "rsv", "wp"}
CASES = sorted(path.stem for path in (DATA / "golden").glob("*.json") if path.stem.split("-")[0] in KINDS)
NEVER = {
    "cl-channel-regular-no-upgrade": "Auto_upgrade cannot be false when release_channel REGULAR is set.",
}
"""What the service is known to refuse."""

NO_SUCH_BLOCK = {"np-a4-reservation-block", "np-a4x"}
"""Taken, but the nodes find no machines: the names of blocks are the server's own."""


def bodies(name: str) -> list[tuple[str, str, Any]]:
    """The mutations of a recorded case."""
    case = json.loads((DATA / "golden" / f"{name}.json").read_text(encoding="utf-8"))
    return [
        (each["method"], each["path"], each["body"])
        for step in case.get("steps", [case])
        for each in step["requests"]
        if each["method"] != "GET" and not each["path"].endswith("/wait")
    ]


def furnished(kind: str) -> Clouded:
    """A copy of the cloud of a kind, which is made once."""
    made = template(kind)
    cloud = Clouded(projects=made.world.projects)
    cloud.world.catalog = made.world.catalog
    cloud.world.store = copy.deepcopy(made.world.store)
    cloud.world.enrolled = set(made.world.enrolled)
    return cloud


@cache
def template(kind: str) -> Clouded:
    """A cloud in which everything exists that recorded requests of a kind refer to, without quotas."""
    cloud = Clouded(projects=("example-project", "owner-project"))
    cloud.world.catalog.gpu_family_quota = cloud.world.catalog.vm_family_quota = 1_000_000
    for table in (cloud.world.catalog.global_quotas, cloud.world.catalog.region_quotas):
        table.update(dict.fromkeys(table, 1e6))
    cloud.world.catalog.region_quotas |= {"PREEMPTIBLE_NVIDIA_H200_GPUS": 1e6}
    names = [
        *(f"example-net-{number}" for number in range(1, 9)),
        "example-gvnic-net",
        "example-rdma-net",
        "example-primary",
    ]
    machines = cloud.world.catalog.machine_types
    machines.update({name: msgspec.structs.replace(each, zones=()) for name, each in machines.items()})
    if kind in {"sub", "fw", "cl", "np"}:
        for name in names:
            profile = {"networkProfile": "global/networkProfiles/us-central1-a-vpc-roce"} if "rdma" in name else {}
            cloud.network(name, **profile)
    if kind == "np":
        _subnetworks(cloud)
        for place in (CLUSTERS, CLUSTERS.replace("us-central1-a", "us-central1")):
            cloud.do("POST", place, {"cluster": cluster_body()})
        _capacity(cloud)
    if kind == "cl":
        ranges = [
            {"rangeName": "pods", "ipCidrRange": "10.8.0.0/16"},
            {"rangeName": "services", "ipCidrRange": "10.9.0.0/20"},
        ]
        body = {
            "name": "example-primary-sub",
            "network": "global/networks/example-primary",
            "ipCidrRange": "10.0.0.0/20",
        }
        cloud.do("POST", f"{REGION}/subnetworks", body | {"secondaryIpRanges": ranges})
    return cloud


def _subnetworks(cloud: Clouded) -> None:
    for number in range(1, 9):
        cloud.subnetwork(number)
        body = {"network": "global/networks/example-rdma-net", "ipCidrRange": f"192.168.{100 + number}.0/24"}
        cloud.do("POST", f"{REGION}/subnetworks", body | {"name": f"example-rdma-sub-{number - 1}"})
    body = {"network": "global/networks/example-gvnic-net", "ipCidrRange": "192.168.99.0/24"}
    cloud.do("POST", f"{REGION}/subnetworks", body | {"name": "example-gvnic-sub"})


def _capacity(cloud: Clouded) -> None:
    near = {"name": "example-policy", "groupPlacementPolicy": {"collocation": "COLLOCATED"}}
    cloud.do("POST", f"{REGION}/resourcePolicies", near)
    owners = ZONE.replace("example-project", "owner-project")
    for place in (ZONE, owners):
        specific = {"count": "64", "instanceProperties": {"machineType": "a3-megagpu-8g"}}
        cloud.do("POST", f"{place}/reservations", {"name": "example-reservation", "specificReservation": specific})


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_request_is_taken_or_refused_for_a_known_reason(name: str) -> None:
    cloud = furnished(name.split("-", maxsplit=1)[0])
    for method, path, body in bodies(name):
        if name in NEVER:
            assert cloud.refused(method, path, body)[2] == NEVER[name]
        else:
            done = cloud.do(method, path, body)
            assert (done["status"], "error" in done) == ("DONE", name in NO_SUCH_BLOCK)

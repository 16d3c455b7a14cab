"""Requests that gcloud was recorded to send, sent to the simulated cloud: it takes them, or says why they cannot be."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import msgspec
import pytest

from tests.unit.sim.gke.cloud import CLUSTER, CLUSTERS, POOLS, REGION, ZONE, Clouded, cluster_body, pool_body
from tests.unit.sim.gke.judge import DATA

KINDS = {"net", "sub", "fw", "cl", "np", "gp", "rsv", "wp"}
CHANGES = {"upd", "del"}
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
    if kind in {"sub", "fw", "cl", "np", *CHANGES}:
        for name in names:
            profile = {"networkProfile": "global/networkProfiles/us-central1-a-vpc-roce"} if "rdma" in name else {}
            cloud.network(name, **profile)
    if kind in {"np", *CHANGES}:
        _subnetworks(cloud)
        for place in (CLUSTERS, CLUSTERS.replace("us-central1-a", "us-central1")):
            cloud.do("POST", place, {"cluster": cluster_body()})
        _capacity(cloud)
    if kind in CHANGES:
        for place in (POOLS, POOLS.replace("us-central1-a", "us-central1")):
            cloud.do("POST", place, {"nodePool": pool_body()})
        cloud.firewall()
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


def reserve_what_is_asked_for(cloud: Clouded, body: Any) -> None:
    """Let the reservations that stand be of the machine type of the pool in ``body``."""
    machine = ((body or {}).get("nodePool") or {}).get("config", {}).get("machineType")
    for project in cloud.world.projects:
        for _, each in cloud.world.store.of(project, "reservations"):
            if machine and each["name"] == "example-reservation":
                each["specificReservation"]["instanceProperties"]["machineType"] = machine


def _subnetworks(cloud: Clouded) -> None:
    for number in range(1, 9):
        cloud.subnetwork(number)
        body = {"network": "global/networks/example-rdma-net", "ipCidrRange": f"192.168.{100 + number}.0/24"}
        cloud.do("POST", f"{REGION}/subnetworks", body | {"name": f"example-rdma-sub-{number - 1}"})
    body = {"network": "global/networks/example-gvnic-net", "ipCidrRange": "192.168.99.0/24"}
    cloud.do("POST", f"{REGION}/subnetworks", body | {"name": "example-gvnic-sub"})


def _capacity(cloud: Clouded, *, projects: tuple[str, ...] = ("example-project", "owner-project")) -> None:
    near = {"name": "example-policy", "groupPlacementPolicy": {"collocation": "COLLOCATED"}}
    cloud.do("POST", f"{REGION}/resourcePolicies", near)
    for place in (ZONE.replace("example-project", project) for project in projects):
        specific = {"count": "64", "instanceProperties": {"machineType": "a3-megagpu-8g"}}
        cloud.do("POST", f"{place}/reservations", {"name": "example-reservation", "specificReservation": specific})


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_request_is_taken_or_refused_for_a_known_reason(name: str) -> None:
    cloud = furnished(name.split("-", maxsplit=1)[0])
    for method, path, body in bodies(name):
        reserve_what_is_asked_for(cloud, body)
        if name in NEVER:
            assert cloud.refused(method, path, body)[2] == NEVER[name]
        else:
            done = cloud.do(method, path, body)
            assert (done["status"], "error" in done) == ("DONE", name in NO_SUCH_BLOCK)


CHANGED = sorted(path.stem for path in (DATA / "golden").glob("*.json") if path.stem.split("-")[0] in CHANGES)


@pytest.mark.parametrize("name", CHANGED)
def test_a_recorded_change_is_made(name: str) -> None:
    cloud = furnished(name.split("-", maxsplit=1)[0])
    current = cloud.good("GET", CLUSTER)
    read: dict[str, Any] = {"labelFingerprint": current["labelFingerprint"]}  # gcloud sends back what it has read
    version = {"resourceVersion": current["maintenancePolicy"]["resourceVersion"]}
    for method, path, body in bodies(name):
        more: dict[str, Any] = {}
        if name == "upd-cluster-labels":
            more = read
        if name == "upd-cluster-exclusion":
            more = {"maintenancePolicy": body["maintenancePolicy"] | version}
        done = cloud.do(method, path, body if body is None else body | more)
        assert (done["status"], "error" in done) == ("DONE", False)
        if method == "DELETE":
            assert cloud.ask("GET", path).status == 404


def played(cloud: Clouded, name: str) -> None:
    """Send a whole recorded build or tear-down; all of it must go well."""
    for method, path, body in bodies(name):
        reserve_what_is_asked_for(cloud, body)
        done = cloud.do(method, path, body)
        assert (done["status"], "error" in done) == ("DONE", False), (path, done)


def test_a_recorded_build_and_its_tear_down_leave_nothing() -> None:
    cloud = Clouded()
    cloud.world.catalog.gpu_family_quota = cloud.world.catalog.vm_family_quota = 1_000_000
    cloud.world.catalog.global_quotas |= {"GPUS_ALL_REGIONS": 1e6, "CPUS_ALL_REGIONS": 1e6}
    played(cloud, "seq-tcpx-create")
    assert len(cloud.world.store.names("networks")) == 5
    played(cloud, "seq-tcpx-destroy")
    assert cloud.world.store.made() == []


@pytest.mark.parametrize("name", ["seq-tcpxo-create", "seq-ultra-create"])
def test_a_recorded_build_goes_through(name: str) -> None:
    cloud = Clouded()
    cloud.world.catalog.global_quotas |= {"GPUS_ALL_REGIONS": 64}
    _capacity(cloud, projects=("example-project",))
    cloud.network("example-gvnic-primary")  # which stood before the recorded build of A3 Ultra
    body = {"name": "example-gvnic-primary-sub", "network": "global/networks/example-gvnic-primary"}
    cloud.do("POST", f"{REGION}/subnetworks", body | {"ipCidrRange": "10.0.0.0/20"})
    played(cloud, name)
    assert len(cloud.world.store.names("nodePools")) == 2

"""Node pools of the simulated container API: nodes that come up, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.sim.gke.faults import Kind
from tests.unit.sim.gke.cloud import CLUSTER, GLOBAL, POOLS, PROJECT, REGION, ZONE, Clouded, extra_networks, pool_body
from tests.unit.sim.gke.judge import recorded, shape

POOL = f"{POOLS}/gpu-pool"


@pytest.fixture
def cloud() -> Clouded:
    made = Clouded()
    made.cluster()
    return made


def reserve(cloud: Clouded, *, count: int = 2, **more: Any) -> dict[str, Any]:
    """A reservation, and the node configuration that uses it."""
    body = {
        "name": "example-reservation",
        "specificReservationRequired": True,
        "specificReservation": {"count": str(count), "instanceProperties": {"machineType": "a3-megagpu-8g"}},
    }
    cloud.do("POST", f"{ZONE}/reservations", body | more)
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["example-reservation"],
    }
    config: dict[str, Any] = pool_body()["config"] | {"reservationAffinity": affinity}
    return config


def test_a_pool_with_everything_looks_as_recorded(cloud: Clouded) -> None:
    cloud.networks(8)
    config = reserve(cloud) | {"oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"]}
    config["accelerators"][0]["gpuDriverInstallationConfig"] = {"gpuDriverVersion": "LATEST"}
    cloud.do(
        "POST",
        f"{REGION}/resourcePolicies",
        {"name": "example-policy", "groupPlacementPolicy": {"collocation": "COLLOCATED"}},
    )
    done = cloud.pool(
        config=config,
        networkConfig=extra_networks(8),
        management={"autoUpgrade": False, "autoRepair": True},
        placementPolicy={"policyName": "example-policy"},
    )
    assert shape(done) == shape(recorded("container-operation-nodepool-done")["body"])
    found, wanted = cloud.good("GET", POOL), recorded("container-nodepool")["body"]
    assert shape(found) == shape(wanted)
    assert found["config"] == wanted["config"]
    assert (
        found["networkConfig"]["additionalNodeNetworkConfigs"]
        == wanted["networkConfig"]["additionalNodeNetworkConfigs"]
    )
    assert found["selfLink"] == wanted["selfLink"]
    assert cloud.good("GET", CLUSTER)["currentNodeCount"] == 3


def test_a_placement_and_a_reservation_look_as_recorded(cloud: Clouded) -> None:
    reserve(cloud, deploymentType="DENSE", schedulingType="GROUPED")
    cloud.do(
        "POST",
        f"{REGION}/resourcePolicies",
        {"name": "example-policy", "groupPlacementPolicy": {"collocation": "COLLOCATED"}},
    )
    policy = cloud.good("GET", f"{REGION}/resourcePolicies/example-policy")
    assert shape(policy) == shape(recorded("compute-resource-policy")["body"])
    found = cloud.good("GET", f"{ZONE}/reservations/example-reservation")
    assert shape(found) == shape(recorded("compute-reservation")["body"])


def test_networks_and_subnetworks_of_a_pool_are_in_use(cloud: Clouded) -> None:
    cloud.networks(1)
    cloud.do(
        "POST", f"{REGION}/resourcePolicies", {"name": "near", "groupPlacementPolicy": {"collocation": "COLLOCATED"}}
    )
    cloud.pool(networkConfig=extra_networks(1), placementPolicy={"policyName": "near"})
    for path in (f"{REGION}/subnetworks/example-sub-1", f"{REGION}/resourcePolicies/near"):
        code, reason, text = cloud.refused("DELETE", path)
        assert (code, reason) == (400, "resourceInUseByAnotherResource")
        assert "nodePools/gpu-pool'" in text


def test_additional_networks_must_exist_and_belong_together(cloud: Clouded) -> None:
    cloud.networks(2)
    wrong = [
        [{"network": "example-net-9", "subnetwork": "example-sub-9"}],
        [{"network": "example-net-1", "subnetwork": "example-sub-2"}],
        [{"network": "example-net-1", "subnetwork": "example-sub-1"}] * 2,
        [{"network": "default", "subnetwork": "default"}],
    ]
    for each in wrong:
        body = pool_body(networkConfig={"additionalNodeNetworkConfigs": each})
        assert cloud.refused("POST", POOLS, {"nodePool": body})[0] == 400


def test_a_cluster_without_multi_networking_takes_no_additional_networks() -> None:
    cloud = Clouded()
    cloud.cluster(networkConfig={"datapathProvider": "ADVANCED_DATAPATH"})
    cloud.networks(1)
    body = pool_body(networkConfig=extra_networks(1))
    assert "multi-networking" in cloud.refused("POST", POOLS, {"nodePool": body})[2]


def test_a_machine_type_is_only_where_it_is_offered(cloud: Clouded) -> None:
    body = pool_body(locations=["us-central1-f"])
    assert '"us-central1-f"' in cloud.refused("POST", POOLS, {"nodePool": body})[2]


def test_gpus_beyond_the_quota_are_refused_at_once(cloud: Clouded) -> None:
    cloud.world.catalog.gpu_family_quota, cloud.world.catalog.vm_family_quota = 16, 500
    answer = cloud.ask("POST", POOLS, {"nodePool": pool_body(initialNodeCount=3)})
    assert shape(answer.body) == shape(recorded("container-error-403-quota")["body"])
    assert '"GPUS_PER_GPU_FAMILY"' not in answer.body["error"]["message"]  # 624 CPUs of 500 come first
    cloud.world.catalog.vm_family_quota = 5000
    assert (
        "\"GPUS_PER_GPU_FAMILY\": request requires '24.0' and is short '8.0'"
        in cloud.refused("POST", POOLS, {"nodePool": pool_body(initialNodeCount=3)})[2]
    )
    spot = pool_body()["config"] | {"spot": True}
    assert "PREEMPTIBLE_" in cloud.refused("POST", POOLS, {"nodePool": pool_body(config=spot)})[2]


def test_a_pool_grows_only_as_far_as_the_quota(cloud: Clouded) -> None:
    cloud.world.catalog.gpu_family_quota = 16
    cloud.pool(initialNodeCount=1)
    assert cloud.refused("POST", f"{POOL}:setSize", {"nodeCount": 3})[0] == 403
    cloud.do("POST", f"{POOL}:setSize", {"nodeCount": 2})
    cloud.do("POST", f"{POOL}:setSize", {"nodeCount": 0})
    assert cloud.good("GET", CLUSTER)["currentNodeCount"] == 1


def test_a_reservation_stands_for_the_quota_of_gpus(cloud: Clouded) -> None:
    cloud.world.catalog.gpu_family_quota = 0
    cloud.pool(config=reserve(cloud))
    found = cloud.good("GET", f"{ZONE}/reservations/example-reservation")
    assert found["specificReservation"]["inUseCount"] == "2"
    assert cloud.refused("DELETE", f"{ZONE}/reservations/example-reservation")[0] == 400
    cloud.do("DELETE", POOL)
    found = cloud.good("GET", f"{ZONE}/reservations/example-reservation")
    assert found["specificReservation"]["inUseCount"] == "0"


def test_a_reservation_that_is_full_is_a_stockout(cloud: Clouded) -> None:
    done = cloud.pool(config=reserve(cloud, count=1))
    assert "[GCE_STOCKOUT]" in done["statusMessage"]
    assert cloud.good("GET", POOL)["status"] == "ERROR"


def test_a_reservation_of_other_machines_is_no_help(cloud: Clouded) -> None:
    config = reserve(cloud) | {"machineType": "a3-highgpu-8g"}
    assert "[GCE_STOCKOUT]" in cloud.pool(config=config)["statusMessage"]


def test_a_stockout_leaves_the_pool_in_error(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.STOCKOUT, r"POST .*/nodePools$")
    done = cloud.pool()
    assert shape(done) == shape(recorded("container-operation-stockout")["body"])
    assert done["error"]["message"] == done["statusMessage"]
    found = cloud.good("GET", POOL)
    assert shape(found)["conditions"] == shape(recorded("container-nodepool-stockout")["body"])["conditions"]
    assert (found["status"], found["conditions"][0]["code"]) == ("ERROR", "GCE_STOCKOUT")
    assert cloud.good("GET", CLUSTER)["currentNodeCount"] == 1
    cloud.do("DELETE", POOL)
    assert cloud.refused("GET", POOL)[0] == 404


def test_a_partial_stockout_runs_with_an_error(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.PARTIAL_STOCKOUT, r"POST .*/nodePools$")
    assert "Expected 2, running 1" in cloud.pool()["statusMessage"]
    assert cloud.good("GET", POOL)["status"] == "RUNNING_WITH_ERROR"


def test_a_pool_in_error_comes_up_when_it_is_resized(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.STOCKOUT, r"POST .*/nodePools$")
    cloud.pool()
    done = cloud.do("POST", f"{POOL}:setSize", {"nodeCount": 1})
    assert done["operationType"] == "SET_NODE_POOL_SIZE"
    found = cloud.good("GET", POOL)
    assert (found["status"], found["initialNodeCount"], "conditions" in found) == ("RUNNING", 1, False)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Kind.QUOTA_AT_COMPLETION, "quota-at-completion"), (Kind.ERROR_ONLY, "error-only")],
)
def test_a_quota_can_be_exceeded_only_at_the_end(cloud: Clouded, kind: Kind, name: str) -> None:
    cloud.world.faults.add(kind, r"POST .*/nodePools$")
    done = cloud.pool()
    assert shape(done) == shape(recorded(f"container-operation-{name}")["body"])
    assert cloud.good("GET", POOL)["conditions"][0]["code"] == "GCE_QUOTA_EXCEEDED"


def test_an_org_policy_can_stop_the_nodes(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.CONDITION_NOT_MET, r"POST .*/nodePools$")
    assert "[CONDITION_NOT_MET]" in cloud.pool()["statusMessage"]
    assert cloud.good("GET", POOL)["conditions"][0]["canonicalCode"] == "FAILED_PRECONDITION"


def test_five_pools_have_operations_at_once_and_no_sixth(cloud: Clouded) -> None:
    small = {"config": {"machineType": "e2-medium"}, "initialNodeCount": 1}
    for number in range(5):
        cloud.good("POST", POOLS, {"nodePool": small | {"name": f"pool-{number}"}})
    answer = cloud.ask("POST", POOLS, {"nodePool": small | {"name": "pool-5"}})
    assert answer.status == 429
    assert answer.body == recorded("container-error-429-concurrent-operations")["body"]
    assert cloud.refused("DELETE", f"{POOLS}/pool-0")[0] == 400
    cloud.wait()
    cloud.good("POST", POOLS, {"nodePool": small | {"name": "pool-5"}})


@pytest.mark.parametrize(
    ("change", "where", "value"),
    [
        ({"labels": {"labels": {"team": "ml"}}}, ("config", "labels"), {"team": "ml"}),
        ({"resourceLabels": {"labels": {"cost": "42"}}}, ("config", "resourceLabels"), {"cost": "42"}),
        ({"taints": {"taints": []}}, ("config", "taints"), []),
        ({"tags": {"tags": ["gpu"]}}, ("config", "tags"), ["gpu"]),
        ({"gvnic": {"enabled": False}}, ("config", "gvnic"), {"enabled": False}),
        ({"locations": ["us-central1-a", "us-central1-c"]}, ("locations",), ["us-central1-a", "us-central1-c"]),
        ({"nodeVersion": "1.31"}, ("version",), "1.31.4-gke.1183000"),
        ({"upgradeSettings": {"maxSurge": 0}}, ("upgradeSettings", "maxSurge"), 0),
        ({"machineType": "a3-highgpu-8g"}, ("config", "machineType"), "a3-highgpu-8g"),
    ],
)
def test_fields_that_change_in_place(
    cloud: Clouded, change: dict[str, Any], where: tuple[str, ...], value: Any
) -> None:
    cloud.pool()
    before = cloud.good("GET", POOL)["etag"]
    cloud.do("PUT", POOL, change)
    found = cloud.good("GET", POOL)
    assert found["etag"] != before
    for step in where:
        found = found[step]
    assert found == value


def test_fields_that_only_a_new_pool_can_have_are_no_part_of_the_update(cloud: Clouded) -> None:
    cloud.pool()
    assert "Cannot find field" in cloud.refused("PUT", POOL, {"placementPolicy": {"policyName": "x"}})[2]
    assert "Must specify" in cloud.refused("PUT", POOL, {"name": "x"})[2]
    assert cloud.refused("PUT", POOL, {"etag": "stale", "tags": {"tags": ["a"]}})[0] == 400


def test_management_and_autoscaling_have_methods_of_their_own(cloud: Clouded) -> None:
    cloud.pool()
    cloud.do("POST", f"{POOL}:setManagement", {"management": {"autoRepair": False}})
    assert cloud.good("GET", POOL)["management"] == {"autoRepair": False, "autoUpgrade": False}
    scaling = {"enabled": True, "maxNodeCount": 4}
    cloud.do("POST", f"{POOL}:setAutoscaling", {"autoscaling": scaling})
    assert cloud.good("GET", POOL)["autoscaling"] == scaling
    cloud.do("POST", f"{POOL}:setAutoscaling", {"autoscaling": {"enabled": False}})
    assert "autoscaling" not in cloud.good("GET", POOL)


def test_a_change_of_a_pool_holds_that_pool(cloud: Clouded) -> None:
    cloud.pool()
    cloud.good("POST", f"{POOL}:setSize", {"nodeCount": 1})
    assert cloud.good("GET", POOL)["status"] == "RECONCILING"
    assert cloud.refused("PUT", POOL, {"tags": {"tags": ["a"]}})[0] == 400
    assert cloud.refused("DELETE", CLUSTER)[0] == 400


def test_an_operation_on_a_pool_can_be_cancelled(cloud: Clouded) -> None:
    fault = cloud.world.faults.add(Kind.STUCK, r"POST .*/nodePools$")
    started = cloud.good("POST", POOLS, {"nodePool": pool_body()})
    cloud.wait(100_000)
    assert (cloud.operation(started)["status"], fault.struck) == ("RUNNING", 1)
    path = started["selfLink"].removeprefix("https://container.googleapis.com")
    assert cloud.good("POST", f"{path}:cancel", {}) == {}
    assert "cancelled" in cloud.operation(started)["statusMessage"]
    assert cloud.refused("POST", f"{path}:cancel", {})[0] == 400


def test_host_maintenance_is_known_to_v1beta1_alone(cloud: Clouded) -> None:
    config = pool_body()["config"] | {"hostMaintenancePolicy": {"maintenanceInterval": "PERIODIC"}}
    body = {"nodePool": pool_body(config=config)}
    assert '"hostMaintenancePolicy"' in cloud.refused("POST", POOLS, body)[2]
    beta = POOLS.replace("/v1/", "/v1beta1/")
    cloud.do("POST", beta, body)
    assert cloud.good("GET", f"{beta}/gpu-pool")["config"]["hostMaintenancePolicy"]["maintenanceInterval"] == "PERIODIC"
    assert "hostMaintenancePolicy" not in cloud.good("GET", POOL)["config"]


def test_a_dense_reservation_has_blocks(cloud: Clouded) -> None:
    cloud.pool(config=reserve(cloud, count=20, deploymentType="DENSE"))
    path = f"{ZONE}/reservations/example-reservation/reservationBlocks"
    found = cloud.good("GET", path)["items"]
    assert [(each["count"], each["inUseCount"]) for each in found] == [(16, 2), (4, 0)]
    one = cloud.good("GET", f"{path}/{found[0]['name']}")
    assert one["resource"] == found[0]


@pytest.mark.parametrize(("block", "status"), [("example-reservation-block-0001", "RUNNING"), ("block-9", "ERROR")])
def test_a_pool_can_name_a_block_of_its_reservation(cloud: Clouded, block: str, status: str) -> None:
    config = reserve(cloud, count=20, deploymentType="DENSE")
    config["reservationAffinity"]["values"] = [f"example-reservation/reservationBlocks/{block}"]
    cloud.pool(config=config)
    assert cloud.good("GET", POOL)["status"] == status


def test_reservations_are_checked(cloud: Clouded) -> None:
    wrong = {"name": "r", "specificReservation": {"count": "2", "instanceProperties": {"machineType": "a9-giga-9g"}}}
    assert "a9-giga-9g" in cloud.refused("POST", f"{ZONE}/reservations", wrong)[2]
    assert cloud.refused("POST", f"{ZONE}/reservations", {"name": "r"})[0] == 400


def test_usage_is_counted_from_what_exists(cloud: Clouded) -> None:
    def used(path: str) -> dict[str, float]:
        return {each["metric"]: each["usage"] for each in cloud.good("GET", path)["quotas"]}

    before = used(f"{PROJECT}/regions/us-central1")
    cloud.networks(1)
    cloud.pool()
    after = used(f"{PROJECT}/regions/us-central1")
    assert after["CPUS"] == before["CPUS"] == 4  # CPUs beside GPUs count by family
    assert used(PROJECT)["CPUS_ALL_REGIONS"] == 420
    assert used(PROJECT)["GPUS_ALL_REGIONS"] == 16
    assert used(PROJECT)["NETWORKS"] == 2
    assert cloud.good("GET", f"{GLOBAL}/networks/default")["name"] == "default"


@pytest.mark.parametrize("name", ["", "Gpu", "gpu_pool", "1pool", "pool-", "p" * 41])
def test_a_pool_and_a_cluster_need_a_good_name(cloud: Clouded, name: str) -> None:
    assert "node_pool.name" in cloud.refused("POST", POOLS, {"nodePool": pool_body(name=name)})[2]
    assert "cluster.name" in cloud.refused("POST", POOLS.rsplit("/", 2)[0], {"cluster": {"name": name}})[2]

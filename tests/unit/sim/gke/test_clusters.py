"""Clusters of the simulated container API."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.sim.gke.faults import Kind
from tests.unit.sim.gke.cloud import CLUSTER, CLUSTERS, GLOBAL, LOCATION, POOLS, PROJECT, REGION, Clouded, cluster_body
from tests.unit.sim.gke.judge import recorded, shape


@pytest.fixture
def cloud() -> Clouded:
    return Clouded()


def plain_cluster() -> dict[str, Any]:
    """What was asked for when the recorded cluster was made."""
    pool = {"name": "default-pool", "initialNodeCount": 3, "management": {"autoRepair": True, "autoUpgrade": False}}
    return cluster_body(nodePools=[pool], initialClusterVersion="1.30.4-gke.1129000")


def test_a_cluster_is_provisioning_and_then_runs_with_an_endpoint(cloud: Clouded) -> None:
    started = cloud.good("POST", CLUSTERS, {"cluster": plain_cluster()})
    early = cloud.good("GET", CLUSTER)
    assert shape(early) == shape(recorded("container-cluster-provisioning")["body"])
    cloud.wait()
    assert cloud.operation(started)["status"] == "DONE"
    found = cloud.good("GET", CLUSTER)
    assert shape(found) == shape(recorded("container-cluster")["body"])
    assert (found["status"], found["currentNodeCount"]) == ("RUNNING", 3)


def test_the_defaults_are_those_that_were_recorded(cloud: Clouded) -> None:
    cloud.do("POST", CLUSTERS, {"cluster": plain_cluster()})
    found, wanted = cloud.good("GET", CLUSTER), recorded("container-cluster")["body"]
    own = {
        "createTime",
        "endpoint",
        "etag",
        "id",
        "ipAllocationPolicy",
        "labelFingerprint",
        "maintenancePolicy",
        "nodePools",
    }
    assert {key: found[key] for key in found if key not in own} == {
        key: wanted[key] for key in wanted if key not in own
    }
    assert found["ipAllocationPolicy"]["servicesIpv4CidrBlock"] == wanted["servicesIpv4Cidr"]


def test_the_operation_of_a_cluster_tells_how_far_it_is(cloud: Clouded) -> None:
    started = cloud.good("POST", CLUSTERS, {"cluster": plain_cluster()})
    cloud.wait(6)
    running = cloud.operation(started)
    assert shape(running) == shape(recorded("container-operation-running")["body"])
    share = {each["name"]: int(each["intValue"]) for each in running["progress"]["metrics"]}
    assert share["CLUSTER_CONFIGURING"] == share["CLUSTER_CONFIGURING_TOTAL"] == 9
    assert share["CLUSTER_DEPLOYING"] == 4
    assert share["CLUSTER_HEALTHCHECKING"] == 0
    cloud.wait(4)
    done = cloud.operation(started)
    assert shape(done) == shape(recorded("container-operation-done")["body"])
    assert done["progress"] == recorded("container-operation-done")["body"]["progress"]


def test_links_of_operations_carry_the_project_number_and_the_kind_of_place(cloud: Clouded) -> None:
    zonal = cloud.good("POST", CLUSTERS, {"cluster": plain_cluster()})
    assert zonal["targetLink"].endswith("/v1/projects/123456789012/zones/us-central1-a/clusters/example-cluster")
    place = LOCATION.replace("us-central1-a", "us-central1")
    regional = cloud.good("POST", f"{place}/clusters", {"cluster": plain_cluster()})
    assert regional["targetLink"].endswith("/v1/projects/123456789012/locations/us-central1/clusters/example-cluster")
    assert set(recorded("container-operation-regional-running")["body"]) <= set(regional)
    cloud.wait()
    assert cloud.good("GET", f"{place}/clusters/example-cluster")["locations"] == [
        f"us-central1-{zone}" for zone in "abc"
    ]


def test_a_name_is_taken_from_the_request_on(cloud: Clouded) -> None:
    cloud.good("POST", CLUSTERS, {"cluster": plain_cluster()})
    answer = cloud.ask("POST", CLUSTERS, {"cluster": plain_cluster()})
    assert shape(answer.body) == shape(recorded("container-error-409-already-exists")["body"])
    assert answer.status == 409


def test_without_the_default_network_a_cluster_needs_a_name_for_one() -> None:
    bare = Clouded(default_network=False)
    answer = bare.ask("POST", CLUSTERS, {"cluster": plain_cluster()})
    assert answer.body == recorded("container-error-400-no-default-network")["body"]


@pytest.mark.parametrize("version", ["1.27", "1.27.1-gke.1", "newest"])
def test_an_unknown_version_is_refused(cloud: Clouded, version: str) -> None:
    answer = cloud.ask("POST", CLUSTERS, {"cluster": cluster_body(initialClusterVersion=version)})
    assert shape(answer.body) == shape(recorded("container-error-400-unknown-version")["body"])
    assert f'"{version}"' in answer.body["error"]["message"]


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ("", "1.34.5-gke.1153000"),
        ("-", "1.34.5-gke.1153000"),
        ("latest", "1.35.6-gke.1250000"),
        ("1.32", "1.32.11-gke.1174000"),
    ],
)
def test_an_alias_becomes_a_whole_version(cloud: Clouded, asked: str, got: str) -> None:
    cloud.cluster(initialClusterVersion=asked)
    assert cloud.good("GET", CLUSTER)["currentMasterVersion"] == got


def test_a_channel_does_not_go_with_pools_that_are_not_upgraded(cloud: Clouded) -> None:
    body = plain_cluster() | {"releaseChannel": {"channel": "REGULAR"}}
    answer = cloud.ask("POST", CLUSTERS, {"cluster": body})
    assert answer.body == recorded("container-error-400-autoupgrade-channel")["body"]
    cloud.do("POST", CLUSTERS, {"cluster": body | {"releaseChannel": {"channel": "UNSPECIFIED"}}})
    assert cloud.good("GET", CLUSTER)["releaseChannel"] == {}


def test_a_cluster_without_a_channel_is_put_into_regular(cloud: Clouded) -> None:
    cloud.do("POST", CLUSTERS, {"cluster": plain_cluster()})
    assert cloud.good("GET", CLUSTER)["releaseChannel"] == {"channel": "REGULAR"}


def test_multi_networking_needs_dataplane_v2(cloud: Clouded) -> None:
    body = cluster_body(networkConfig={"enableMultiNetworking": True})
    assert "Dataplane V2" in cloud.refused("POST", CLUSTERS, {"cluster": body})[2]


def test_firewall_rules_of_gke_stand_while_the_cluster_does(cloud: Clouded) -> None:
    cloud.network()
    cloud.subnetwork()
    cloud.cluster(network="example-net-1", subnetwork="example-sub-1")
    rules = [name for name in cloud.world.store.names("firewalls") if name.startswith("gke-example-cluster-")]
    assert len(rules) == 4
    assert cloud.refused("DELETE", f"{GLOBAL}/networks/example-net-1")[:2] == (400, "resourceInUseByAnotherResource")
    done = cloud.do("DELETE", CLUSTER)
    assert shape(done) == shape(recorded("container-operation-delete-done")["body"])
    assert not [name for name in cloud.world.store.names("firewalls") if name.startswith("gke-")]
    cloud.do("DELETE", f"{REGION}/subnetworks/example-sub-1")
    cloud.do("DELETE", f"{GLOBAL}/networks/example-net-1")
    assert cloud.world.store.made() == []


def test_pods_get_a_secondary_range_which_goes_with_the_cluster(cloud: Clouded) -> None:
    cloud.network()
    cloud.subnetwork()
    cloud.cluster(network="example-net-1", subnetwork="example-sub-1")
    made = cloud.good("GET", f"{REGION}/subnetworks/example-sub-1")["secondaryIpRanges"]
    policy = cloud.good("GET", CLUSTER)["ipAllocationPolicy"]
    assert made == [{"rangeName": policy["clusterSecondaryRangeName"], "ipCidrRange": policy["clusterIpv4CidrBlock"]}]
    cloud.do("DELETE", CLUSTER)
    assert "secondaryIpRanges" not in cloud.good("GET", f"{REGION}/subnetworks/example-sub-1")


def test_named_secondary_ranges_are_used_and_must_exist(cloud: Clouded) -> None:
    cloud.network()
    ranges = [
        {"rangeName": "pods", "ipCidrRange": "10.8.0.0/16"},
        {"rangeName": "services", "ipCidrRange": "10.9.0.0/20"},
    ]
    cloud.subnetwork(secondaryIpRanges=ranges)
    policy = {"useIpAliases": True, "clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"}
    where = {"network": "example-net-1", "subnetwork": "example-sub-1"}
    wrong = cluster_body(ipAllocationPolicy=policy | {"clusterSecondaryRangeName": "nodes"}, **where)
    assert '"nodes"' in cloud.refused("POST", CLUSTERS, {"cluster": wrong})[2]
    cloud.cluster(ipAllocationPolicy=policy, **where)
    found = cloud.good("GET", CLUSTER)
    assert (found["clusterIpv4Cidr"], found["servicesIpv4Cidr"]) == ("10.8.0.0/16", "10.9.0.0/20")


def test_the_network_of_another_project_can_be_shared() -> None:
    cloud = Clouded(projects=("example-project", "host-project"))
    host = PROJECT.replace("example-project", "host-project")
    cloud.do("POST", f"{host}/global/networks", {"name": "shared"})
    body = {"name": "sub", "network": "global/networks/shared", "ipCidrRange": "10.0.0.0/20"}
    cloud.do("POST", f"{host}/regions/us-central1/subnetworks", body)
    home = host.removeprefix("/compute/v1/")
    network, subnet = f"{home}/global/networks/shared", f"{home}/regions/us-central1/subnetworks/sub"
    cloud.cluster(network=network, subnetwork=subnet)
    assert cloud.good("GET", CLUSTER)["networkConfig"]["network"] == network
    assert cloud.refused("DELETE", f"/compute/v1/{subnet}")[:2] == (400, "resourceInUseByAnotherResource")


def test_a_cluster_with_an_operation_takes_no_other(cloud: Clouded) -> None:
    started = cloud.good("POST", CLUSTERS, {"cluster": plain_cluster()})
    answer = cloud.ask("DELETE", CLUSTER)
    assert shape(answer.body) == shape(recorded("container-error-400-has-operation")["body"])
    assert started["name"] in answer.body["error"]["message"]
    assert cloud.refused("POST", POOLS, {"nodePool": {"name": "p", "initialNodeCount": 1}})[0] == 400


def test_labels_change_with_the_fingerprint_that_was_read(cloud: Clouded) -> None:
    cloud.cluster()
    stale = {"labelFingerprint": "00000000", "resourceLabels": {"team": "ml"}}
    assert cloud.refused("POST", f"{CLUSTER}:setResourceLabels", stale)[0] == 400
    cloud.do(
        "POST",
        f"{CLUSTER}:setResourceLabels",
        stale | {"labelFingerprint": cloud.good("GET", CLUSTER)["labelFingerprint"]},
    )
    found = cloud.good("GET", CLUSTER)
    assert found["resourceLabels"] == {"team": "ml"}
    assert cloud.refused("POST", f"{CLUSTER}:setResourceLabels", stale)[0] == 400


def test_a_maintenance_exclusion_is_kept(cloud: Clouded) -> None:
    cloud.cluster()
    exclusion = {"startTime": "2026-12-01T00:00:00Z", "endTime": "2027-03-01T00:00:00Z"}
    policy = {
        "resourceVersion": cloud.good("GET", CLUSTER)["maintenancePolicy"]["resourceVersion"],
        "window": {"maintenanceExclusions": {"freeze": exclusion}},
    }
    cloud.do("POST", f"{CLUSTER}:setMaintenancePolicy", {"maintenancePolicy": policy})
    assert cloud.good("GET", CLUSTER)["maintenancePolicy"]["window"] == policy["window"]
    assert cloud.refused("POST", f"{CLUSTER}:setMaintenancePolicy", {"maintenancePolicy": policy})[0] == 409


def test_times_come_back_in_utc(cloud: Clouded) -> None:
    exclusion = {"startTime": "2026-12-01T01:00:00+01:00", "endTime": "2027-03-01T00:00:00+00:00"}
    cloud.cluster(maintenancePolicy={"window": {"maintenanceExclusions": {"freeze": exclusion}}})
    window = cloud.good("GET", CLUSTER)["maintenancePolicy"]["window"]
    assert window["maintenanceExclusions"]["freeze"] == {
        "startTime": "2026-12-01T00:00:00Z",
        "endTime": "2027-03-01T00:00:00Z",
    }
    wrong = {"window": {"maintenanceExclusions": {"freeze": exclusion | {"endTime": "tomorrow"}}}}
    assert "tomorrow" in cloud.refused("POST", f"{CLUSTER}:setMaintenancePolicy", {"maintenancePolicy": wrong})[2]


def test_one_thing_at_a_time_is_updated(cloud: Clouded) -> None:
    cloud.cluster()
    done = cloud.do("PUT", CLUSTER, {"update": {"desiredMasterVersion": "1.33"}})
    assert done["operationType"] == "UPGRADE_MASTER"
    assert cloud.good("GET", CLUSTER)["currentMasterVersion"] == "1.33.4-gke.1036000"
    cloud.do("PUT", CLUSTER, {"update": {"desiredReleaseChannel": {"channel": "RAPID"}}})
    assert cloud.good("GET", CLUSTER)["releaseChannel"] == {"channel": "RAPID"}
    cloud.do("PUT", CLUSTER, {"update": {"desiredNodeVersion": "1.33", "desiredNodePoolId": "default-pool"}})
    assert cloud.good("GET", f"{POOLS}/default-pool")["version"] == "1.33.4-gke.1036000"
    two = {"desiredMasterVersion": "1.33", "desiredLoggingService": "none"}
    assert "exactly one" in cloud.refused("PUT", CLUSTER, {"update": two})[2]
    assert cloud.refused("PUT", CLUSTER, {"update": {"desiredTpuConfig": {}}})[0] == 400


def test_autoscaling_of_a_pool_is_set_through_the_cluster(cloud: Clouded) -> None:
    cloud.cluster()
    scaling = {"enabled": True, "minNodeCount": 0, "maxNodeCount": 4}
    update = {"desiredNodePoolId": "default-pool", "desiredNodePoolAutoscaling": scaling}
    cloud.do("PUT", CLUSTER, {"update": update})
    assert cloud.good("GET", f"{POOLS}/default-pool")["autoscaling"] == scaling


def test_deleting_the_default_pool_clears_the_node_config_of_the_cluster(cloud: Clouded) -> None:
    cloud.cluster()
    assert "nodeConfig" in cloud.good("GET", CLUSTER)
    cloud.do("DELETE", f"{POOLS}/default-pool")
    found = cloud.good("GET", CLUSTER)
    assert "nodeConfig" not in found
    assert "nodePools" not in found


def test_clusters_are_listed_by_place_and_everywhere(cloud: Clouded) -> None:
    cloud.cluster()
    everywhere = LOCATION.replace("us-central1-a", "-")
    assert [each["name"] for each in cloud.good("GET", f"{everywhere}/clusters")["clusters"]] == ["example-cluster"]
    other = LOCATION.replace("us-central1-a", "us-east4-a")
    assert cloud.good("GET", f"{other}/clusters") == {}


def test_a_missing_cluster_is_named(cloud: Clouded) -> None:
    answer = cloud.ask("GET", CLUSTER)
    assert shape(answer.body) == shape(recorded("container-error-404-not-found")["body"])
    assert answer.status == 404


def test_versions_are_listed(cloud: Clouded) -> None:
    found = cloud.good("GET", f"{LOCATION}/serverConfig")
    assert shape(found) == shape(recorded("container-server-config")["body"])


def test_autopilot_is_refused_as_not_simulated(cloud: Clouded) -> None:
    body = cluster_body(autopilot={"enabled": True})
    assert "Autopilot" in cloud.refused("POST", CLUSTERS, {"cluster": body})[2]


@pytest.mark.parametrize("kind", [Kind.STOCKOUT, Kind.QUOTA_AT_COMPLETION])
def test_a_cluster_whose_first_nodes_do_not_come_up_is_in_error(cloud: Clouded, kind: Kind) -> None:
    cloud.world.faults.add(kind, r"POST .*/clusters$")
    done = cloud.cluster()
    found = cloud.good("GET", CLUSTER)
    assert (found["status"], found["nodePools"][0]["status"]) == ("ERROR", "ERROR")
    assert found["statusMessage"] == done["statusMessage"]
    cloud.do("DELETE", CLUSTER)
    assert cloud.world.store.made() == []


def test_a_network_that_is_being_deleted_is_no_network_for_a_cluster(cloud: Clouded) -> None:
    cloud.network()
    cloud.subnetwork()
    cloud.good("DELETE", f"{REGION}/subnetworks/example-sub-1")
    body = cluster_body(network="example-net-1", subnetwork="example-sub-1")
    assert '"example-sub-1"' in cloud.refused("POST", CLUSTERS, {"cluster": body})[2]

"""The resources of a cluster file."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.gke.bodies.requests import create
from interlace.gke.cluster import FabricCluster
from interlace.gke.desired import desired
from interlace.gke.errors import SpecErrors
from interlace.gke.resource import Resource
from interlace.sim.gke.schemas import document
from tests.unit.gke.spec.clusters import CALM, FAMILIES, cluster, pool

RESOURCES = {"a3-high": 16, "a3-mega": 28, "a3-ultra": 16, "a4": 16, "a4x": 12}


def last(resources: tuple[Resource, ...], kind: str) -> dict[str, Any]:
    """Body of the last resource of a kind."""
    return next(each.body for each in reversed(resources) if each.key.kind == kind)


def unknown_fields(resource: Resource) -> list[str]:
    """What the API's document says against the request that makes a resource, but for one field it wrongly forbids."""
    request = create(resource)
    api = document(request.service, resource.version)
    body = {key: value for key, value in (request.body or {}).items() if key != "region"}
    wanted = {
        "network": "Network",
        "subnetwork": "Subnetwork",
        "firewall": "Firewall",
        "resourcePolicy": "ResourcePolicy",
        "cluster": "CreateClusterRequest",
        "nodePool": "CreateNodePoolRequest",
    }[resource.key.kind]
    return [f"{each.where} {each.value}: {each.text}" for each in api.problems(body, wanted)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_its_resources_each_after_what_it_refers_to(family: str) -> None:
    resources = desired(cluster(family))
    keys = [each.key for each in resources]
    assert len(set(keys)) == len(keys) == RESOURCES[family]
    for index, resource in enumerate(resources):
        assert set(resource.after) <= set(keys[:index])
    assert [each.key.kind for each in resources][-2:] == ["cluster", "nodePool"]
    assert keys[-1].place == "us-central1-a/train"


def test_the_hardware_is_that_of_the_family() -> None:
    config = last(desired(cluster("a3-mega")), "nodePool")["config"]
    assert config["machineType"] == "a3-megagpu-8g"
    assert config["accelerators"] == [
        {
            "acceleratorType": "nvidia-h100-mega-80gb",
            "acceleratorCount": "8",
            "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
        }
    ]
    assert config["gvnic"] == {"enabled": True}


def test_networks_have_the_mtu_of_the_family_unless_the_file_says_another() -> None:
    assert {each.body["mtu"] for each in desired(cluster("a3-high")) if each.key.kind == "network"} == {8244}
    changed = desired(cluster("a3-high", network={"mtu": 8896}))
    assert {each.body["mtu"] for each in changed if each.key.kind == "network"} == {8896}


def test_rdma_networks_have_the_profile_of_their_zone_and_no_mtu() -> None:
    found = next(each.body for each in desired(cluster("a3-ultra")) if each.key.name == "train-rdma-net")
    assert found["networkProfile"].endswith("/global/networkProfiles/us-central1-a-vpc-roce")
    assert "mtu" not in found


def test_a_rule_lets_in_the_nodes_of_its_own_subnet_alone() -> None:
    resources = desired(cluster("a3-high"))
    subnets = {each.body["network"]: each.body["ipCidrRange"] for each in resources if each.key.kind == "subnetwork"}
    rules = [each.body for each in resources if each.key.kind == "firewall"]
    assert len(rules) == 4
    for rule in rules:
        assert rule["sourceRanges"] == [subnets[rule["network"]]]


def test_scopes_are_narrow_unless_the_file_says_more() -> None:
    narrow = last(desired(cluster()), "nodePool")["config"]["oauthScopes"]
    assert "https://www.googleapis.com/auth/cloud-platform" not in narrow
    assert len(narrow) == 6
    wide = last(desired(cluster(pools=[pool(scopes=["cloud-platform"])])), "nodePool")["config"]["oauthScopes"]
    assert wide == ["https://www.googleapis.com/auth/cloud-platform"]


def test_scopes_may_be_urls_their_last_part_or_gclouds_names() -> None:
    scopes = ["storage-ro", "logging.write", "https://www.googleapis.com/auth/trace.append", "logging-write"]
    found = last(desired(cluster(pools=[pool(scopes=scopes)])), "nodePool")["config"]["oauthScopes"]
    assert [each.rpartition("/")[2] for each in found] == ["devstorage.read_only", "logging.write", "trace.append"]


def test_ranges_without_a_name_are_made_by_gke() -> None:
    resources = desired(cluster(primary={"podsName": "", "servicesName": "services"}))
    subnet = next(each.body for each in resources if each.key.name == "train-primary-sub")
    assert [each["rangeName"] for each in subnet["secondaryIpRanges"]] == ["services"]
    addresses = last(resources, "cluster")["ipAllocationPolicy"]
    assert addresses["clusterIpv4CidrBlock"] == "10.4.0.0/14"
    assert addresses["servicesSecondaryRangeName"] == "services"


@pytest.mark.parametrize(
    ("reservation", "value"),
    [
        ({"name": "r"}, "r"),
        ({"name": "r", "block": "b"}, "r/reservationBlocks/b"),
        ({"name": "r", "block": "b", "subBlock": "s"}, "r/reservationBlocks/b/reservationSubBlocks/s"),
        ({"name": "r", "project": "owner"}, "projects/owner/reservations/r"),
    ],
)
def test_a_reservation_is_named_as_its_affinity_wants_it(reservation: dict[str, str], value: str) -> None:
    found = last(desired(cluster(pools=[pool(reservation=reservation)])), "nodePool")["config"]["reservationAffinity"]
    assert found == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [value],
    }


def test_only_what_needs_a_beta_api_uses_one() -> None:
    resources = desired(cluster(pools=[pool(hostMaintenance="PERIODIC", placement={"maxDistance": 2})]))
    beta = {each.key.kind: each.version for each in resources if each.version != "v1"}
    assert beta == {"nodePool": "v1beta1", "resourcePolicy": "beta"}


def test_a_policy_that_is_made_stands_before_its_pool_and_one_that_exists_is_named() -> None:
    made = desired(cluster(pools=[pool(placement={})]))
    (policy,) = (each.key for each in made if each.key.kind == "resourcePolicy")
    assert policy in made[-1].after
    assert made[-1].body["placementPolicy"] == {"policyName": policy.name}
    existing = desired(cluster(pools=[pool(placement={"policy": "ours"})]))
    assert not [each for each in existing if each.key.kind == "resourcePolicy"]
    assert existing[-1].body["placementPolicy"] == {"policyName": "ours"}


def test_what_exists_is_referred_to_and_not_made() -> None:
    resources = desired(
        cluster(
            network={"existing": True},
            primary={"existing": True, "network": "vpc", "subnet": "sub", "podsName": "p", "servicesName": "s"},
        )
    )
    assert [each.key.kind for each in resources] == ["cluster", "nodePool"]
    assert (resources[0].body["network"], resources[0].body["subnetwork"]) == ("vpc", "sub")
    assert resources[0].body["ipAllocationPolicy"]["clusterSecondaryRangeName"] == "p"
    assert resources[1].after == (resources[0].key,)


def test_networks_of_a_shared_vpc_are_in_its_project_and_named_by_path() -> None:
    resources = desired(cluster(network={"hostProject": "host-project"}))
    assert {each.project for each in resources if each.key.kind in {"network", "subnetwork", "firewall"}} == {
        "host-project"
    }
    body = last(resources, "cluster")
    assert body["network"] == "projects/host-project/global/networks/train-primary"
    nic = last(resources, "nodePool")["networkConfig"]["additionalNodeNetworkConfigs"][0]
    assert nic["subnetwork"] == "projects/host-project/regions/us-central1/subnetworks/train-sub-1"
    assert {each.project for each in resources[-2:]} == {"my-project"}


def test_managed_networks_are_asked_for_and_not_made() -> None:
    resources = desired(cluster("a4", network={"mode": "managed"}))
    assert [each.key.name for each in resources] == ["train-primary", "train-primary-sub", "train", "gpu"]
    assert resources[-1].body["networkConfig"] == {"acceleratorNetworkProfile": "auto"}
    assert "enableMultiNetworking" not in resources[2].body["networkConfig"]


def test_nodes_are_held_in_a_channel_and_not_upgraded_outside_of_one() -> None:
    held = desired(cluster(upgrades={"hold": {"start": "2026-12-01T00:00:00Z"}}))
    window = held[-2].body["maintenancePolicy"]["window"]["maintenanceExclusions"]["interlace-hold"]
    assert window["maintenanceExclusionOptions"] == {
        "scope": "NO_MINOR_OR_NODE_UPGRADES",
        "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
    }
    assert held[-1].body["management"]["autoUpgrade"] is True
    static = desired(cluster(upgrades={"channel": "none"}))
    assert static[-2].body["releaseChannel"] == {"channel": "UNSPECIFIED"}
    assert static[-1].body["management"]["autoUpgrade"] is False


def test_ranges_that_do_not_work_make_no_resources() -> None:
    found = cluster()
    broken = msgspec.structs.replace(
        found, spec=msgspec.structs.replace(found.spec, primary=type(found.spec.primary)(range="8.8.8.0/24"))
    )
    with pytest.raises(SpecErrors, match="public"):
        desired(broken)


POOLS = st.fixed_dictionaries(
    {"name": st.just("gpu"), "nodes": st.integers(1, 8)},
    optional={
        "reservation": st.fixed_dictionaries({"name": st.just("r")}, optional={"block": st.just("b")}),
        "placement": st.sampled_from([{}, {"policy": "p"}, {"maxDistance": 2}, {"topology": "1x72"}]),
        "hostMaintenance": st.sampled_from(["PERIODIC", "AS_NEEDED"]),
        "disk": st.just({"type": "pd-ssd", "sizeGb": 200, "localSsds": 16}),
        "driver": st.sampled_from(["latest", "default", "disabled"]),
        "labels": st.just({"team": "ml"}),
        "taints": st.just([{"key": "dedicated", "value": "gpu", "effect": "NoExecute"}]),
        "tags": st.just(["gpu"]),
        "scopes": st.just(["cloud-platform"]),
        "serviceAccount": st.just("nodes@my-project.iam.gserviceaccount.com"),
        "maxPods": st.just(32),
        "autoscaling": st.just({"min": 0, "max": 8}),
        "autoRepair": st.booleans(),
        "surge": st.just({"maxSurge": 0, "maxUnavailable": 1}),
    },
)
SPECS = st.fixed_dictionaries(
    {"pools": st.lists(POOLS, min_size=1, max_size=1)},
    optional={
        "version": st.just("1.34.1-gke.1829001"),
        "upgrades": st.sampled_from(
            [{"channel": "rapid"}, {"channel": "none"}, {"hold": {"start": "2026-12-01T00:00:00Z"}}]
        ),
        "network": st.sampled_from([{"hostProject": "host-project"}, {"prefixLength": 22}, {"avoid": ["10.0.0.0/9"]}]),
        "controlPlane": st.just({"privateNodes": True, "authorizedNetworks": ["203.0.113.0/24"]}),
        "workloadIdentity": st.booleans(),
        "system": st.just({"nodes": 2, "machineType": "e2-standard-4", "disk": {"sizeGb": 50}}),
    },
)


def clusters() -> st.SearchStrategy[FabricCluster]:
    """Clusters with any of the keys of a file."""
    return st.builds(lambda family, spec: cluster(family, **spec), st.sampled_from(FAMILIES), SPECS)


@given(found=clusters())
@CALM
def test_whatever_a_file_says_its_requests_are_as_the_documents_of_the_apis_want_them(found: FabricCluster) -> None:
    for resource in desired(found):
        assert unknown_fields(resource) == []


def test_the_documents_would_notice_a_field_that_they_do_not_know() -> None:
    network = desired(cluster())[0]
    broken = msgspec.structs.replace(network, body={**network.body, "mtus": 1})
    assert unknown_fields(broken) == [" mtus: no such field"]

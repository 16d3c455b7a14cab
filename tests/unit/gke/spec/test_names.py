"""Names: one function for the VPCs, the node pool, the manifests and the policy."""

from __future__ import annotations

import pytest

from interlace.gke import names
from interlace.gke.desired import desired
from interlace.manifests.networks import networks
from tests.unit.gke.spec.clusters import FAMILIES, cluster, pool

GIVEN = [{"network": f"rail-{index}", "subnet": f"rail-{index}-sub"} for index in range(8)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("network", [{}, {"prefix": "acme"}])
def test_pool_vpcs_and_parameter_sets_name_the_same_networks_in_the_same_order(
    family: str, network: dict[str, str]
) -> None:
    found = cluster(family, network=network)
    resources = desired(found)
    node_pool = resources[-1].body["networkConfig"]["additionalNodeNetworkConfigs"]
    sets = [each["spec"] for each in networks(found.family, vpcs=names.vpcs(found)) if each["kind"] != "Network"]
    assert [(each["network"], each["subnetwork"]) for each in node_pool] == [
        (each["vpc"], each["vpcSubnet"]) for each in sets
    ]
    made = {(each.key.kind, each.key.name) for each in resources}
    for each in node_pool:
        assert ("network", each["network"]) in made
        assert ("subnetwork", each["subnetwork"]) in made


def test_names_of_ones_own_go_the_same_way() -> None:
    found = cluster(network={"nics": GIVEN})
    node_pool = desired(found)[-1].body["networkConfig"]["additionalNodeNetworkConfigs"]
    assert [each["network"] for each in node_pool] == [each["network"] for each in GIVEN]
    sets = networks(found.family, vpcs=names.vpcs(found))[8:]
    assert [each["spec"]["vpc"] for each in sets] == [each["network"] for each in GIVEN]


def test_a_nic_that_names_nothing_keeps_the_derived_name() -> None:
    found = cluster(network={"nics": [{"network": "first"}, *[{}] * 7]})
    assert [nic.network for nic in names.nics(found)][:2] == ["first", "train-net-2"]


def test_a_network_of_rdma_has_no_firewall_rule() -> None:
    found = names.nics(cluster("a3-ultra"))
    assert [nic.firewall for nic in found] == ["train-gvnic-internal-0", *[""] * 8]


def test_managed_networks_have_no_names() -> None:
    assert names.nics(cluster("a4", network={"mode": "managed"})) == ()


def test_a_policy_is_named_after_cluster_and_pool_unless_it_exists() -> None:
    made = cluster(pools=[pool(placement={})])
    existing = cluster(pools=[pool(placement={"policy": "ours"})])
    assert names.policy(made, made.spec.pools[0]) == "train-gpu-policy"
    assert names.policy(existing, existing.spec.pools[0]) == "ours"
    assert names.policy(cluster(), cluster().spec.pools[0]) == ""

"""Bundles of observed state: what is read, and how a malformed one is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlace.gke.observed.bundle import BundleError, read, wanted_family
from interlace.gke.observed.state import Want
from interlace.gke.rules.checking import NOT_OBSERVED
from tests.unit.gke.rules.bundles import DATA, GONE, before, check, errors, healthy, of_rule, put


def test_a_recorded_answer_with_the_bundle_inside_is_read_like_the_bundle() -> None:
    wrapped = (DATA / "server" / "observed-state-example.json").read_text()
    assert read(wrapped) == read(json.dumps(healthy()))


def test_the_healthy_example_has_no_errors() -> None:
    assert not errors(check(healthy()))


def test_names_paths_and_urls_mean_the_same() -> None:
    nics = "/cluster/nodePools/1/networkConfig/additionalNodeNetworkConfigs"
    links = {
        f"{nics}/0/network": "projects/example-project/global/networks/example-net-1",
        f"{nics}/1/network": "https://www.googleapis.com/compute/v1/projects/example-project/global/networks/example-net-2",
        f"{nics}/2/network": "projects/123456789012/global/networks/example-net-3",
        f"{nics}/0/subnetwork": "projects/example-project/regions/us-central1/subnetworks/example-sub-1",
        "/firewalls/0/network": "example-net-1",
        "/firewalls/1/network": "global/networks/example-net-2",
        "/subnetworks/1/network": "example-net-1",
        "/subnetworks/1/region": "us-central1",
        "/kubernetes/gkeNetworkParamSets/0/spec/vpc": "projects/example-project/global/networks/example-net-1",
        "/cluster/network": "https://www.googleapis.com/compute/v1/projects/p/global/networks/example-primary",
    }
    assert not errors(check(put(healthy(), links)))


def test_unknown_members_and_nulls_change_nothing() -> None:
    odd = {
        "/further": {"x": 1},
        "/cluster/further": [1],
        "/cluster/statusMessage": None,
        "/networks/0/further": "x",
        "/cluster/nodePools/1/config/taints": None,
    }
    assert check(put(healthy(), odd)) == check(healthy())


SECTIONS = [
    "networks",
    "subnetworks",
    "firewalls",
    "resourcePolicies",
    "reservations",
    "projectInfo",
    "regionInfo",
    "quotaInfos",
]


@pytest.mark.parametrize("section", [*SECTIONS, "cluster", "kubernetes"])
def test_a_part_that_was_not_read_is_said_to_be_unknown_with_what_it_was_needed_for(section: str) -> None:
    found = of_rule(check({**healthy(), section: None}), NOT_OBSERVED)
    (about,) = [each for each in found if each.pointer == f"/{section}"]
    assert about.severity == "info"
    assert "nothing is known about" in about.text


def test_one_kind_of_objects_that_may_not_be_listed_is_said_to_be_unknown() -> None:
    found = of_rule(check(put(healthy(), {"/kubernetes/nodes": None})), NOT_OBSERVED)
    assert "/kubernetes/nodes" in {each.pointer for each in found}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no JSON document"),
        ("{", "is no JSON document"),
        ("[" * 100_000, "is no JSON document"),
        ("\xff", "is no JSON document"),
        ("[]", "is no JSON object"),
        ("{}", "/format is None, not 'observed-state/1'"),
        ('{"format": "observed-state/2"}', "/format is 'observed-state/2'"),
        ('{"format": "observed-state/1", "want": {"flavour": "tcp"}}', "/want/flavour is 'tcp'"),
        ('{"format": "observed-state/1", "want": {"flavour": "gb200-nvl72"}}', "which GKE does not offer"),
    ],
)
def test_what_is_no_bundle_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(BundleError) as refused:
        read(text)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("/networks", {}),
        ("/networks/2", None),
        ("/networks/2/mtu", "much"),
        ("/cluster", []),
        ("/cluster/nodePools/1/config/machineType", 8),
        ("/cluster/nodePools/1/config/labels", ["x"]),
        ("/firewalls/0/allowed", "tcp"),
        ("/kubernetes/nodes/0/status/conditions/0", "Ready"),
        ("/quotaInfos/0/dimensionsInfos/0/details/value", "many"),
        ("/want/nodes", 1.5),
    ],
)
def test_a_member_of_another_form_is_refused_with_its_place(where: str, value: Any) -> None:
    with pytest.raises(BundleError) as refused:
        read(json.dumps(put(healthy(), {where: value})))
    assert refused.value.pointer == where
    assert where in str(refused.value)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("tcpx", "a3-high"),
        ("TCPXO", "a3-mega"),
        ("a3-ultra", "a3-ultra"),
        ("a4-highgpu-8g", "a4"),
        ("rdma", None),
        ("", None),
    ],
)
def test_a_flavour_is_a_family_a_machine_type_or_a_transport(name: str, family: str | None) -> None:
    found = wanted_family(Want(flavour=name))
    assert (found.id if found else None) == family


def test_a_smaller_machine_with_the_same_gpus_beside_the_pool_is_for_other_work() -> None:
    one = {"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": "1"}
    other = {"name": "inference", "config": {"machineType": "a3-highgpu-1g", "accelerators": [one]}}
    beside = put(healthy(), {"/cluster/nodePools/-": other})
    assert not errors(check(beside))
    assert not errors(check(put(beside, {"/want": GONE})))
    alone = put(beside, {"/want": GONE, "/cluster/nodePools/1": GONE})
    assert "pool.machine-type" in errors(check(alone))


def prepared() -> dict[str, Any]:
    """Networks, subnets and firewall rules were made, the cluster was not."""
    there = healthy()
    own = {"networks": there["networks"][1:], "subnetworks": there["subnetworks"][1:], "firewalls": there["firewalls"]}
    return {**before(), **own}


def test_networks_that_were_made_for_a_cluster_to_come_are_judged_before_it_is_there() -> None:
    assert not errors(check(prepared()))
    assert not of_rule(check(put(prepared(), {"/projectInfo/quotas/0/limit": 6.0})), "quota.networks")


@pytest.mark.parametrize(
    ("changes", "rule", "pointer"),
    [
        ({"/networks/2/mtu": 1460}, "network.mtu", "/networks/2/mtu"),
        ({"/firewalls/2": GONE}, "firewall.missing", "/firewalls"),
        ({"/firewalls/2/sourceRanges": ["10.0.0.0/8"]}, "firewall.coverage", "/firewalls/2"),
        ({"/subnetworks/1/ipCidrRange": "192.168.1.0/25"}, "subnet.overlap", "/subnetworks/1/ipCidrRange"),
        ({"/subnetworks/1/ipCidrRange": "192.168.2.0/30"}, "subnet.size", "/subnetworks/1/ipCidrRange"),
    ],
)
def test_what_is_wrong_with_them_is_an_error_before_the_cluster_is_there(
    changes: dict[str, Any], rule: str, pointer: str
) -> None:
    found = of_rule(check(put(prepared(), changes)), rule)
    assert [(each.severity, each.pointer) for each in found] == [("error", pointer)]
    assert "the cluster to be made" in found[0].text or rule in ("network.mtu", "subnet.overlap")


def test_networks_of_which_it_is_not_clear_that_they_are_meant_are_left_alone() -> None:
    two = {**prepared(), "networks": [{"name": f"{name}-{index}"} for name in ("a", "b") for index in (1, 2)]}
    assert not of_rule(check(two), "network.mtu")
    named = put(two, {"/want/networks": ["a-1", "a-2"]})
    assert {each.pointer for each in of_rule(check(named), "network.mtu")} == {"/networks/0/mtu", "/networks/1/mtu"}

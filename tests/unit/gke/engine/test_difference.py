"""What is a difference and what only looks like one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.gke.difference import differences
from interlace.gke.resource import Kind

SERVER = Path(__file__).parents[3] / "data/gke/server"
GOLDEN = Path(__file__).parents[3] / "data/gke/golden"
HOME = "https://www.googleapis.com/compute/v1/projects/example-project"


def recorded(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((SERVER / f"{name}.json").read_text())["body"]
    return body


def sent(case: str) -> dict[str, Any]:
    """The first body that a recorded command sent."""
    bodies = [r["body"] for r in json.loads((GOLDEN / f"{case}.json").read_text())["requests"] if r["body"]]
    found: dict[str, Any] = bodies[0].get("cluster") or bodies[0].get("nodePool") or bodies[0]
    return found


@pytest.mark.parametrize(
    ("kind", "case", "answer"),
    [
        ("network", "net-seed-1", "compute-network"),
        ("subnetwork", "sub-seed-1", "compute-subnetwork"),
        ("firewall", "fw-seed-1", "compute-firewall"),
        ("cluster", "cl-base", "container-cluster"),
    ],
)
def test_what_the_server_fills_in_is_no_difference(kind: Kind, case: str, answer: str) -> None:
    assert differences(kind, want=sent(case), have=recorded(answer)) == ()


def test_the_recorded_pool_differs_from_a_request_by_its_reservation_alone() -> None:
    (found,) = differences("nodePool", want=sent("np-tcpxo-placement"), have=recorded("container-nodepool"))
    assert found.path.startswith("config.reservationAffinity")
    assert found.replaces


SAME: list[tuple[Kind, dict[str, Any], dict[str, Any]]] = [
    ("subnetwork", {"network": f"{HOME}/global/networks/n"}, {"network": "projects/example-project/global/networks/n"}),
    ("nodePool", {"placementPolicy": {"policyName": "p"}}, {"placementPolicy": {"type": "COMPACT", "policyName": "p"}}),
    (
        "nodePool",
        {"config": {"accelerators": [{"acceleratorCount": "8"}]}},
        {"config": {"accelerators": [{"acceleratorCount": 8}]}},
    ),
    ("nodePool", {"management": {"autoUpgrade": False}}, {"management": {}}),
    ("nodePool", {"locations": ["b", "a"]}, {"locations": ["a", "b"]}),
    (
        "nodePool",
        {"config": {"taints": []}},
        {"config": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]}},
    ),
    (
        "nodePool",
        {"config": {"resourceLabels": {"a": "b"}}},
        {"config": {"resourceLabels": {"a": "b", "goog-gke-x": "y"}}},
    ),
    (
        "firewall",
        {"allowed": [{"IPProtocol": "tcp"}, {"IPProtocol": "udp"}]},
        {"allowed": [{"IPProtocol": "udp"}, {"IPProtocol": "tcp"}]},
    ),
    (
        "cluster",
        {"initialClusterVersion": "1.34.5-gke.1"},
        {"initialClusterVersion": "1.34.5-gke.1", "currentMasterVersion": "1.35.1-gke.7"},
    ),
    ("cluster", {"initialClusterVersion": "1.34"}, {"initialClusterVersion": "1.34.5-gke.1"}),
    ("cluster", {"releaseChannel": {"channel": "UNSPECIFIED"}}, {}),
    ("cluster", {"subnetwork": "s"}, {"subnetwork": "projects/p/regions/r/subnetworks/s"}),
    ("network", {"mtu": 8244}, {"mtu": 8244, "routingConfig": {"routingMode": "REGIONAL"}}),
    (
        "subnetwork",
        {"secondaryIpRanges": []},
        {"secondaryIpRanges": [{"rangeName": "gke-c-pods-1", "ipCidrRange": "10.0.0.0/14"}]},
    ),
]

SAME_MOMENT = {"maintenancePolicy": {"window": {"maintenanceExclusions": {"x": {"startTime": "2026-12-01T00:00:00Z"}}}}}
OTHER_FORM = {
    "maintenancePolicy": {"window": {"maintenanceExclusions": {"x": {"startTime": "2026-12-01T00:00:00+00:00"}}}}
}
SAME.append(("cluster", SAME_MOMENT, OTHER_FORM))

DIFFERENT: list[tuple[Kind, dict[str, Any], dict[str, Any], str, str]] = [
    ("network", {}, {"mtu": 8244}, "mtu", "patch"),
    ("network", {"mtu": 8244}, {}, "mtu", "patch"),
    ("network", {"autoCreateSubnetworks": False}, {"autoCreateSubnetworks": True}, "autoCreateSubnetworks", "replace"),
    ("subnetwork", {"ipCidrRange": "10.0.0.0/24"}, {"ipCidrRange": "10.0.1.0/24"}, "ipCidrRange", "replace"),
    ("subnetwork", {"network": "n"}, {"network": f"{HOME}/global/networks/m"}, "network", "replace"),
    (
        "subnetwork",
        {"privateIpGoogleAccess": False},
        {"privateIpGoogleAccess": True},
        "privateIpGoogleAccess",
        "private access",
    ),
    (
        "firewall",
        {"sourceRanges": ["10.0.0.0/8"]},
        {"sourceRanges": ["10.0.0.0/8", "0.0.0.0/0"]},
        "sourceRanges",
        "patch",
    ),
    ("firewall", {}, {"targetTags": ["x"]}, "targetTags", "patch"),
    ("firewall", {}, {"disabled": True}, "disabled", "patch"),
    (
        "cluster",
        {"networkConfig": {"enableMultiNetworking": True}},
        {},
        "networkConfig.enableMultiNetworking",
        "replace",
    ),
    (
        "cluster",
        {"initialClusterVersion": "1.35.1-gke.7"},
        {"initialClusterVersion": "1.34.5-gke.1"},
        "initialClusterVersion",
        "version",
    ),
    ("cluster", {"resourceLabels": {}}, {"resourceLabels": {"team": "x"}}, "resourceLabels", "cluster labels"),
    ("nodePool", {"initialNodeCount": 2}, {"initialNodeCount": 3}, "initialNodeCount", "size"),
    ("nodePool", {}, {"config": {"spot": True}}, "config.spot", "replace"),
    ("nodePool", {}, {"placementPolicy": {"policyName": "p"}}, "placementPolicy", "replace"),
    (
        "nodePool",
        {"config": {"machineType": "a3-megagpu-8g"}},
        {"config": {"machineType": "a3-highgpu-8g"}},
        "config.machineType",
        "replace",
    ),
    (
        "nodePool",
        {},
        {"networkConfig": {"additionalNodeNetworkConfigs": [{"network": "x"}]}},
        "networkConfig.additionalNodeNetworkConfigs",
        "replace",
    ),
    (
        "nodePool",
        {"config": {"taints": []}},
        {"config": {"taints": [{"key": "x", "effect": "NO_SCHEDULE"}]}},
        "config.taints",
        "taints",
    ),
]


@pytest.mark.parametrize(("kind", "want", "have"), SAME)
def test_it_only_looks_like_a_difference(kind: Kind, want: dict[str, Any], have: dict[str, Any]) -> None:
    assert differences(kind, want=want, have=have) == ()


@pytest.mark.parametrize(("kind", "want", "have", "path", "how"), DIFFERENT)
def test_it_is_a_difference(kind: Kind, want: dict[str, Any], have: dict[str, Any], path: str, how: str) -> None:
    assert [(each.path, each.how) for each in differences(kind, want=want, have=have)] == [(path, how)]


def test_a_pool_that_scales_itself_has_as_many_nodes_as_it_likes() -> None:
    scaling = {"enabled": True, "minNodeCount": 0, "maxNodeCount": 9}
    want = {"initialNodeCount": 2, "autoscaling": scaling}
    assert differences("nodePool", want=want, have={"initialNodeCount": 7, "autoscaling": scaling}) == ()


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(
    st.sampled_from(["name", "mtu", "config", "networkConfig", "allowed", "labels", "x"]), values, max_size=4
)


@given(kind=st.sampled_from(["network", "firewall", "cluster", "nodePool"]), body=bodies)
def test_nothing_differs_from_itself(kind: Kind, body: dict[str, Any]) -> None:
    assert differences(kind, want=body, have=body) == ()


@given(kind=st.sampled_from(["network", "firewall", "cluster", "nodePool"]), want=bodies, have=bodies)
def test_no_answer_of_a_server_breaks_the_comparison(kind: Kind, want: dict[str, Any], have: dict[str, Any]) -> None:
    for each in differences(kind, want=want, have=have):
        assert each.path

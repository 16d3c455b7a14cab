"""Terraform JSON against the argument names of the provider, as they were extracted from its bindings."""

from __future__ import annotations

import json
import re
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from interlace.gke.cluster import FabricCluster
from interlace.gke.desired import desired
from interlace.gke.errors import Refused
from interlace.gke.export.terraform import UNCHECKED, as_terraform
from tests.unit.gke.spec.clusters import CALM, FAMILIES, cluster, pool
from tests.unit.gke.spec.test_desired import clusters

TABLE = json.loads((Path(__file__).parents[4] / "tests" / "data" / "gke" / "terraform.json").read_text())
META = {"provider", "depends_on", "lifecycle"}


def document(found: FabricCluster) -> dict[str, Any]:
    text = as_terraform(desired(found), title="test").text
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def problems(found: dict[str, Any]) -> list[str]:
    """Arguments that the provider does not know or that it misses."""
    said = []
    for kind, blocks in found["resource"].items():
        for name, block in blocks.items():
            own = {key: value for key, value in block.items() if key not in META}
            said += _judge(own, TABLE["resources"][kind], f"{kind}.{name}", kind)
    return said


def _judge(block: Any, known: Any, at: str, path: str) -> list[str]:
    if isinstance(known, list):
        return [each for entry in block for each in _judge(entry, known[0], at, path)]
    if not isinstance(known, dict):
        return _judge_value(block, known, at)
    names = {key.rstrip("!"): value for key, value in known.items()}
    said = [f"{at}: {key[:-1]} is missing" for key in known if key.endswith("!") and key[:-1] not in block]
    for key, value in block.items():
        inner = f"{path}.{key}"
        if key in names:
            said += _judge(value, names[key], f"{at}.{key}", inner)
        elif inner not in TABLE["beta"]:
            said.append(f"{at}: {key} is unknown")
    return said


def _judge_value(value: Any, kind: str, at: str) -> list[str]:
    right = {"list": list, "map": dict, "value": str | int | bool}[kind]
    return [] if isinstance(value, right) else [f"{at}: {value!r} is no {kind}"]


@given(found=clusters())
@settings(CALM, max_examples=40)
def test_whatever_a_file_says_the_provider_knows_the_arguments(found: FabricCluster) -> None:
    assert problems(document(found)) == []


def test_a_wrong_argument_would_be_noticed() -> None:
    found = document(cluster("a3-high"))
    network = found["resource"]["google_compute_network"]["train-net-1"]
    network["mtus"] = network.pop("name")
    assert sorted(problems(found)) == [
        "google_compute_network.train-net-1: mtus is unknown",
        "google_compute_network.train-net-1: name is missing",
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_references_lead_to_what_the_file_makes_and_never_in_a_circle(family: str) -> None:
    found = document(cluster(family, pools=[pool(placement={})]))
    made = {f"{kind}.{name}" for kind, blocks in found["resource"].items() for name in blocks}
    graph = {
        f"{kind}.{name}": set(re.findall(r"\$\{([a-z_]+\.[a-z0-9-]+)\.(?:id|name)\}", json.dumps(block)))
        for kind, blocks in found["resource"].items()
        for name, block in blocks.items()
    }
    assert all(others <= made for others in graph.values())
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("google_container_cluster.train") < order.index("google_container_node_pool.gpu")
    assert "google_compute_resource_policy.train-gpu-policy" in graph["google_container_node_pool.gpu"]


def test_networks_that_exist_are_named_and_not_made() -> None:
    found = document(cluster(network={"existing": True}, primary={"existing": True, "network": "vpc", "subnet": "sub"}))
    assert set(found["resource"]) == {"google_container_cluster", "google_container_node_pool"}
    assert found["resource"]["google_container_cluster"]["train"]["network"] == "vpc"
    nics = found["resource"]["google_container_node_pool"]["gpu"]["network_config"]["additional_node_network_configs"]
    assert nics[0] == {"network": "train-net-1", "subnetwork": "train-sub-1"}


def test_networks_of_a_shared_vpc_are_referred_to_by_path() -> None:
    found = document(cluster(network={"hostProject": "host-project"}))["resource"]
    nics = found["google_container_node_pool"]["gpu"]["network_config"]["additional_node_network_configs"]
    assert nics[0]["network"] == "${google_compute_network.train-net-1.id}"


def test_a_distance_needs_the_beta_provider() -> None:
    found = document(cluster(pools=[pool(placement={"maxDistance": 1})]))
    assert set(found["terraform"]["required_providers"]) == {"google", "google-beta"}
    policy = found["resource"]["google_compute_resource_policy"]["train-gpu-policy"]
    assert policy["provider"] == "google-beta"


def test_it_says_that_it_was_not_validated() -> None:
    exported = as_terraform(desired(cluster()), title="test")
    assert exported.notes[0] == UNCHECKED
    assert "terraform validate was not run" in json.loads(exported.text)["//"]


def test_a_hold_comes_with_a_window_and_an_end() -> None:
    exported = as_terraform(desired(cluster(upgrades={"hold": {"start": "2026-12-01T00:00:00Z"}})), title="test")
    policy = json.loads(exported.text)["resource"]["google_container_cluster"]["train"]["maintenance_policy"]
    assert policy["maintenance_exclusion"][0]["end_time"] == "2027-05-30T00:00:00Z"
    assert policy["daily_maintenance_window"] == {"start_time": "03:00"}
    assert any("2027-05-30T00:00:00Z" in note for note in exported.notes)


def test_what_the_provider_has_no_argument_for_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="acceleratorNetworkProfile, which Terraform"):
        document(cluster("a4", network={"mode": "managed"}))

"""Contradictions inside a cluster file of the right shape."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.gke.errors import SpecError, SpecErrors
from interlace.gke.reading import parse
from tests.unit.gke.spec.clusters import document, pool, text


def faults(family: str = "a3-mega", /, *, metadata: dict[str, Any] | None = None, **spec: Any) -> tuple[SpecError, ...]:
    found = document(family, **spec)
    found["metadata"] |= metadata or {}
    with pytest.raises(SpecErrors) as caught:
        parse(text(found))
    return caught.value.errors


HOLD = {"start": "2026-12-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("spec", "pointer", "says"),
    [
        ({"nodeLocations": ["us-east1-b"]}, "/spec/nodeLocations/0", "another region"),
        ({"pools": [pool(zones=["us-east1-b"])]}, "/spec/pools/0/zones/0", "another region"),
        ({"nodeLocations": ["us-central1-b"]}, "/spec/nodeLocations", "not among the zones"),
        ({"nodeLocations": ["us-central1-a", "us-central1-a"]}, "/spec/nodeLocations/1", "twice"),
        ({"pools": [pool(scopes=["logging.write,cloud-platform"])]}, "/spec/pools/0/scopes/0", "no access scope"),
        ({"pools": [pool(tags=["A,b"])]}, "/spec/pools/0/tags/0", "lower-case"),
        ({"pools": [pool(serviceAccount="me")]}, "/spec/pools/0/serviceAccount", "no address of a service account"),
        ({"primary": {"podsName": "a=b"}}, "/spec/primary/podsName", "lower-case"),
        ({"pools": []}, "/spec/pools", "no node pool"),
        ({"pools": [pool(), pool()]}, "/spec/pools/1/name", "two node pools"),
        ({"pools": [pool(name="default-pool")]}, "/spec/pools/0/name", "two node pools"),
        ({"pools": [pool(spot=True, reservation={"name": "r"})]}, "/spec/pools/0/spot", "not taken from a reservation"),
        ({"pools": [pool(reservation={"name": "r", "subBlock": "s"})]}, "/spec/pools/0/reservation/subBlock", "block"),
        ({"pools": [pool(placement={"policy": "p", "maxDistance": 1})]}, "/spec/pools/0/placement/policy", "exists"),
        ({"pools": [pool(autoscaling={"min": 3, "max": 4})]}, "/spec/pools/0/autoscaling", "not between 3 and 4"),
        ({"pools": [pool(autoscaling={"min": 5, "max": 4})]}, "/spec/pools/0/autoscaling", "not between 5 and 4"),
        ({"pools": [pool(surge={"maxSurge": 0})]}, "/spec/pools/0/surge", "ever be upgraded"),
        ({"pools": [pool(labels={"a b": "c"})]}, "/spec/pools/0/labels/a b", "does not take"),
        ({"pools": [pool(labels={"a/b/c": "d"})]}, "/spec/pools/0/labels/a~1b~1c", "does not take"),
        ({"pools": [pool(taints=[{"key": "-"}])]}, "/spec/pools/0/taints/0", "does not take"),
        ({"system": {"labels": {"x": "é"}}}, "/spec/system/labels/x", "does not take"),
        ({"upgrades": {"channel": "none", "hold": HOLD}}, "/spec/upgrades/hold", "nothing to hold"),
        ({"upgrades": {"hold": {"start": "soon"}}}, "/spec/upgrades/hold/start", "no moment"),
        ({"upgrades": {"hold": {"start": "2026-12-01"}}}, "/spec/upgrades/hold/start", "no moment"),
        ({"upgrades": {"hold": {"start": ""}}}, "/spec/upgrades/hold/start", "empty"),
        ({"upgrades": {"hold": HOLD | {"end": "2026-11-01T00:00:00Z"}}}, "/spec/upgrades/hold/end", "before it begins"),
        ({"controlPlane": {"range": "172.16.0.0/28"}}, "/spec/controlPlane/range", "for nothing"),
        (
            {"controlPlane": {"privateNodes": True, "range": "172.16.0.0/24"}},
            "/spec/controlPlane/range",
            "a /28",
        ),
        (
            {"controlPlane": {"authorizedNetworks": ["here"]}},
            "/spec/controlPlane/authorizedNetworks/0",
            "no address range",
        ),
        ({"primary": {"existing": True, "network": "n"}}, "/spec/primary/subnet", "not named"),
        ({"network": {"avoid": ["10.0.0.1/8"]}}, "/spec/network/avoid/0", "inside a range"),
        ({"network": {"range": "8.8.0.0/16"}}, "/spec/network/range", "public"),
        ({"network": {"prefix": "My"}}, "/spec/network/prefix", "name that follows"),
        ({"network": {"prefix": "x" * 60}}, "/spec/network/prefix", "name that follows"),
        (
            {"network": {"nics": [{"network": "train-primary"}, *[{}] * 7]}},
            "/spec/network/nics/0",
            "of the cluster itself",
        ),
        ({"network": {"nics": [*[{"network": "one"}] * 2, *[{}] * 6]}}, "/spec/network/nics/1", "same VPC network"),
        ({"network": {"prefixLength": 28}, "pools": [pool(nodes=20)]}, "/spec/primary/range", "room for 12 nodes"),
        ({"primary": {"pods": "10.4.0.0/22"}, "pools": [pool(nodes=9)]}, "/spec/primary/pods", "Pods of 4 nodes"),
    ],
)
def test_a_contradiction_is_named(spec: dict[str, Any], pointer: str, says: str) -> None:
    found = [each for each in faults(**spec) if each.pointer == pointer]
    assert found, "not named"
    assert says in str(found[0])
    assert found[0].line > 0


def test_labels_of_google_cloud_have_lower_case() -> None:
    (only,) = faults(metadata={"labels": {"Stack": "demo"}})
    assert (only.pointer, only.value) == ("/metadata/labels/Stack", "Stack=demo")


@pytest.mark.parametrize("family", ["a3-high", "a3-mega"])
def test_managed_networks_are_refused_for_h100(family: str) -> None:
    (only,) = faults(family, network={"mode": "managed"})
    assert only.pointer == "/spec/network/mode"
    assert only.remedy == "take multinet"


@pytest.mark.parametrize("mixed", [{"nics": [{}]}, {"range": "10.0.0.0/16"}, {"existing": True}])
def test_managed_networks_are_not_mixed_with_listed_ones(mixed: dict[str, Any]) -> None:
    (only,) = faults("a4", network={"mode": "managed", **mixed})
    assert only.pointer == f"/spec/network/{next(iter(mixed))}"
    assert "never both" in only.cause


def test_managed_networks_need_a_version_that_makes_them() -> None:
    (only,) = faults("a4", network={"mode": "managed"}, version="1.34.0-gke.1")
    assert only.pointer == "/spec/version"
    assert "1.34.1-gke.1829001" in only.cause
    for version in ("1.34.1-gke.1829001", "1.34", ""):
        parse(text(document("a4", network={"mode": "managed"}, version=version)))


def test_rdma_needs_one_zone() -> None:
    (only,) = faults("a3-ultra", location="us-central1", nodeLocations=["us-central1-a", "us-central1-b"])
    assert only.pointer == "/spec/pools"
    assert "one zone" in only.what


def test_rdma_in_one_zone_of_a_region_is_good() -> None:
    found = document("a3-ultra", location="us-central1", pools=[pool(zones=["us-central1-a"])])
    assert parse(text(found)).cluster.region == "us-central1"

"""Slices, classes, claims and templates are checked as the real server checks them."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.sim.apiserver.claims import validate_resource
from interlace.sim.apiserver.raw import RawJson
from tests.unit.sim.rules.tables import (
    BAD_CLAIMS,
    BAD_SLICES,
    claim,
    config,
    device,
    request,
    resource_slice,
    template,
)


def texts(kind: str, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(cause) for cause in validate_resource(kind, obj, old)]


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        ("ResourceClaim", claim()),
        ("ResourceClaim", claim(request(allocationMode="All", count=0))),
        ("ResourceClaim", claim({"name": "channel", "firstAvailable": [{"name": "a"} | request()["exactly"]]})),
        ("ResourceClaimTemplate", template()),
        ("ResourceSlice", resource_slice()),
        ("ResourceSlice", resource_slice(nodeName=None, allNodes=True)),
        ("ResourceSlice", resource_slice(device(capacity={"memory": {"value": "80Gi"}}))),
        ("ResourceSlice", resource_slice(*[device(name=f"channel-{n}") for n in range(128)])),
        ("DeviceClass", {"metadata": {"name": "x"}, "spec": {}}),
        ("DeviceClass", {"metadata": {"name": "x"}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}}),
        ("Pod", {"metadata": {"name": "Not A Name"}}),
    ],
)
def test_what_our_components_and_users_write_is_accepted(kind: str, obj: dict[str, Any]) -> None:
    assert not texts(kind, obj)


@pytest.mark.parametrize(("obj", "expected"), BAD_CLAIMS)
def test_a_bad_claim_is_explained_alone_and_in_a_template(obj: dict[str, Any], expected: str) -> None:
    assert expected in texts("ResourceClaim", obj)
    inside = {"metadata": {"name": "t"}, "spec": {"spec": obj["spec"]}}
    assert expected.replace("spec.devices", "spec.spec.devices", 1) in texts("ResourceClaimTemplate", inside)


@pytest.mark.parametrize(("obj", "expected"), BAD_SLICES)
def test_a_bad_slice_is_explained(obj: dict[str, Any], expected: str) -> None:
    found = texts("ResourceSlice", obj)
    assert any(text.startswith(expected) for text in found), found


def test_a_capacity_is_a_quantity() -> None:
    bad = resource_slice(device(capacity={"memory": {"value": "much"}}))
    assert texts("ResourceSlice", bad) == [
        'spec.devices[0].capacity[memory].value: Invalid value: "much": must be a quantity'
    ]


def test_driver_pool_and_node_of_a_slice_are_fixed() -> None:
    new = resource_slice(
        driver="gpu.nvidia.com", nodeName="node-2", pool={"name": "node-2", "generation": 2, "resourceSliceCount": 1}
    )
    assert texts("ResourceSlice", new, resource_slice()) == [
        'spec.pool.name: Invalid value: "node-2": field is immutable',
        'spec.driver: Invalid value: "gpu.nvidia.com": field is immutable',
        'spec.nodeName: Invalid value: "node-2": field is immutable',
    ]
    opened = resource_slice(device(), device(name="channel-1"))
    assert not texts("ResourceSlice", opened, resource_slice())


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_the_spec_of_claims_and_templates_is_fixed_to_the_byte(kind: str) -> None:
    make = claim if kind == "ResourceClaim" else template
    old = make()
    assert not texts(kind, make(), old)
    spaced = make(config=[config(parameters=RawJson(b'{"domainID": "u"}')) | {"requests": ["channel"]}])
    for new in (spaced, make(request(count=2))):
        (text,) = texts(kind, new, old)
        assert text.startswith("spec: Invalid value: {")
        assert text.endswith(": field is immutable")


def test_a_name_is_a_subdomain_and_checked_on_creation_only() -> None:
    bad = {"metadata": {"name": "Bad_Name"}, "spec": {}}
    (text,) = texts("DeviceClass", bad)
    assert text.startswith('metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of')
    assert not texts("DeviceClass", bad, bad)
    assert "metadata.name: Required value: name or generateName is required" in texts("DeviceClass", {"metadata": {}})

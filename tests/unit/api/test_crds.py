"""The generated CRDs against the contract of the existing API, written down here once more by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from interlace.api.computedomain import ComputeDomain, ComputeDomainClique
from interlace.api.crd import crds

DOMAIN, CLIQUE = crds()

# path: (type, required in its parent, default, enum, minimum); None where the contract has none.
Row = tuple[str, bool, Any, set[str] | None, int | None]
READINESS = {"Ready", "NotReady"}
DOMAIN_CONTRACT: dict[str, Row] = {
    "spec.numNodes": ("integer", False, 0, None, 0),
    "spec.channel": ("object", True, None, None, None),
    "spec.channel.resourceClaimTemplate": ("object", True, None, None, None),
    "spec.channel.resourceClaimTemplate.name": ("string", True, None, None, None),
    "spec.channel.allocationMode": ("string", False, "Single", {"All", "Single"}, None),
    "status": ("object", False, None, None, None),
    "status.status": ("string", True, "NotReady", READINESS, None),
    "status.nodes": ("array", False, None, None, None),
    "status.nodes[].name": ("string", True, None, None, None),
    "status.nodes[].ipAddress": ("string", True, None, None, None),
    "status.nodes[].cliqueID": ("string", True, None, None, None),
    "status.nodes[].index": ("integer", False, None, None, None),
    "status.nodes[].status": ("string", False, "NotReady", READINESS, None),
}
CLIQUE_CONTRACT: dict[str, Row] = {
    "daemons": ("array", False, None, None, None),
    "daemons[].nodeName": ("string", True, None, None, None),
    "daemons[].ipAddress": ("string", True, None, None, None),
    "daemons[].cliqueID": ("string", True, None, None, None),
    "daemons[].index": ("integer", False, None, None, None),
    "daemons[].status": ("string", False, "NotReady", READINESS, None),
}
# What is ours beside the contract: optional fields alone, and `spec` required.
ADDED = {
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "spec.isolation",
    "spec.waitForPeers",
    "spec.waitForPeers.nodes",
    "spec.waitForPeers.timeoutSeconds",
    "daemons[].shared",
    "channels",
    *(f"channels[].{field}" for field in ("domain", "name", "namespace", "channel", "indexes")),
    *(
        f"{parent}waitForPeers{field}"
        for parent in ("", "channels[].")
        for field in ("", ".nodes", ".timeoutSeconds", ".present")
    ),
    "status.readyNodes",
    "status.conditions",
    *(
        f"status.conditions[].{field}"
        for field in ("type", "status", "reason", "message", "observedGeneration", "lastTransitionTime")
    ),
}


def version(crd: dict[str, Any]) -> dict[str, Any]:
    (only,) = crd["spec"]["versions"]
    assert isinstance(only, dict)
    return only


def schema(crd: dict[str, Any]) -> dict[str, Any]:
    root = version(crd)["schema"]["openAPIV3Schema"]
    assert isinstance(root, dict)
    return root


def fields(parent: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every property below ``parent``: its path, its schema, whether it is required."""
    for name, child in parent.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, child, name in parent.get("required", ())
        yield from fields(child.get("items", child), f"{here}[]" if "items" in child else here)


@pytest.mark.parametrize(("crd", "contract"), [(DOMAIN, DOMAIN_CONTRACT), (CLIQUE, CLIQUE_CONTRACT)])
def test_each_field_has_the_type_default_and_bounds_of_the_existing_api(
    crd: dict[str, Any], contract: dict[str, Row]
) -> None:
    found = {
        path: (
            child["type"],
            required,
            child.get("default"),
            set(child["enum"]) if "enum" in child else None,
            child.get("minimum"),
        )
        for path, child, required in fields(schema(crd))
        if path not in ADDED
    }
    assert found == contract


def test_what_is_added_is_optional_but_for_spec() -> None:
    top = {path: required for path, _, required in fields(schema(DOMAIN)) if path in ADDED and "[]" not in path}
    assert [path for path, required in top.items() if required] == ["spec"]


def test_the_whole_spec_is_immutable_with_the_known_message() -> None:
    rules = schema(DOMAIN)["properties"]["spec"]["x-kubernetes-validations"]
    assert rules[0] == {"rule": "self == oldSelf", "message": "A computeDomain.spec is immutable"}


def test_all_channels_are_refused_where_channels_keep_domains_apart() -> None:
    _, rule = schema(DOMAIN)["properties"]["spec"]["x-kubernetes-validations"]
    assert "isolation != 'Channel'" in rule["rule"]
    assert "allocationMode" in rule["message"]


@pytest.mark.parametrize(
    ("crd", "path", "key"),
    [
        (DOMAIN, "status.nodes", "name"),
        (DOMAIN, "status.conditions", "type"),
        (CLIQUE, "daemons", "nodeName"),
        (CLIQUE, "channels", "domain"),
    ],
)
def test_lists_are_maps_by_their_key(crd: dict[str, Any], path: str, key: str) -> None:
    child = next(child for here, child, _ in fields(schema(crd)) if here == path)
    assert child["x-kubernetes-list-type"] == "map"
    assert child["x-kubernetes-list-map-keys"] == [key]
    assert key in child["items"]["required"]


def test_only_computedomains_have_a_status_subresource() -> None:
    assert version(DOMAIN)["subresources"] == {"status": {}}
    assert "subresources" not in version(CLIQUE)


@pytest.mark.parametrize(
    ("crd", "plural", "singular", "kind"),
    [
        (DOMAIN, "computedomains", "computedomain", "ComputeDomain"),
        (CLIQUE, "computedomaincliques", "computedomainclique", "ComputeDomainClique"),
    ],
)
def test_group_names_and_scope_are_those_of_the_existing_api(
    crd: dict[str, Any], plural: str, singular: str, kind: str
) -> None:
    spec = crd["spec"]
    assert crd["metadata"]["name"] == f"{plural}.resource.nvidia.com"
    assert spec["group"] == "resource.nvidia.com"
    assert spec["scope"] == "Namespaced"
    assert spec["names"] == {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": singular}
    assert {key: version(crd)[key] for key in ("name", "served", "storage")} == {
        "name": "v1beta1",
        "served": True,
        "storage": True,
    }


def test_kubectl_prints_status_nodes_and_age() -> None:
    columns = {column["name"]: column for column in version(DOMAIN)["additionalPrinterColumns"]}
    assert columns["Status"]["jsonPath"] == ".status.status"
    assert columns["Nodes"]["jsonPath"] == ".status.readyNodes"
    assert columns["Age"]["type"] == "date"


def test_every_field_of_the_structs_is_in_the_schema() -> None:
    for crd, kind in ((DOMAIN, ComputeDomain), (CLIQUE, ComputeDomainClique)):
        names = {field.encode_name for field in msgspec.structs.fields(kind)}
        assert names <= schema(crd)["properties"].keys()


def test_the_definitions_are_new_at_each_call_so_a_caller_may_change_them() -> None:
    crds()[0]["metadata"]["name"] = "changed"
    assert crds()[0]["metadata"]["name"] == "computedomains.resource.nvidia.com"

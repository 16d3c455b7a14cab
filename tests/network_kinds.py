"""The kinds of ``networking.gke.io`` as GKE serves them, in the fields that we write: CRDs for test servers."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
GROUP = "networking.gke.io"

_TEXT: Json = {"type": "string"}
_STATUS: Json = {
    "type": "object",
    "properties": {
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": dict.fromkeys(("type", "status", "reason", "message", "lastTransitionTime"), _TEXT),
            },
        }
    },
}


def network_crds() -> list[Json]:
    """Network and GKENetworkParamSet, both cluster-scoped and with a status subresource."""
    reference = {
        "type": "object",
        "required": ["group", "kind", "name"],
        "properties": dict.fromkeys(("group", "kind", "name", "namespace"), _TEXT),
    }
    network = {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "enum": ["L2", "L3", "Device"]},
            "parametersRef": reference,
            "gateway4": _TEXT,
        },
    }
    parameters = {
        "type": "object",
        "required": ["vpc", "vpcSubnet"],
        "properties": {
            "vpc": _TEXT,
            "vpcSubnet": _TEXT,
            "deviceMode": {"type": "string", "enum": ["DPDK-VFIO", "NetDevice", "RDMA"]},
            "podIPv4Ranges": {
                "type": "object",
                "required": ["rangeNames"],
                "properties": {"rangeNames": {"type": "array", "minItems": 1, "items": _TEXT}},
            },
        },
    }
    return [_crd("networks", "Network", network), _crd("gkenetworkparamsets", "GKENetworkParamSet", parameters)]


def _crd(plural: str, kind: str, spec: Json) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            # The group name is protected; the API server asks for the approval that GKE's own CRDs carry.
            "annotations": {"api-approved.kubernetes.io": "unapproved, test double of a vendor's kind"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": _STATUS}}},
                }
            ],
        },
    }

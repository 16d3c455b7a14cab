"""The Network and GKENetworkParamSet objects of a family: how Pods reach the NICs of their node.

Invariant: one pair for each network, in the order of the node pool's additional networks; a set names the VPC and the
subnet by the one rule of ``VpcNames``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from interlace.fabric.family import Family
from interlace.fabric.vpcs import VpcNames

API: Final = "networking.gke.io/v1"
GROUP: Final = "networking.gke.io"

_Object = dict[str, Any]


def networks(family: Family, *, vpcs: VpcNames, names: Mapping[str, str] | None = None) -> list[_Object]:
    """All Networks, then all parameter sets. ``names``: name in the family file to name in the cluster."""
    named = [(network, (names or {}).get(network.name, network.name)) for network in family.networks]
    return [
        *(_network(name) for _, name in named),
        *(_parameters(name, *vpcs.of(family, network), mode=network.mode) for network, name in named),
    ]


def _network(name: str) -> _Object:
    return {
        "apiVersion": API,
        "kind": "Network",
        "metadata": {"name": name},
        "spec": {"type": "Device", "parametersRef": {"group": GROUP, "kind": "GKENetworkParamSet", "name": name}},
    }


def _parameters(name: str, vpc: str, subnet: str, *, mode: str) -> _Object:
    return {
        "apiVersion": API,
        "kind": "GKENetworkParamSet",
        "metadata": {"name": name},
        "spec": {"vpc": vpc, "vpcSubnet": subnet, "deviceMode": mode},
    }

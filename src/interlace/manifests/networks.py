"""The Network and GKENetworkParamSet objects of a family: how Pods reach the NICs of their node.

Invariant: one pair for each network, in the order of the node pool's additional networks; a set names the VPC and the
subnet by the one rule of ``VpcNames``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlace.fabric.family import Family, Network

API: Final = "networking.gke.io/v1"
GROUP: Final = "networking.gke.io"

_Object = dict[str, Any]


class VpcNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of VPC networks and subnets, made of one prefix.

    Networks of ordinary NICs have a VPC each, ``<prefix>-net-1`` with ``<prefix>-sub-1``; those of RDMA NICs share
    ``<prefix>-rdma-net``, with subnets ``<prefix>-rdma-sub-0`` and so on.
    """

    prefix: str

    def of(self, family: Family, network: Network) -> tuple[str, str]:
        """VPC network and subnet of a network of the family."""
        alike = [each for each in family.networks if each.gpu == network.gpu]
        index = alike.index(network)
        if not network.gpu:
            return f"{self.prefix}-gvnic-net-{index}", f"{self.prefix}-gvnic-sub-{index}"
        if network.mode == "RDMA":
            return f"{self.prefix}-rdma-net", f"{self.prefix}-rdma-sub-{index}"
        return f"{self.prefix}-net-{index + 1}", f"{self.prefix}-sub-{index + 1}"


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

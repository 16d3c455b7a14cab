"""Names of the VPC networks, subnets and firewall rules behind the NICs of a family, all made of one prefix.

Invariant: whoever makes a VPC, asks a node pool for it or writes a GKENetworkParamSet takes the name from here, so the
three cannot differ.
"""

from __future__ import annotations

import msgspec

from interlace.fabric.family import Family, Network


class VpcNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names made of ``prefix``, or the ``given`` ones: (VPC network, subnet) in the order of the family's networks.

    Networks of ordinary NICs have a VPC each, ``<prefix>-net-1`` with ``<prefix>-sub-1``; those of RDMA NICs share
    ``<prefix>-rdma-net``, with subnets ``<prefix>-rdma-sub-0`` and so on.
    """

    prefix: str
    given: tuple[tuple[str, str], ...] = ()

    def of(self, family: Family, network: Network) -> tuple[str, str]:
        """VPC network and subnet of a network of the family."""
        if self.given:
            return self.given[family.networks.index(network)]
        index = _index(family, network)
        if not network.gpu:
            return f"{self.prefix}-gvnic-net-{index}", f"{self.prefix}-gvnic-sub-{index}"
        if network.mode == "RDMA":
            return f"{self.prefix}-rdma-net", f"{self.prefix}-rdma-sub-{index}"
        return f"{self.prefix}-net-{index + 1}", f"{self.prefix}-sub-{index + 1}"

    def firewall(self, family: Family, network: Network) -> str:
        """Rule that lets its nodes talk to each other; empty for RDMA networks, which take no rules."""
        if network.mode == "RDMA":
            return ""
        index = _index(family, network)
        return f"{self.prefix}-internal-{index + 1}" if network.gpu else f"{self.prefix}-gvnic-internal-{index}"

    @property
    def primary(self) -> tuple[str, str]:
        """VPC network and subnet of the cluster itself, where nodes have their first NIC."""
        return f"{self.prefix}-primary", f"{self.prefix}-primary-sub"

    def policy(self, pool: str) -> str:
        """Placement policy of a node pool."""
        return f"{self.prefix}-{pool}-policy"


def _index(family: Family, network: Network) -> int:
    """Its place among the networks of its sort, from 0."""
    return [each for each in family.networks if each.gpu == network.gpu].index(network)

"""Every name that follows from a cluster file, from one function.

Invariant: network, subnet and firewall rule of NIC i, the entry i of the node pool's additional networks and the
GKENetworkParamSet i of ``interlace manifests`` take the same names, since all ask ``fabric.vpcs``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from interlace.fabric.family import Network
from interlace.fabric.vpcs import VpcNames
from interlace.gke.cluster import FabricCluster, Pool

HOLD: Final = "interlace-hold"
"""The maintenance exclusion."""


class NicNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names behind one NIC. ``firewall`` is empty where the network takes no rules."""

    of: Network
    network: str
    subnet: str
    firewall: str


def vpcs(cluster: FabricCluster) -> VpcNames:
    """The rule of names, as ``interlace manifests`` takes it too."""
    network = cluster.spec.network
    derived = VpcNames(prefix=network.prefix or cluster.name)
    if not network.nics:
        return derived
    pairs = []
    for nic, of in zip(network.nics, cluster.family.networks, strict=False):
        own = derived.of(cluster.family, of)
        pairs.append((nic.network or own[0], nic.subnet or own[1]))
    return VpcNames(prefix=derived.prefix, given=tuple(pairs))


def nics(cluster: FabricCluster) -> tuple[NicNames, ...]:
    """Names behind the NICs, in their order; none where GKE makes the networks."""
    if cluster.spec.network.mode == "managed":
        return ()
    family, rule = cluster.family, vpcs(cluster)
    found = []
    for of in family.networks:
        network, subnet = rule.of(family, of)
        found.append(NicNames(of=of, network=network, subnet=subnet, firewall=rule.firewall(family, of)))
    return tuple(found)


def primary(cluster: FabricCluster) -> tuple[str, str]:
    """VPC network and subnet of the cluster itself."""
    network, subnet = vpcs(cluster).primary
    return cluster.spec.primary.network or network, cluster.spec.primary.subnet or subnet


def policy(cluster: FabricCluster, pool: Pool) -> str:
    """Placement policy of a pool; empty if it has none."""
    if pool.placement is None:
        return ""
    return pool.placement.policy or vpcs(cluster).policy(pool.name)

"""How much of what is counted a cluster needs: still to come, and in all. Pure.

Invariant: what is there already, by the names in the pool or those that are wanted, is not counted as still to come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from interlace.gke.places import short
from interlace.gke.rules.networks import mtu_of, needed_networks
from interlace.gke.rules.nodepool import Provisioning
from interlace.gke.rules.subject import Subject

OWN_RULES: Final = 4
"""Firewall rules that GKE makes for a cluster (a Standard cluster has three to five)."""
BOOT_DISK: Final = ("pd-balanced", 100)
"""Type and GB of the boot disk where nothing is said (recorded answer of container v1)."""
LOCAL_SSD: Final = 375
"""GB of one local SSD."""
LOCAL_SSDS: Final = {"tcpx": 16, "tcpxo": 16}
"""Local SSDs of a machine by transport of its family, where the pool does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """``more``: still to come; ``whole``: when the cluster is complete."""

    what: str
    more: int
    whole: int

    def times(self, amount: int, what: str) -> Need:
        """For as many of something on each."""
        return Need(what=what, more=self.more * amount, whole=self.whole * amount)


def nodes(subject: Subject, *kinds: Provisioning) -> Need:
    """Nodes with GPUs whose machines are taken from ``kinds``; a pool that is not there yet counts as standard."""
    pools = [pool for pool in subject.pools if pool.provisioning in kinds]
    more, whole = sum(map(subject.missing, pools)), sum(map(subject.wanted, pools))
    if subject.pool is None and "standard" in kinds:
        more, whole = more + subject.state.want.nodes, whole + subject.state.want.nodes
    return Need(what="nodes", more=more, whole=whole)


def networks(subject: Subject) -> Need:
    """VPC networks: one a NIC, one for all RDMA NICs, and that of the cluster."""
    family = subject.family
    if family is None or _managed(subject):
        return Need(what="networks", more=0, whole=0)
    want = needed_networks(family)
    there = _there(subject)
    more = max(0, want - len(there)) + _no_primary(subject, there)
    return Need(what="networks", more=more, whole=want + 1)


def subnetworks(subject: Subject) -> Need:
    """Subnets: one a NIC, and that of the cluster."""
    family = subject.family
    if family is None or _managed(subject):
        return Need(what="subnets", more=0, whole=0)
    there = _there(subject)
    have = sum(short(each.value.network) in there for each in subject.subnetworks)
    more = max(0, len(family.networks) - have) + _no_primary(subject, there)
    return Need(what="subnets", more=more, whole=len(family.networks) + 1)


def firewalls(subject: Subject) -> Need:
    """Firewall rules: one for each network that takes rules, and those of GKE for a new cluster."""
    family = subject.family
    if family is None or _managed(subject):
        return Need(what="firewall rules", more=0, whole=0)
    want = sum(each.mode != "RDMA" for each in family.networks)
    there = _there(subject)
    have = {short(each.network) for each in subject.state.firewalls or ()} & there
    own = OWN_RULES if subject.new else 0
    return Need(what="firewall rules", more=max(0, want - len(have)) + own, whole=want + own)


def cpus(subject: Subject) -> int:
    """CPUs of a machine: as its zone offers it, else as the family is known; 0 where neither says."""
    family = subject.family
    if family is None:
        return 0
    offered = {short(each.name): each.guest_cpus for each in subject.state.machine_types or ()}
    return next((offered[each] for each in family.machines if offered.get(each)), family.node.vcpus)


def boot_disk(subject: Subject) -> tuple[str, int]:
    """Type and GB of the boot disk of a node."""
    pool = subject.pool
    config = pool.pool.config if pool else None
    return (config and config.disk_type) or BOOT_DISK[0], (config and config.disk_size_gb) or BOOT_DISK[1]


def gigabytes_of_local_ssd(subject: Subject) -> int:
    """GB of local SSD of a node; 0 where it is not known."""
    pool, family = subject.pool, subject.family
    config = pool.pool.config if pool else None
    said = (
        max(
            config.local_ssd_count,
            config.ephemeral_storage_local_ssd_config.local_ssd_count,
            config.local_nvme_ssd_block_config.local_ssd_count,
        )
        if config
        else 0
    )
    return (said or (LOCAL_SSDS.get(family.node.transport, 0) if family else 0)) * LOCAL_SSD


def _no_primary(subject: Subject, there: set[str]) -> bool:
    """Whether the network of the cluster is still to be made: there is none but those of the NICs."""
    if not subject.new:
        return False
    named = subject.cluster_network
    return not (
        subject.network(named) if named else [each for each in subject.networks if each.value.name not in there]
    )


def _there(subject: Subject) -> set[str]:
    """Names of networks behind NICs that exist: those of the pool, those that are wanted by name, else those that look
    as if they were made for it (custom mode, MTU of the family, not that of the cluster).
    """
    family = subject.family
    listed = {each.value.name: each.value for each in subject.networks}
    pool = subject.pool or next(iter(subject.wired), None)
    named = {short(nic.network) for nic in pool.nics} if pool else set(subject.state.want.networks)
    if named:
        return named & set(listed) if "networks" not in subject.unread else set()
    primary = short(subject.cluster_network)
    alike = [
        name
        for name, network in listed.items()
        if family and not network.auto_create_subnetworks and mtu_of(network) == family.node.mtu and name != primary
    ]
    return set(alike[: needed_networks(family)]) if family else set()


def _managed(subject: Subject) -> bool:
    """Whether GKE makes the networks, or nothing is known to be wanted."""
    return bool(subject.pool and subject.pool.managed) or not (subject.state.want.nodes or subject.pool)

"""A node pool as rules see it: a pool of the API, the family that it is or is meant to be, and its NICs in order.

Invariant: a NIC knows which network of the family it should be, by its place and its kind, whatever it is called.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from interlace.fabric.family import Family
from interlace.fabric.family import Network as FamilyNetwork
from interlace.gke.observed.container import NodePool
from interlace.gke.places import short
from interlace.gke.rules.references import reservation_name
from interlace.rules.pointer import pointer

Provisioning = Literal["standard", "spot", "reserved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """One of a pool's additional NICs, with the network of the family that it should be, if there is one."""

    index: int
    pointer: str
    network: str
    """Reference, as it stands in the pool."""
    subnetwork: str
    meant: FamilyNetwork | None

    @property
    def rdma(self) -> bool:
        return self.meant is not None and self.meant.mode == "RDMA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A node pool with GPUs of a family, or one that is meant to be that."""

    pointer: str
    pool: NodePool
    family: Family | None
    wanted: bool
    zones: tuple[str, ...]

    def at(self, *steps: str | int) -> str:
        """Pointer to something in the pool."""
        return self.pointer + pointer(*steps)

    @property
    def name(self) -> str:
        return self.pool.name or "(no name)"

    @property
    def says(self) -> str:
        """As the subject of a sentence."""
        return f"node pool {self.name}" if self.pointer else "the cluster to be made"

    @property
    def managed(self) -> bool:
        """Whether GKE makes its networks."""
        return bool(self.pool.network_config.accelerator_network_profile)

    @property
    def nics(self) -> tuple[Nic, ...]:
        """Its additional NICs, in order."""
        listed = self.pool.network_config.additional_node_network_configs
        return tuple(
            Nic(
                index=index,
                pointer=self.at("networkConfig", "additionalNodeNetworkConfigs", index),
                network=each.network,
                subnetwork=each.subnetwork,
                meant=meant,
            )
            for index, (each, meant) in enumerate(zip(listed, self._meant(), strict=True))
        )

    def _meant(self) -> list[FamilyNetwork | None]:
        """What each additional NIC should be: by its place, and by its kind where a family has two.

        RDMA NICs alone share a network, so the network that most NICs share is theirs wherever they stand.
        """
        family = self.family.networks if self.family else ()
        names = [short(each.network) for each in self.pool.network_config.additional_node_network_configs]
        shared, often = next(iter(Counter(names).most_common(1)), ("", 0))
        if often < 2 or len({each.mode for each in family}) < 2:
            return [*family, *[None] * len(names)][: len(names)]
        kinds = {rdma: iter([each for each in family if (each.mode == "RDMA") is rdma]) for rdma in (False, True)}
        return [next(kinds[name == shared], None) for name in names]

    @property
    def provisioning(self) -> Provisioning:
        """What its machines are taken from."""
        if self.specific_reservations:
            return "reserved"
        return "spot" if self.pool.config.spot or self.pool.config.preemptible else "standard"

    @property
    def made_for(self) -> int:
        """Nodes that it was made with, in all its zones."""
        return self.pool.initial_node_count * max(1, len(self.zones))

    @property
    def surge(self) -> int:
        """Nodes that an upgrade makes before it takes one away."""
        return self.pool.upgrade_settings.max_surge if self.pool.upgrade_settings.strategy != "BLUE_GREEN" else 0

    @property
    def specific_reservations(self) -> tuple[str, ...]:
        """Names of the reservations that it may take nodes from, without block."""
        affinity = self.pool.config.reservation_affinity
        return tuple(reservation_name(each) for each in affinity.values)

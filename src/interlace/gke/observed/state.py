"""All that was observed of one project and one cluster: the subject of rules.

Invariant: a part that is ``None`` was not read, or does not exist; an empty one was read and has nothing in it.
"""

from __future__ import annotations

from interlace.gke.observed.api import Api
from interlace.gke.observed.compute import Firewall, Network, Reservation, ReservationBlock, ResourcePolicy, Subnetwork
from interlace.gke.observed.container import Cluster
from interlace.gke.observed.kubernetes import Kubernetes
from interlace.gke.observed.quota import QuotaInfo, Quotas


class Want(Api, frozen=True, kw_only=True):
    """What the cluster is meant to be. ``flavour``: family, machine type or transport (tcpx, tcpxo)."""

    flavour: str = ""
    nodes: int = 0
    cluster_name: str = ""
    node_pool_name: str = ""
    networks: tuple[str, ...] = ()
    """VPC networks behind the additional NICs, where their names are known before there is a pool."""


class Service(Api, frozen=True, kw_only=True):
    """An API of the project, as Service Usage has it."""

    name: str = ""
    state: str = ""


class Permissions(Api, frozen=True, kw_only=True):
    """Answer of testIamPermissions: those of ``asked`` that the caller has."""

    asked: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()


class MachineType(Api, frozen=True, kw_only=True):
    """A machine type as one zone offers it."""

    name: str = ""
    zone: str = ""
    guest_cpus: int = 0


class State(Api, frozen=True, kw_only=True):
    """Everything that rules may look at."""

    project: str = ""
    location: str = ""
    want: Want = Want()
    cluster: Cluster | None = None
    networks: tuple[Network, ...] | None = None
    subnetworks: tuple[Subnetwork, ...] | None = None
    firewalls: tuple[Firewall, ...] | None = None
    resource_policies: tuple[ResourcePolicy, ...] | None = None
    reservations: tuple[Reservation, ...] | None = None
    project_info: Quotas | None = None
    region_info: Quotas | None = None
    quota_infos: tuple[QuotaInfo, ...] | None = None
    kubernetes: Kubernetes | None = None
    services: tuple[Service, ...] | None = None
    permissions: Permissions | None = None
    machine_types: tuple[MachineType, ...] | None = None
    reservation_blocks: tuple[ReservationBlock, ...] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing was read at all."""
        said = {"project", "location", "want"}
        return all(getattr(self, name) is None for name in self.__struct_fields__ if name not in said)

"""What rules judge: an observed or planned state, with the look-ups that many rules share. Pure.

Invariant: references are compared by what they name, whether they are names, partial paths or URLs; every look-up says
where in the document the thing that it found stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, Generic, Literal, TypeVar

from interlace.fabric.family import Family, families
from interlace.gke.observed.bundle import wanted_family
from interlace.gke.observed.compute import Network, Reservation, ResourcePolicy, Subnetwork
from interlace.gke.observed.container import NodeConfig, NodeNetwork, NodePool, PoolNetworkConfig
from interlace.gke.observed.kubernetes import KubernetesNetwork, Node, ParamSet
from interlace.gke.observed.state import State
from interlace.gke.places import short
from interlace.gke.rules.nodepool import Pool
from interlace.gke.rules.references import family_of, is_zone, project_in, region_in, region_of
from interlace.rules.pointer import pointer

Source = Literal["observed", "planned", "requested", "preflight"]
"""Whether the state is there, follows from a cluster file, or is what somebody's requests would make; preflight: a
cluster that follows from a file, among what is there.
"""

SECTIONS: Final = (
    "cluster",
    "networks",
    "subnetworks",
    "firewalls",
    "resourcePolicies",
    "reservations",
    "projectInfo",
    "regionInfo",
    "quotaInfos",
    "kubernetes",
    "kubernetes/networks",
    "kubernetes/gkeNetworkParamSets",
    "kubernetes/nodes",
    "services",
    "permissions",
    "machineTypes",
    "reservationBlocks",
)

T = TypeVar("T")

NUMBERED: Final = re.compile(r"(.*?)(\d+)\Z", re.DOTALL)
"""A name that ends with a number."""


@dataclass(frozen=True, slots=True)
class At(Generic[T]):
    """A value and the pointer to it."""

    pointer: str
    value: T


@dataclass(frozen=True, kw_only=True)
class Subject:
    """``now``: for what depends on the date; None: such rules say nothing."""

    state: State
    source: Source = "observed"
    now: datetime | None = None

    @property
    def whole(self) -> bool:
        """Whether what is not listed does not exist; in requests and plans it may exist already, or be made."""
        return self.source == "observed"

    @property
    def live(self) -> bool:
        """Whether the lists are those of a project."""
        return self.source in ("observed", "preflight")

    @property
    def new(self) -> bool:
        """Whether the cluster is still to be made."""
        return self.state.cluster is None or not self.whole

    @cached_property
    def unread(self) -> frozenset[str]:
        """Sections that were not read."""
        state, kubernetes = self.state, self.state.kubernetes
        values = (
            state.cluster,
            state.networks,
            state.subnetworks,
            state.firewalls,
            state.resource_policies,
            state.reservations,
            state.project_info,
            state.region_info,
            state.quota_infos,
            kubernetes,
            kubernetes and kubernetes.networks,
            kubernetes and kubernetes.gke_network_param_sets,
            kubernetes and kubernetes.nodes,
            state.services,
            state.permissions,
            state.machine_types,
            state.reservation_blocks if _blocks(self.pools) else (),
        )
        return frozenset(section for section, value in zip(SECTIONS, values, strict=True) if value is None)

    @property
    def region(self) -> str:
        """Of the location; empty where that is not known."""
        location = self.state.location or (self.state.cluster.location if self.state.cluster else "")
        return region_of(location)

    @cached_property
    def family(self) -> Family | None:
        """What the whole is meant to be: as it was asked for, else what its pools are."""
        wanted = wanted_family(self.state.want)
        return wanted or next((pool.family for pool in self.pools if pool.family), None)

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """Node pools with GPUs of a known family, and the one that is asked for whatever it is."""
        return tuple(self._pools())

    @property
    def pool(self) -> Pool | None:
        """The pool that is asked for; where no name was given, the only one with GPUs."""
        return next((pool for pool in self.pools if pool.wanted), None)

    @cached_property
    def wired(self) -> tuple[Pool, ...]:
        """Pools with their NICs; before there is a cluster, one with the networks that were made for it."""
        if self.state.cluster is not None or not self.whole:
            return self.pools
        presumed = self._presumed()
        return (presumed,) if presumed else ()

    @cached_property
    def networks(self) -> tuple[At[Network], ...]:
        return located("networks", self.state.networks)

    @cached_property
    def subnetworks(self) -> tuple[At[Subnetwork], ...]:
        return located("subnetworks", self.state.subnetworks)

    @cached_property
    def reservations(self) -> tuple[At[Reservation], ...]:
        return located("reservations", self.state.reservations)

    @cached_property
    def policies(self) -> tuple[At[ResourcePolicy], ...]:
        return located("resourcePolicies", self.state.resource_policies)

    @cached_property
    def kubernetes_networks(self) -> tuple[At[KubernetesNetwork], ...]:
        kubernetes = self.state.kubernetes
        return located("kubernetes/networks", kubernetes.networks if kubernetes else None)

    @cached_property
    def param_sets(self) -> tuple[At[ParamSet], ...]:
        kubernetes = self.state.kubernetes
        return located("kubernetes/gkeNetworkParamSets", kubernetes.gke_network_param_sets if kubernetes else None)

    def nodes(self, pool: Pool) -> tuple[At[Node], ...]:
        """The Kubernetes nodes of a pool: those with its label."""
        kubernetes = self.state.kubernetes
        every = located("kubernetes/nodes", kubernetes.nodes if kubernetes else None)
        return tuple(
            each for each in every if each.value.metadata.labels.get("cloud.google.com/gke-nodepool") == pool.pool.name
        )

    @property
    def cluster_network(self) -> str:
        """Reference of the cluster's own VPC network; GKE takes ``default`` where none was named."""
        cluster = self.state.cluster
        if cluster is None:
            return ""
        return cluster.network_config.network or cluster.network or "default"

    @property
    def cluster_subnetwork(self) -> str:
        cluster = self.state.cluster
        return (cluster.network_config.subnetwork or cluster.subnetwork) if cluster else ""

    def network(self, reference: str) -> At[Network] | None:
        """The network that is meant, if it is listed."""
        return self._named(self.networks, reference)

    def subnetwork(self, reference: str, *, network: str = "") -> At[Subnetwork] | None:
        """The subnet that is meant: of the cluster's region, and of ``network`` where several have the name."""
        alike = [each for each in self.subnetworks if self._means(reference, each.value.name, each.value.self_link)]
        region = region_in(reference) or self.region
        here = [
            each for each in alike if not region or region in ("", short(each.value.region)) or not each.value.region
        ]
        within = [each for each in here if network and short(each.value.network) == short(network)]
        return next(iter(within or here or alike), None)

    def foreign(self, reference: str) -> bool:
        """Whether it lies in another project, as with a shared VPC, so that our lists need not have it."""
        project = project_in(reference)
        return bool(project) and not project.isdigit() and bool(self.state.project) and project != self.state.project

    def existing(self, pool: Pool | None) -> int:
        """Nodes that a pool has now: those that were seen, else as many as it was made with."""
        if pool is None or self.source != "observed":
            return 0
        if "kubernetes/nodes" not in self.unread:
            return len(self.nodes(pool))
        if pool.pool.status in {"PROVISIONING", "ERROR"}:
            return 0
        return pool.made_for

    def wanted(self, pool: Pool | None) -> int:
        """Nodes of a pool when it is complete: as asked for, else as it was made with."""
        if pool is None or (pool.wanted and self.state.want.nodes):
            return self.state.want.nodes
        return pool.made_for

    def missing(self, pool: Pool | None) -> int:
        """Nodes of a pool that are still to come, which need quota and capacity."""
        if self.whole and not self.state.want.nodes:
            return 0
        return max(0, self.wanted(pool) - self.existing(pool))

    def _presumed(self) -> Pool | None:
        """A pool on networks that are wanted by name, else on the one row of numbered networks that is there."""
        family = self.family
        if family is None or any(each.mode == "RDMA" for each in family.networks):
            return None
        names = set(self.state.want.networks)
        rows: dict[str, list[str]] = {}
        for network in self.networks:
            match = NUMBERED.match(network.value.name)
            if network.value.name in names or (not names and match and not network.value.auto_create_subnetworks):
                rows.setdefault("" if names or not match else match[1], []).append(network.value.name)
        long = [row for row in rows.values() if len(row) > 1]
        fitting = [row for row in long if len(row) == len(family.networks)]
        chosen = fitting if len(fitting) == 1 else long
        if len(chosen) != 1:
            return None
        row = sorted(chosen[0], key=lambda name: [int(part) for part in re.findall(r"\d+\Z", name)])
        behind = {short(each.value.network): each.value.name for each in self.subnetworks}
        nics = tuple(NodeNetwork(network=name, subnetwork=behind.get(name, "")) for name in row)
        pool = NodePool(
            name=self.state.want.node_pool_name,
            config=NodeConfig(machine_type=family.machines[0]),
            network_config=PoolNetworkConfig(additional_node_network_configs=nics),
        )
        return Pool(pointer="", pool=pool, family=family, wanted=True, zones=())

    def _pools(self) -> Iterator[Pool]:
        cluster = self.state.cluster
        if cluster is None:
            return
        name = self.state.want.node_pool_name
        wanted = wanted_family(self.state.want)
        # A smaller machine with the same GPUs beside a pool of the family is for other work.
        alone = not name and not any(family_of(each.config.machine_type) for each in cluster.node_pools)
        for index, each in enumerate(cluster.node_pools):
            own = family_of(each.config.machine_type)
            asked = bool(name) and each.name == name
            meant = alone and _gpus(each)
            if own is None and not asked and not meant:
                continue
            zones = each.locations or cluster.locations
            location = cluster.location or self.state.location
            if not zones and is_zone(location):
                zones = (location,)
            yield Pool(
                pointer=pointer("cluster", "nodePools", index),
                pool=each,
                family=own or (wanted if asked else None),
                wanted=asked or (not name and (own is not None or meant)),
                zones=zones,
            )

    def _named(self, listed: Iterable[At[Network]], reference: str) -> At[Network] | None:
        return next((each for each in listed if self._means(reference, each.value.name, each.value.self_link)), None)

    def _means(self, reference: str, name: str, link: str) -> bool:
        if not reference or short(reference) != (name or short(link)):
            return False
        ours, theirs = project_in(reference), project_in(link)
        return not ours or not theirs or ours == theirs or ours.isdigit() != theirs.isdigit()


def located(section: str, listed: tuple[T, ...] | None) -> tuple[At[T], ...]:
    """Each element with its pointer; none of a section that was not read."""
    return tuple(At(f"/{section}/{index}", each) for index, each in enumerate(listed or ()))


def _blocks(pools: Iterable[Pool]) -> bool:
    """Whether a pool names a block of a reservation; else blocks need not be read."""
    return any("/reservationBlocks/" in each for pool in pools for each in pool.pool.config.reservation_affinity.values)


def _gpus(pool: NodePool) -> bool:
    """Whether it has the GPUs of a family, whatever its machine type: an A3 of the wrong size, say."""
    ours = {family.node.accelerator for family in families() if family.node.gke}
    return any(short(each.accelerator_type) in ours for each in pool.config.accelerators)

"""``FabricCluster``: one GKE cluster for GPUDirect as its owner describes it, and what follows from the description.

Invariant: nothing that can be derived is written down twice; names come from ``names``, ranges from ``addresses``, and
facts about hardware from the family. A value of this module has the right types and known keys; whether it makes a
cluster is judged by ``checking`` and by the rules.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from interlace.fabric.family import Family, find

API_VERSION: Final = "interlace.dev/v1alpha1"
KIND: Final = "FabricCluster"

SYSTEM_POOL: Final = "default-pool"
"""The pool that a cluster is born with; gcloud can give it no other name."""

MTU_LEAST: Final = 1300
MTU_MOST: Final = 8896
"""Bounds of a VPC network (API description of compute v1)."""

NAME: Final = r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
RANGE: Final = r"^[0-9.]{7,15}/[0-9]{1,2}$"
PROJECT: Final = r"^([a-z0-9.-]+:)?[a-z][-a-z0-9]{4,28}[a-z0-9]$"
LOCATION: Final = r"^[a-z]+-[a-z]+[0-9]+(-[a-z])?$"
ZONE: Final = r"^[a-z]+-[a-z]+[0-9]+-[a-z]$"
SCOPE: Final = r"^(https://www\.googleapis\.com/auth/)?[a-z][a-z0-9._-]*$"
RANGE_NAME: Final = r"^([a-z]([-a-z0-9]{0,61}[a-z0-9])?)?$"
ACCOUNT: Final = r"^([a-z0-9][-a-z0-9.]*@[-a-z0-9.]+)?$"

Name = Annotated[str, Meta(pattern=NAME)]
Range = Annotated[str, Meta(pattern=RANGE)]
Zone = Annotated[str, Meta(pattern=ZONE)]
Scope = Annotated[str, Meta(pattern=SCOPE)]
Count = Annotated[int, Meta(ge=0, le=15000)]

Channel = Literal["rapid", "regular", "stable", "extended", "none"]


class Hold(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A maintenance exclusion: GKE leaves the nodes alone although the cluster is in a release channel."""

    start: Annotated[str, Meta(description="When it begins, RFC 3339, 2026-12-01T00:00:00Z.")]
    end: Annotated[str, Meta(description="When it ends; empty: when the minor version is no longer supported.")] = ""
    scope: Annotated[
        Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"],
        Meta(description="What is held; patches of the control plane come but for NO_UPGRADES."),
    ] = "NO_MINOR_OR_NODE_UPGRADES"


class Upgrades(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """How the cluster gets new versions."""

    channel: Annotated[Channel, Meta(description="Release channel; none: a static version.")] = "regular"
    auto: Annotated[
        bool | None, Meta(description="Node auto-upgrade; without it: on in a channel, which allows nothing else.")
    ] = None
    hold: Annotated[Hold | None, Meta(description="Keep nodes as they are, with the channel.")] = None

    @property
    def automatic(self) -> bool:
        """Whether nodes are upgraded by GKE."""
        return self.channel != "none" if self.auto is None else self.auto


class Nic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The network behind one NIC where it is not the derived one."""

    network: Annotated[str, Meta(description="VPC network; empty: the derived name.")] = ""
    subnet: Annotated[str, Meta(description="Its subnet; empty: the derived name.")] = ""
    range: Annotated[Range | None, Meta(description="Of the subnet; without it: planned.")] = None


class Network(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Networks behind the NICs for traffic of GPUs."""

    mode: Annotated[
        Literal["multinet", "managed"],
        Meta(description="multinet: one VPC a NIC, made here. managed: GKE makes them; not for H100 families."),
    ] = "multinet"
    prefix: Annotated[str, Meta(description="Of all names of networks; empty: the name of the cluster.")] = ""
    mtu: Annotated[
        Annotated[int, Meta(ge=MTU_LEAST, le=MTU_MOST)] | None, Meta(description="Without it: that of the family.")
    ] = None
    range: Annotated[
        Range | None, Meta(description="Space for all node subnets; without it: a free one is looked for.")
    ] = None
    prefix_length: Annotated[
        int, Meta(ge=16, le=28, description="Size of each node subnet; /24 holds 252 nodes. Changing it replaces them.")
    ] = 24
    avoid: Annotated[tuple[Range, ...], Meta(description="Ranges in use elsewhere: peered VPCs, VPN, offices.")] = ()
    nics: Annotated[tuple[Nic, ...], Meta(description="One for each network of the family, in its order.")] = ()
    existing: Annotated[
        bool, Meta(description="The VPC networks and subnets are there already, and are not owned.")
    ] = False
    host_project: Annotated[str, Meta(description="Shared VPC: the project that the networks are in.")] = ""


class Primary(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """The network of the cluster: first NIC of every node, Pods and Services."""

    network: Annotated[str, Meta(description="VPC network; empty: the derived name.")] = ""
    subnet: Annotated[str, Meta(description="Its subnet; empty: the derived name.")] = ""
    range: Annotated[Range | None, Meta(description="Of the subnet; without it: planned.")] = None
    pods: Annotated[Range | None, Meta(description="Of all Pods; without it: planned, a /14.")] = None
    services: Annotated[Range | None, Meta(description="Of all Services; without it: planned, a /20.")] = None
    pods_name: Annotated[
        str, Meta(pattern=RANGE_NAME, description="The subnet's secondary range of Pods; empty: GKE makes one.")
    ] = "pods"
    services_name: Annotated[
        str, Meta(pattern=RANGE_NAME, description="The subnet's secondary range of Services; empty: GKE makes one.")
    ] = "services"
    existing: Annotated[bool, Meta(description="Network and subnet are there already, and are not owned.")] = False


class ControlPlane(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Who reaches the API server, and whether nodes have public addresses."""

    private_nodes: Annotated[bool, Meta(description="Nodes have no public addresses; they need Cloud NAT to pull.")] = (
        False
    )
    range: Annotated[Range | None, Meta(description="A /28 for the control plane of private nodes.")] = None
    authorized_networks: Annotated[
        tuple[str, ...],
        Meta(description="Ranges that may reach the API server, also public ones; without: left as it is."),
    ] = ()


class Reservation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """A specific reservation; block and sub-block narrow it down."""

    name: Annotated[str, Meta(min_length=1, description="Of the reservation.")]
    project: Annotated[str, Meta(description="Where it is, if it is shared from another project.")] = ""
    block: Annotated[str, Meta(description="A block of it.")] = ""
    sub_block: Annotated[str, Meta(description="A sub-block of the block.")] = ""

    @property
    def value(self) -> str:
        """As reservation affinity names it."""
        path = f"projects/{self.project}/reservations/{self.name}" if self.project else self.name
        path += f"/reservationBlocks/{self.block}" if self.block else ""
        return path + (f"/reservationSubBlocks/{self.sub_block}" if self.sub_block else "")


class Placement(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """How near to each other the nodes are: an existing policy, or one that is made."""

    policy: Annotated[str, Meta(description="A placement policy that exists; empty: one is made.")] = ""
    max_distance: Annotated[
        Annotated[int, Meta(ge=1, le=3)] | None, Meta(description="1: nearest. Needs the beta API.")
    ] = None
    topology: Annotated[str, Meta(description="GPU topology, 1x72 for one NVLink domain of A4X.")] = ""


class Disk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Boot disk and local SSDs; what is not given is left to GKE."""

    type: Annotated[str, Meta(description="Of the boot disk, pd-balanced or hyperdisk-balanced.")] = ""
    size_gb: Annotated[Annotated[int, Meta(ge=10, le=65536)] | None, Meta(description="Of the boot disk.")] = None
    local_ssds: Annotated[Annotated[int, Meta(ge=0, le=64)] | None, Meta(description="For ephemeral storage.")] = None


class Taint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A taint of nodes, as Kubernetes spells it."""

    key: Annotated[str, Meta(min_length=1, description="Name of the taint.")]
    value: Annotated[str, Meta(description="Its value, which may be empty.")] = ""
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"],
        Meta(description="What it does to Pods without toleration."),
    ] = "NoSchedule"


class Autoscaling(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Bounds of a pool that grows and shrinks, per zone."""

    min: Annotated[Count, Meta(description="Fewest nodes in each zone.")]
    max: Annotated[Count, Meta(description="Most nodes in each zone.")]


class Surge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Nodes beside and without the others while a pool is upgraded."""

    max_surge: Annotated[int, Meta(ge=0, le=20, description="Spare nodes; a full reservation has none.")] = 1
    max_unavailable: Annotated[int, Meta(ge=0, le=20, description="Nodes that may be away.")] = 0


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A node pool with the GPUs of the family."""

    name: Annotated[Name, Meta(max_length=40, description="Of the node pool.")]
    nodes: Annotated[Count, Meta(description="In each zone.")]
    zones: Annotated[tuple[Zone, ...], Meta(description="Where the nodes are; without: nodeLocations.")] = ()
    reservation: Annotated[Reservation | None, Meta(description="Take nodes from this reservation alone.")] = None
    spot: Annotated[bool, Meta(description="Spot VMs, which Google may take back.")] = False
    placement: Annotated[Placement | None, Meta(description="Near each other; {} makes a compact policy.")] = None
    host_maintenance: Annotated[
        Literal["PERIODIC", "AS_NEEDED"] | None,
        Meta(description="Of the hosts; must be that of the reservation. Needs the beta API."),
    ] = None
    disk: Disk = Disk()
    driver: Annotated[Literal["latest", "default", "disabled"], Meta(description="GPU driver that GKE installs.")] = (
        "latest"
    )
    image_type: Annotated[str, Meta(description="Empty: COS_CONTAINERD, which GPUDirect needs.")] = ""
    labels: Annotated[dict[str, str], Meta(description="Of the Kubernetes nodes.")] = {}
    taints: tuple[Taint, ...] = ()
    tags: Annotated[tuple[Name, ...], Meta(description="Network tags of the VMs.")] = ()
    scopes: Annotated[
        tuple[Scope, ...],
        Meta(
            description="OAuth scopes of nodes, URLs, their last part or gcloud's names; without: to pull and report."
        ),
    ] = ()
    service_account: Annotated[
        str, Meta(pattern=ACCOUNT, description="Of the nodes; empty: the project's default one.")
    ] = ""
    max_pods: Annotated[Annotated[int, Meta(ge=8, le=256)] | None, Meta(description="On a node.")] = None
    autoscaling: Autoscaling | None = None
    auto_repair: Annotated[bool, Meta(description="GKE makes broken nodes anew.")] = True
    surge: Surge = Surge()


class System(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The node pool without GPUs that every cluster is born with, default-pool."""

    nodes: Annotated[Count, Meta(description="In each zone.")] = 1
    machine_type: Annotated[str, Meta(min_length=1, description="One without GPUs.")] = "e2-standard-8"
    disk: Disk = Disk()
    labels: Annotated[dict[str, str], Meta(description="Of the Kubernetes nodes.")] = {}
    taints: tuple[Taint, ...] = ()
    scopes: Annotated[tuple[Scope, ...], Meta(description="As those of pools.")] = ()
    service_account: Annotated[str, Meta(pattern=ACCOUNT, description="As that of pools.")] = ""


class Metadata(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Name and labels."""

    name: Annotated[Name, Meta(max_length=40, description="Of the cluster.")]
    labels: Annotated[dict[str, str], Meta(description="Of the cluster and its VMs, for bills.")] = {}


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """What is wanted."""

    project: Annotated[str, Meta(pattern=PROJECT, description="Id, not number.")]
    location: Annotated[str, Meta(pattern=LOCATION, description="Zone or region of the cluster.")]
    node_locations: Annotated[
        tuple[Zone, ...], Meta(description="Zones of nodes; without: the zone of the cluster.")
    ] = ()
    family: Annotated[str, Meta(description="Hardware family or machine type: a3-mega.")]
    version: Annotated[str, Meta(description="GKE version; without: the one of the channel.")] = ""
    upgrades: Upgrades = Upgrades()
    network: Network = Network()
    primary: Primary = Primary()
    control_plane: ControlPlane = ControlPlane()
    workload_identity: Annotated[
        bool, Meta(description="Pods get rights of their own, not the node's; false: left as it is.")
    ] = False
    system: System = System()
    pools: Annotated[tuple[Pool, ...], Meta(description="Node pools with GPUs.")]


class FabricCluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The file."""

    api_version: Annotated[Literal["interlace.dev/v1alpha1"], Meta(description="Of this form.")]
    kind: Annotated[Literal["FabricCluster"], Meta(description="What the file is about.")]
    metadata: Metadata
    spec: Spec

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def family(self) -> Family:
        """Raises FamilyError for an unknown one; a cluster that was read has a known one."""
        return find(self.spec.family)

    @property
    def region(self) -> str:
        """Of the location."""
        return "-".join(self.spec.location.split("-")[:2])

    @property
    def zones(self) -> tuple[str, ...]:
        """Where nodes are; empty for a regional cluster that leaves it to GKE."""
        if self.spec.node_locations:
            return self.spec.node_locations
        return (self.spec.location,) if self.spec.location != self.region else ()

    @property
    def network_project(self) -> str:
        """Project of the networks."""
        return self.spec.network.host_project or self.spec.project

    def zones_of(self, pool: Pool) -> tuple[str, ...]:
        """Where the nodes of a pool are."""
        return pool.zones or self.zones

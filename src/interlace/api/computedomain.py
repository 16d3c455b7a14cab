"""The kinds of ``resource.nvidia.com/v1beta1``: the contract that existing manifests rely on.

Names, defaults and validation equal those of the existing API; what is ours beside them is
optional (conditions, printer columns). CRDs are generated from these structs by ``api.crd``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from interlace.api.meta import Condition, ObjectMeta, Resource, Struct

GROUP = "resource.nvidia.com"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"

DRIVER = "compute-domain.nvidia.com"
"""DRA driver name."""
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
DAEMON_CLASS = "compute-domain-daemon.nvidia.com"

DOMAIN_LABEL = "resource.nvidia.com/computeDomain"
"""Label (value: uid of the domain) on claim templates, claims and cliques."""
CLIQUE_LABEL = "resource.nvidia.com/computeDomain.cliqueID"
TARGET_LABEL = "resource.nvidia.com/computeDomainTarget"
FINALIZER = "resource.nvidia.com/computeDomain"
NODE_CLIQUE_LABEL = "nvidia.com/gpu.clique"
"""Node label set by GPU feature discovery, used by workloads for affinity."""

SHARED = "shared"
"""What devices name as their domain on nodes that are opened for all domains with isolation Channel."""

DOMAIN_NAME_ANNOTATION = "interlace.dev/domain-name"
DOMAIN_NAMESPACE_ANNOTATION = "interlace.dev/domain-namespace"
"""On cliques: whose domain it is, so that an agent needs no right to read ComputeDomains."""

AllocationMode = Literal["Single", "All"]
Isolation = Literal["Domain", "Channel"]
Readiness = Literal["Ready", "NotReady"]

REQUIRED = {"crd": "required"}
"""Mark of a field that the CRD requires although the struct has a default for it."""
WITHOUT_DEFAULT = {"crd": "without default"}
"""Mark of a field whose default the CRD does not state."""


def list_map(key: str) -> dict[str, Any]:
    """Schema keywords of a list that server-side apply merges by ``key``."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


class ResourceClaimTemplateReference(Struct, frozen=True):
    """Names the ResourceClaimTemplate that Pods of the domain refer to."""

    name: Annotated[
        str, Meta(description="Name of the ResourceClaimTemplate that is made in the namespace of the ComputeDomain.")
    ]


class ComputeDomainChannelSpec(Struct, frozen=True, omit_defaults=False):
    """How a Pod of the domain gets its IMEX channel."""

    resource_claim_template: ResourceClaimTemplateReference
    allocation_mode: Annotated[
        AllocationMode,
        Meta(description="Single puts one IMEX channel into each container, All puts every channel of the node there."),
    ] = "Single"


class PeerBarrier(Struct, frozen=True):
    """Holds Pods back until their IMEX is connected to its peers."""

    nodes: Annotated[
        int,
        Meta(
            ge=0,
            description="Nodes that the domain has to have before any Pod starts; 0: as many as there are.",
            extra=WITHOUT_DEFAULT,
        ),
    ] = 0
    timeout_seconds: Annotated[
        int,
        Meta(
            ge=1,
            le=86400,
            description="Longest wait of a Pod, 300 where it is not given; then the Pod starts without its peers.",
            extra=WITHOUT_DEFAULT,
        ),
    ] = 300


class ComputeDomainSpec(Struct, frozen=True, omit_defaults=False):
    """What is wanted; immutable once created."""

    channel: ComputeDomainChannelSpec
    num_nodes: Annotated[
        int,
        Meta(ge=0, description="Deprecated, leave it at 0. With fewer nodes than this status.status is NotReady."),
    ] = 0
    isolation: Annotated[
        Isolation,
        Meta(
            description="Domain (what counts where nothing is given): an IMEX domain and nodes of its own. Channel: an "
            "IMEX channel of its own in an IMEX domain, and on nodes, that it shares with other domains of this kind.",
            extra=WITHOUT_DEFAULT,
        ),
    ] = "Domain"
    wait_for_peers: Annotated[
        PeerBarrier | None, Meta(description="Where it is given, Pods start once their IMEX peers are connected.")
    ] = None


class ComputeDomainNode(Struct, frozen=True, omit_defaults=False):
    """One node of the domain."""

    name: Annotated[str, Meta(description="Name of the Node.")]
    ip_address: Annotated[str, Meta(description="Address at which IMEX of this node listens.")] = msgspec.field(
        name="ipAddress"
    )
    clique_id: Annotated[
        str, Meta(description="<cluster uuid>.<clique number> of the NVLink fabric; empty without a fabric.")
    ] = msgspec.field(name="cliqueID")
    index: Annotated[
        int,
        Meta(
            description="Slot in the IMEX node map of the clique; -1 on a node without a fabric.", extra=WITHOUT_DEFAULT
        ),
    ] = -1
    status: Annotated[Readiness, Meta(description="Ready once a channel of the domain is ready on this node.")] = (
        "NotReady"
    )


class ComputeDomainStatus(Struct, frozen=True, omit_defaults=False):
    """What is. Workloads should not depend on it: they start when their channel is ready."""

    status: Annotated[
        Readiness,
        Meta(description="Ready when each node is, and there are at least spec.numNodes of them.", extra=REQUIRED),
    ] = "NotReady"
    nodes: Annotated[list[ComputeDomainNode], Meta(extra_json_schema=list_map("name"))] = []
    ready_nodes: Annotated[str, Meta(description='How many nodes are ready, of how many: "17/18".')] = ""
    conditions: Annotated[list[Condition], Meta(extra_json_schema=list_map("type"))] = []


class ComputeDomain(Struct, frozen=True):
    """The nodes that run one workload, connected by an IMEX domain that follows the workload."""

    resource: ClassVar[Resource] = Resource(GROUP, VERSION, "computedomains", "ComputeDomain", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[
        ComputeDomainSpec | None,
        Meta(
            extra=REQUIRED,
            extra_json_schema={
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "A computeDomain.spec is immutable"},
                    {
                        "rule": "!has(self.isolation) || self.isolation != 'Channel' || "
                        "self.channel.allocationMode != 'All'",
                        "message": "spec.channel.allocationMode All would hand out the channels of other domains with "
                        "spec.isolation Channel; use Single, or isolation Domain",
                    },
                ]
            },
        ),
    ] = None
    """None only where an object was stored before our CRD made ``spec`` required."""
    status: ComputeDomainStatus | None = None


class ComputeDomainDaemonInfo(Struct, frozen=True):
    """One IMEX daemon of a clique."""

    node_name: Annotated[str, Meta(description="Name of the Node.")]
    ip_address: Annotated[str, Meta(description="Address at which IMEX of this node listens.")] = msgspec.field(
        name="ipAddress"
    )
    clique_id: Annotated[str, Meta(description="The clique, as in the name of the object.")] = msgspec.field(
        name="cliqueID"
    )
    index: Annotated[
        int, Meta(description="Slot in the IMEX node map; fixed while the row exists.", extra=WITHOUT_DEFAULT)
    ] = -1
    status: Annotated[
        Readiness,
        Meta(description="Not maintained: readiness is in the status of the ResourceClaims and of the ComputeDomain."),
    ] = "NotReady"
    shared: Annotated[
        bool,
        Meta(description="The node is opened for more than one Pod of the domain.", extra=WITHOUT_DEFAULT),
    ] = False


class PeerCount(Struct, frozen=True, omit_defaults=False):
    """spec.waitForPeers of the domain, and how many of these nodes there are."""

    nodes: Annotated[int, Meta(description="As in the spec of the ComputeDomain.", extra=WITHOUT_DEFAULT)] = 0
    timeout_seconds: Annotated[int, Meta(description="As in the spec of the ComputeDomain.", extra=WITHOUT_DEFAULT)] = (
        300
    )
    present: Annotated[
        int,
        Meta(description="Nodes that the domain has in all cliques; not counted beyond nodes.", extra=WITHOUT_DEFAULT),
    ] = 0


class ComputeDomainChannel(Struct, frozen=True):
    """One ComputeDomain with isolation Channel."""

    domain: Annotated[str, Meta(description="Uid of the ComputeDomain.")]
    name: Annotated[str, Meta(description="Name of the ComputeDomain.")]
    namespace: Annotated[str, Meta(description="Namespace of the ComputeDomain.")]
    channel: Annotated[int, Meta(description="Number of the IMEX channel that its containers get.")]
    indexes: Annotated[list[int], Meta(description="Slots of its nodes in the IMEX node map.")] = []
    wait_for_peers: PeerCount | None = None


class ComputeDomainClique(Struct, frozen=True):
    """An IMEX node map in one NVLink clique.

    That of one ComputeDomain is named <domain uid>.<clique id>; that of all with isolation Channel shared.<clique id>.
    """

    resource: ClassVar[Resource] = Resource(GROUP, VERSION, "computedomaincliques", "ComputeDomainClique", True)
    metadata: ObjectMeta = ObjectMeta()
    daemons: Annotated[list[ComputeDomainDaemonInfo], Meta(extra_json_schema=list_map("nodeName"))] = []
    channels: Annotated[
        list[ComputeDomainChannel],
        Meta(
            description="The ComputeDomains with isolation Channel that share the node map.",
            extra_json_schema=list_map("domain"),
        ),
    ] = []
    wait_for_peers: PeerCount | None = None


class ComputeDomainChannelConfig(
    msgspec.Struct,
    frozen=True,
    rename={"domain_id": "domainID", "allocation_mode": "allocationMode", "api_version": "apiVersion"},
    forbid_unknown_fields=True,
    kw_only=True,
):
    """Opaque parameters of a channel claim; decoded strictly."""

    api_version: str = API_VERSION
    kind: Literal["ComputeDomainChannelConfig"] = "ComputeDomainChannelConfig"
    domain_id: Annotated[str, Meta(min_length=1)]
    allocation_mode: str = ""
    """``All`` or anything else, which acts as ``Single``."""

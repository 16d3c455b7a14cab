"""The kinds of ``resource.nvidia.com/v1beta1``: the contract that existing manifests rely on.

Names, defaults and validation equal those of the existing API; what is ours beside them is
optional (conditions, printer columns). CRDs are generated from these structs by ``api.crd``.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

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

DOMAIN_NAME_ANNOTATION = "interlace.dev/domain-name"
DOMAIN_NAMESPACE_ANNOTATION = "interlace.dev/domain-namespace"
"""On cliques: whose domain it is, so that an agent needs no right to read ComputeDomains."""

AllocationMode = Literal["Single", "All"]
Readiness = Literal["Ready", "NotReady"]


class ResourceClaimTemplateReference(Struct):
    """``spec.channel.resourceClaimTemplate``."""

    name: str
    """Name of the ResourceClaimTemplate that is made in the domain's namespace."""


class ComputeDomainChannelSpec(Struct, omit_defaults=False):
    """``spec.channel``."""

    resource_claim_template: ResourceClaimTemplateReference
    allocation_mode: AllocationMode = "Single"
    """``All`` puts all 2048 channels into the container, ``Single`` one."""


class ComputeDomainSpec(Struct, omit_defaults=False):
    """``spec``; immutable once created."""

    channel: ComputeDomainChannelSpec
    num_nodes: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Deprecated; only feeds the global status: fewer nodes than this are NotReady."""


class ComputeDomainNode(Struct, omit_defaults=False):
    """``status.nodes[]``, list map by ``name``."""

    name: str
    ip_address: str = msgspec.field(name="ipAddress")
    clique_id: str = msgspec.field(name="cliqueID")
    """``<cluster uuid>.<clique number>``; empty on a node without a fabric."""
    index: int
    """Slot in the IMEX node map; -1 on a node without a fabric."""
    status: Readiness = "NotReady"


class ComputeDomainStatus(Struct):
    """``status``."""

    status: Readiness = msgspec.field(default="NotReady")
    nodes: list[ComputeDomainNode] = []
    conditions: list[Condition] = []


class ComputeDomain(Struct):
    """``resource.nvidia.com/v1beta1.ComputeDomain``."""

    resource: ClassVar[Resource] = Resource(GROUP, VERSION, "computedomains", "ComputeDomain", True)
    metadata: ObjectMeta = ObjectMeta()
    spec: ComputeDomainSpec | None = None
    """None only where an object was stored before our CRD made ``spec`` required."""
    status: ComputeDomainStatus | None = None


class ComputeDomainDaemonInfo(Struct, omit_defaults=False):
    """``daemons[]`` of a clique, list map by ``nodeName``: one IMEX daemon."""

    node_name: str
    ip_address: str = msgspec.field(name="ipAddress")
    clique_id: str = msgspec.field(name="cliqueID")
    index: int
    """Slot in the IMEX node map; fixed while the row exists."""
    status: Readiness = "NotReady"
    """Kept for the contract and not maintained: readiness is in the claims and in the domain's status."""


class ComputeDomainClique(Struct):
    """``resource.nvidia.com/v1beta1.ComputeDomainClique``, named ``<domain uid>.<clique id>``, in our namespace."""

    resource: ClassVar[Resource] = Resource(GROUP, VERSION, "computedomaincliques", "ComputeDomainClique", True)
    metadata: ObjectMeta = ObjectMeta()
    daemons: list[ComputeDomainDaemonInfo] = []


class ComputeDomainChannelConfig(msgspec.Struct, frozen=True, rename={"domain_id": "domainID", "allocation_mode": "allocationMode", "api_version": "apiVersion"}, forbid_unknown_fields=True, kw_only=True):
    """Opaque parameters of a channel claim; decoded strictly."""

    api_version: str = API_VERSION
    kind: Literal["ComputeDomainChannelConfig"] = "ComputeDomainChannelConfig"
    domain_id: Annotated[str, msgspec.Meta(min_length=1)]
    allocation_mode: str = ""
    """``All`` or anything else, which acts as ``Single``."""

"""The JSON documents of ``interlace domains``: what programs may rely on. No decisions here."""

from __future__ import annotations

from typing import Literal

import msgspec

from interlace.api.computedomain import ComputeDomain, ComputeDomainNode
from interlace.api.meta import Condition
from interlace.cli.domain_reader import Picture
from interlace.domains.chain import Chain, Link


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One domain: an entry of ``list``, a line of ``watch``, the answer of ``wait``."""

    namespace: str
    name: str
    uid: str
    status: str
    """``status.status`` of the existing API: Ready or NotReady."""
    ready: bool
    """The condition ``Ready``; ``status.status`` where no condition was written yet."""
    reason: str
    """Of that condition, one word."""
    message: str
    """Of that condition, one sentence."""
    nodes: int
    """Nodes that are members."""
    nodes_ready: int
    """Those of them whose channel is ready."""
    created: str | None
    """RFC 3339."""


class Domains(msgspec.Struct, frozen=True, kw_only=True):
    """The document of ``list``."""

    domains: list[Summary]


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """The last line of ``watch``."""

    namespace: str
    name: str
    deleted: Literal[True] = True


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An event about the domain."""

    time: str | None
    """Of the last occurrence, RFC 3339."""
    type: str
    """Normal or Warning."""
    reason: str
    message: str


class Unhealthy(msgspec.Struct, frozen=True, kw_only=True):
    """A node that offers no channel since its fabric is unhealthy."""

    node: str
    reason: str


class PodChain(msgspec.Struct, frozen=True, kw_only=True):
    """One Pod of the domain and the chain to its channel."""

    pod: str
    """Its name; ``namespace/name`` where that is not the domain's namespace."""
    node: str
    """Where its channel is allocated, empty if nowhere."""
    waits_for: str | None
    """``what`` of the first link that is waiting or broken."""
    chain: list[Link]


class Document(Summary, frozen=True, kw_only=True):
    """The document of ``show`` and ``explain``: a summary and these."""

    conditions: list[Condition]
    """``status.conditions``."""
    members: list[ComputeDomainNode]
    """``status.nodes``."""
    pods: list[PodChain]
    """Those that wait first."""
    events: list[Told]
    """Oldest first."""
    unhealthy_nodes: list[Unhealthy]
    """Of the whole cluster; empty also where ResourceSlices may not be read."""
    unreadable: list[str]
    """Plurals of the kinds that the caller may not read."""


def encode(document: msgspec.Struct) -> str:
    """One line of JSON."""
    return msgspec.json.encode(document).decode()


def condition_of(domain: ComputeDomain, kind: str) -> Condition | None:
    """A condition of the domain itself."""
    return next((item for item in domain.status.conditions if item.type == kind), None) if domain.status else None


def is_ready(domain: ComputeDomain) -> bool:
    """The condition ``Ready``, or the status field where no condition was written yet."""
    found = condition_of(domain, "Ready")
    if found is not None:
        return found.status == "True"
    return domain.status is not None and domain.status.status == "Ready"


def nodes_ready(domain: ComputeDomain) -> int:
    """How many nodes of the domain are Ready."""
    return sum(node.status == "Ready" for node in domain.status.nodes) if domain.status else 0


def summary(domain: ComputeDomain) -> Summary:
    """What a line says."""
    ready = condition_of(domain, "Ready")
    return Summary(
        namespace=domain.metadata.namespace,
        name=domain.metadata.name,
        uid=domain.metadata.uid,
        status=domain.status.status if domain.status else "NotReady",
        ready=is_ready(domain),
        reason=ready.reason if ready else "",
        message=ready.message if ready else "",
        nodes=len(domain.status.nodes) if domain.status else 0,
        nodes_ready=nodes_ready(domain),
        created=domain.metadata.creation_timestamp,
    )


def document(picture: Picture) -> Document:
    """Everything about one domain."""
    status = picture.domain.status
    return Document(
        **msgspec.structs.asdict(summary(picture.domain)),
        conditions=list(status.conditions) if status else [],
        members=list(status.nodes) if status else [],
        pods=[_pod(chain) for chain in picture.chains],
        events=[
            Told(time=event.last_timestamp, type=event.type, reason=event.reason, message=event.message)
            for event in picture.events
        ],
        unhealthy_nodes=[Unhealthy(node=node, reason=reason) for node, reason in picture.unhealthy.items()],
        unreadable=picture.unreadable,
    )


def _pod(chain: Chain) -> PodChain:
    return PodChain(
        pod=chain.pod,
        node=chain.node,
        waits_for=chain.waits_for.what if chain.waits_for else None,
        chain=list(chain.links),
    )

"""What the known driver leaves in a cluster that Interlace takes over, and what of it may go.

The known driver shares API group, driver name, label key and finalizer with us, so whose an object is has to be told
by what only one of the two writes. Invariant: nothing that we write is ever called a leftover, and nothing is free to
go while a workload holds a channel that the known driver prepared for the same domain or node, or while that driver
is installed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from interlace.api.computedomain import (
    DOMAIN_LABEL,
    DOMAIN_NAME_ANNOTATION,
    DRIVER,
    FINALIZER,
    TARGET_LABEL,
    ComputeDomain,
    ComputeDomainClique,
)
from interlace.api.core import Node
from interlace.api.meta import ObjectMeta
from interlace.api.resource import ResourceClaim, ResourceClaimTemplate, ResourceSlice

COMPONENT_LABELS: Final = ("dra-driver-nvidia-gpu-component", "nvidia-dra-driver-gpu-component")
"""On the workloads of the known driver's chart: the present label and the one of older charts."""
_COMPONENT_CONTAINERS: Final = frozenset({"compute-domain", "compute-domains"})
"""Containers of controller and kubelet plugin; a chart without them serves GPUs alone."""
_DAEMON: Final = "computedomain-daemon-"

OUT_OF_REACH: Final = (
    "Not looked for, because it is on the nodes: CDI specs /var/run/cdi/k8s.compute-domain.nvidia.com-* and "
    "/var/lib/kubelet/plugins/compute-domain.nvidia.com/domains; the first are gone after a reboot, the second may be "
    "deleted once that driver is gone."
)


class What(StrEnum):
    """Kinds of leftovers, in the order in which they are removed."""

    DAEMON_SET = "DaemonSet"
    TEMPLATE = "ResourceClaimTemplate"
    CLIQUE = "ComputeDomainClique"
    NODE_LABEL = "node label"
    SLICE = "ResourceSlice"


class Leftover(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing of the known driver."""

    what: What
    namespace: str
    name: str
    """Of the object; for a label, of the node."""
    uid: str
    domain: str
    """uid of the ComputeDomain that it was made for; empty for slices."""
    finalizers: list[str] = []
    in_use: str = ""
    """Why it has to stay for now, as one sentence; empty: it can go."""


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A workload of the known driver itself: it is still installed."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """What the cluster holds, as far as it can matter here."""

    domains: Sequence[ComputeDomain]
    workloads: Sequence[Mapping[str, Any]]
    """DaemonSets and Deployments, whole."""
    templates: Sequence[ResourceClaimTemplate]
    claims: Sequence[ResourceClaim]
    cliques: Sequence[ComputeDomainClique]
    nodes: Sequence[Node]
    slices: Sequence[ResourceSlice]


class _Parameters(msgspec.Struct):
    domain_id: str = msgspec.field(name="domainID", default="")


_parameters = msgspec.json.Decoder(_Parameters)


def is_ours(template: ResourceClaimTemplate) -> bool:
    """Whether we wrote the template: only then do its claims carry the label of the domain."""
    return DOMAIN_LABEL in template.spec.metadata.labels


def components(workloads: Iterable[Mapping[str, Any]]) -> list[Component]:
    """The known driver's controller and kubelet plugin."""
    return [
        Component(kind=str(found.get("kind", "")), namespace=meta.namespace, name=meta.name)
        for found in workloads
        if any(label in (meta := _meta(found)).labels for label in COMPONENT_LABELS)
        and _COMPONENT_CONTAINERS & set(_containers(found))
    ]


def leftovers(found: Inventory) -> list[Leftover]:
    """Everything of the known driver, in the order in which it goes; the same order for the same cluster."""
    installed = components(found.workloads)
    held, busy_nodes = _held(found.claims)
    living = {domain.metadata.uid for domain in found.domains}

    def why(*, domain: str = "", node: str = "") -> str:
        if installed:
            return f"{installed[0]} still runs; uninstall that driver first."
        if domain in held and (not node or node in busy_nodes):
            return (
                f"{held[domain]} still holds a channel that the other driver prepared; it goes when its Pod has ended."
            )
        if node in busy_nodes and not domain:
            return f"{busy_nodes[node]} still holds a channel of it; it goes when its Pod has ended."
        return ""

    def one(what: What, meta: ObjectMeta, *, domain: str = "", in_use: str) -> Leftover:
        return Leftover(
            what=what,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            domain=domain,
            finalizers=meta.finalizers,
            in_use=in_use,
        )

    out = [
        one(What.DAEMON_SET, meta, domain=uid, in_use=why(domain=uid))
        for workload in found.workloads
        if workload.get("kind") == "DaemonSet"
        and (uid := (meta := _meta(workload)).labels.get(DOMAIN_LABEL, ""))
        and meta.name == _DAEMON + uid
    ]
    out += [
        one(What.TEMPLATE, template.metadata, domain=uid, in_use=why(domain=uid))
        for template in found.templates
        if (uid := template.metadata.labels.get(DOMAIN_LABEL, ""))
        and template.metadata.labels.get(TARGET_LABEL) in ("Daemon", "Workload")
        and not is_ours(template)
        # That of a living domain is replaced by our controller: Pods name it.
        and (template.metadata.labels[TARGET_LABEL] == "Daemon" or uid not in living)
    ]
    out += [
        one(What.CLIQUE, clique.metadata, domain=uid, in_use=why(domain=uid))
        for clique in found.cliques
        if (uid := clique.metadata.labels.get(DOMAIN_LABEL, ""))
        and DOMAIN_NAME_ANNOTATION not in clique.metadata.annotations
    ]
    out += [
        one(
            What.NODE_LABEL,
            ObjectMeta(name=node.metadata.name, uid=node.metadata.uid),
            domain=uid,
            in_use=why(domain=uid, node=node.metadata.name),
        )
        for node in found.nodes
        if (uid := node.metadata.labels.get(DOMAIN_LABEL, ""))
    ]
    out += [
        one(What.SLICE, item.metadata, in_use=why(node=item.spec.node_name or ""))
        for item in found.slices
        if item.spec.driver == DRIVER and item.spec.node_name and not _our_slice(item)
    ]
    order = list(What)
    return sorted(out, key=lambda item: (order.index(item.what), item.namespace, item.name))


def without_finalizer(finalizers: Iterable[str]) -> list[str]:
    """The finalizers that stay when the known driver's goes."""
    return [finalizer for finalizer in finalizers if finalizer != FINALIZER]


def _held(claims: Iterable[ResourceClaim]) -> tuple[dict[str, str], dict[str, str]]:
    """Domains and nodes with a workload whose channel the known driver prepared, each with one such claim."""
    domains: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for claim in claims:
        allocation = claim.status.allocation
        if DOMAIN_LABEL in claim.metadata.labels or allocation is None or not claim.status.reserved_for:
            continue
        channels = [r for r in allocation.devices.results if r.driver == DRIVER and r.device.startswith("channel-")]
        name = f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name}"
        if channels:
            nodes.setdefault(channels[0].pool, name)
            for config in allocation.devices.config:
                if config.opaque is not None and config.opaque.driver == DRIVER:
                    domains.setdefault(_domain_in(config.opaque.parameters), name)
    domains.pop("", None)
    return domains, nodes


def _domain_in(parameters: msgspec.Raw) -> str:
    try:
        return _parameters.decode(parameters).domain_id
    except msgspec.MsgspecError:
        return ""


def _our_slice(item: ResourceSlice) -> bool:
    """Ours offers channels alone; the known driver offers a daemon device beside each."""
    return all(device.name.startswith("channel-") for device in item.spec.devices)


def _meta(found: Mapping[str, Any]) -> ObjectMeta:
    return msgspec.convert(found.get("metadata") or {}, ObjectMeta)


def _containers(found: Mapping[str, Any]) -> list[str]:
    spec = ((found.get("spec") or {}).get("template") or {}).get("spec") or {}
    return [str(container.get("name", "")) for container in spec.get("containers") or []]

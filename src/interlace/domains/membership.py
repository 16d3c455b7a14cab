"""Which nodes belong to a domain.

A node belongs while a claim of the domain is allocated there, reserved or not: a binding that is
refused takes the reservation away for seconds and keeps the allocation, so following reservations
would make nodes leave and come back. Claims are found by label; one in another namespace never
counts, whatever its label says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from interlace.api.computedomain import DRIVER
from interlace.api.core import ObjectReference
from interlace.api.resource import AllocatedDeviceStatus, ResourceClaim


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The claims that carry a domain's label, sorted out."""

    members: Mapping[str, tuple[ResourceClaim, ...]]
    """Node to the claims allocated there; names ascending."""
    unallocated: tuple[ResourceClaim, ...]
    """Claims of Pods that the scheduler has not placed."""
    strangers: tuple[ResourceClaim, ...]
    """Claims outside the namespace of the domain."""


def membership(claims: Iterable[ResourceClaim], *, namespace: str) -> Membership:
    """Sort out the claims that carry the label of a domain in ``namespace``."""
    members: dict[str, list[ResourceClaim]] = {}
    unallocated: list[ResourceClaim] = []
    strangers: list[ResourceClaim] = []
    for claim in sorted(claims, key=lambda claim: (claim.metadata.namespace, claim.metadata.name)):
        if claim.metadata.namespace != namespace:
            strangers.append(claim)
        elif node := node_of(claim):
            members.setdefault(node, []).append(claim)
        elif claim.status.allocation is None and claim.metadata.deletion_timestamp is None and pods_of(claim):
            unallocated.append(claim)
    return Membership(
        members={node: tuple(members[node]) for node in sorted(members)},
        unallocated=tuple(unallocated),
        strangers=tuple(strangers),
    )


def node_of(claim: ResourceClaim) -> str:
    """Node on which a channel is allocated to the claim (our pools are named after nodes), or ``""``."""
    if claim.status.allocation is None:
        return ""
    return next((r.pool for r in claim.status.allocation.devices.results if r.driver == DRIVER), "")


def device_of(claim: ResourceClaim) -> AllocatedDeviceStatus | None:
    """What the agent reported for the channel of the claim on the node where it is allocated now."""
    node = node_of(claim)
    return next((d for d in claim.status.devices if d.driver == DRIVER and d.pool == node), None) if node else None


def pods_of(claim: ResourceClaim) -> list[ObjectReference]:
    """The Pods that use the claim: those it is reserved for, else the one that it was made for."""
    namespace = claim.metadata.namespace
    reserved = [(r.name, r.uid) for r in claim.status.reserved_for if r.resource == "pods" and not r.api_group]
    owners = [(o.name, o.uid) for o in claim.metadata.owner_references if o.kind == "Pod"]
    return [
        ObjectReference(api_version="v1", kind="Pod", namespace=namespace, name=name, uid=uid)
        for name, uid in reserved or owners
    ]

"""A pod and the claims it uses: which they are, what is still to be allocated, and how the result is written.

Invariant: a claim is only ever changed in finalizers, ``allocation`` and ``reservedFor``; everything else goes
back as the bytes that came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import msgspec

from interlace.api.resource import ResourceClaimConsumerReference
from interlace.sim.platform.devicekinds import NOTHING, Allocation, ResourceClaim, ResourceClaimSpec
from interlace.sim.platform.kinds import Pod, controller_of
from interlace.sim.platform.scheduling.cycle import Demand
from interlace.sim.platform.scheduling.devices import Unsatisfiable, Wanted
from interlace.sim.platform.scheduling.ledger import allocation_of

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim while it is allocated."""
MAX_CONSUMERS = 256
"""Pods for which one claim can be reserved (resource.k8s.io, ResourceClaimReservedForMaxSize)."""


class Waiting(Exception):
    """The pod cannot be looked at yet; the text says what is missing."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The claims of a pod."""

    claims: tuple[ResourceClaim, ...]
    demand: Demand

    def to_allocate(self) -> tuple[ResourceClaim, ...]:
        """Claims without an allocation, in the order of ``demand.wanted``."""
        return tuple(claim for claim in self.claims if not claim.allocated)


def claim_names(pod: Pod) -> list[str]:
    """Names of the claims of a pod.

    Raises:
        Waiting: a claim that is made from a template has no name yet.
    """
    made = {entry.name: entry for entry in pod.status.resource_claim_statuses}
    names = []
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name is not None:
            names.append(entry.resource_claim_name)
            continue
        status = made.get(entry.name)
        if status is None:
            raise Waiting(f"waiting for the ResourceClaim of {entry.name!r} to be created")
        if status.resource_claim_name is not None:
            names.append(status.resource_claim_name)
    return names


def consider(pod: Pod, find: Callable[[str], ResourceClaim | None], busy: Callable[[str], bool]) -> Use:
    """What the claims of ``pod`` need; ``find`` by name, ``busy`` by uid: an allocation is under way.

    Raises:
        Waiting: a claim does not exist yet, or another pod is getting it allocated at this moment.
        Unsatisfiable: a claim cannot be used by this pod.
    """
    claims = []
    for name in dict.fromkeys(claim_names(pod)):
        claim = find(name)
        if claim is None:
            raise Waiting(f'waiting for resourceclaim "{name}", which was not found')
        _check(pod, claim)
        if busy(claim.metadata.uid):
            raise Waiting(f'resourceclaim "{name}" is being allocated')
        claims.append(claim)
    pinned = []
    for claim in claims:
        allocation = allocation_of(claim)
        if allocation is not None and allocation.node_selector is not None:
            pinned.append(allocation.node_selector)
    wanted = tuple(
        Wanted(
            uid=claim.metadata.uid,
            namespace=claim.metadata.namespace,
            name=claim.metadata.name,
            devices=msgspec.json.decode(claim.spec, type=ResourceClaimSpec).devices,
        )
        for claim in claims
        if not claim.allocated
    )
    return Use(claims=tuple(claims), demand=Demand(pinned=tuple(pinned), wanted=wanted))


def _check(pod: Pod, claim: ResourceClaim) -> None:
    name, uid = claim.metadata.name, pod.metadata.uid
    owner = controller_of(claim.metadata)
    by_name = any(entry.resource_claim_name == name for entry in pod.spec.resource_claims)
    if not by_name and (owner is None or owner.uid != uid):
        raise Unsatisfiable(
            f'resourceclaim "{name}" was not created for pod {pod.metadata.namespace}/{pod.metadata.name}'
        )
    if claim.metadata.deletion_timestamp is not None:
        raise Unsatisfiable(f'resourceclaim "{name}" is being deleted')
    consumers = claim.status.reserved_for
    if len(consumers) >= MAX_CONSUMERS and all(consumer.uid != uid for consumer in consumers):
        raise Unsatisfiable(f'resourceclaim "{name}" is in use by {MAX_CONSUMERS} pods, which is the limit')


def protected(claim: ResourceClaim) -> ResourceClaim:
    """The claim with the finalizer."""
    finalizers = [*claim.metadata.finalizers, FINALIZER]
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, finalizers=finalizers))


def reserved(claim: ResourceClaim, pod: Pod, allocation: Allocation | None) -> ResourceClaim:
    """The claim reserved for the pod, with ``allocation`` if it had none."""
    consumer = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
    others = [entry for entry in claim.status.reserved_for if entry.uid != consumer.uid]
    raw = claim.status.allocation
    if not claim.allocated and allocation is not None:
        raw = msgspec.Raw(msgspec.json.encode(allocation))
    status = msgspec.structs.replace(claim.status, allocation=raw, reserved_for=[*others, consumer])
    return msgspec.structs.replace(claim, status=status)


def unreserved(claim: ResourceClaim, uid: str) -> ResourceClaim:
    """The claim without the reservation of one pod; the allocation stays."""
    others = [entry for entry in claim.status.reserved_for if entry.uid != uid]
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, reserved_for=others))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """The claim without allocation, reservations and device status."""
    status = msgspec.structs.replace(claim.status, allocation=NOTHING, reserved_for=[], devices=[])
    return msgspec.structs.replace(claim, status=status)


def movable(claims: Sequence[ResourceClaim], uid: str) -> ResourceClaim | None:
    """An allocated claim that nobody else uses, which may be allocated anew for the pod ``uid``."""
    for claim in claims:
        if claim.allocated and all(entry.uid == uid for entry in claim.status.reserved_for):
            return claim
    return None

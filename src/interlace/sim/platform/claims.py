"""What the resourceclaim controller decides: claims to make for pods, and what to do with a claim nobody uses.

Invariant: the spec of a claim is the bytes of its template's; an allocation goes only when no pod that may
still run holds a reservation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from interlace.api.core import PodResourceClaim
from interlace.sim.platform.devicekinds import ResourceClaim, ResourceClaimTemplate
from interlace.sim.platform.kinds import Pod, controller_of
from interlace.sim.platform.scheduling.consumption import FINALIZER, deallocated

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation: the entry of the pod's ``spec.resourceClaims`` that a claim was made for."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What to write for a claim, in this order; None and False mean nothing to do."""

    status: ResourceClaim | None = None
    """PUT to ``status``: reservations without the dead ones, allocation gone if none is left."""
    release: bool = False
    """PUT without the finalizer."""
    delete: bool = False


def unmet(pod: Pod) -> list[PodResourceClaim]:
    """Entries of the pod that need a claim made from a template and have none in the pod's status."""
    if is_done(pod) or pod.terminating:
        return []
    known = {entry.name for entry in pod.status.resource_claim_statuses}
    return [
        entry
        for entry in pod.spec.resource_claims
        if entry.resource_claim_template_name is not None and entry.name not in known
    ]


def made_for(pod: Pod, entry: str, claims: Iterable[ResourceClaim]) -> str | None:
    """Name of the claim that was made for an entry of the pod earlier."""
    for claim in claims:
        owner = controller_of(claim.metadata)
        if (
            owner is not None
            and owner.uid == pod.metadata.uid
            and claim.metadata.annotations.get(POD_CLAIM) == entry
            and claim.metadata.deletion_timestamp is None
        ):
            return claim.metadata.name
    return None


def make_claim(pod: Pod, entry: str, template: ResourceClaimTemplate) -> dict[str, Any]:
    """Body of the claim for one entry of the pod."""
    wanted = template.spec.metadata
    metadata: dict[str, Any] = {
        "generateName": f"{pod.metadata.name}-{entry}-",
        "namespace": pod.metadata.namespace,
        "annotations": {**wanted.annotations, POD_CLAIM: entry},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.metadata.name,
                "uid": pod.metadata.uid,
                "controller": True,
            }
        ],
    }
    if wanted.labels:
        metadata["labels"] = wanted.labels
    return {"metadata": metadata, "spec": template.spec.spec}


def is_done(pod: Pod) -> bool:
    """Whether the pod runs no more and never will: ended, or deleted before it got a node."""
    return pod.finished or (pod.terminating and not pod.spec.node_name)


def upkeep(claim: ResourceClaim, find: Callable[[str], Pod | None]) -> Upkeep:
    """What is to be done for a claim; ``find`` gives a pod of its namespace by name."""
    alive = [
        consumer
        for consumer in claim.status.reserved_for
        if consumer.resource != "pods" or _holds(find(consumer.name), consumer.uid)
    ]
    status: ResourceClaim | None = None
    release = False
    dying = claim.metadata.deletion_timestamp is not None
    if len(alive) < len(claim.status.reserved_for):
        if alive:
            kept = msgspec.structs.replace(claim.status, reserved_for=alive)
            status = msgspec.structs.replace(claim, status=kept)
        else:
            status = deallocated(claim)
            release = FINALIZER in claim.metadata.finalizers
    elif not alive and FINALIZER in claim.metadata.finalizers and (dying or not claim.allocated):
        status = deallocated(claim) if dying and claim.allocated else None
        release = dying or _belongs_to_the_dead(claim, find)
    return Upkeep(status=status, release=release, delete=not alive and not dying and _belongs_to_the_dead(claim, find))


def _holds(pod: Pod | None, uid: str) -> bool:
    return pod is not None and pod.metadata.uid == uid and not is_done(pod)


def _belongs_to_the_dead(claim: ResourceClaim, find: Callable[[str], Pod | None]) -> bool:
    """Made for a pod that is still there but done; claims of pods that are gone fall to the garbage collector."""
    owner = controller_of(claim.metadata)
    if owner is None or owner.kind != "Pod":
        return False
    pod = find(owner.name)
    return pod is not None and (pod.metadata.uid != owner.uid or is_done(pod))

"""What a claim asks of this node: a pure reading of the claim object.

Invariant: a ``Demand`` is only made of a claim that kubelet means (same uid), that is allocated on
this node, whose parameters were decoded strictly, and that the controller can see (it has the label).
"""

from __future__ import annotations

import re

import msgspec

from interlace.api.computedomain import DOMAIN_LABEL, DRIVER
from interlace.api.core import ObjectReference
from interlace.api.resource import ResourceClaim
from interlace.node.errors import Reason, Refusal
from interlace.node.opaque import choose, configs

_CHANNEL = re.compile(r"channel-\d+\Z")
# A uid becomes part of a file name and of a CDI device name.
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")


class ClaimRef(msgspec.Struct, frozen=True, kw_only=True):
    """A claim as kubelet names it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"ResourceClaim {self.namespace}/{self.name}"


class DeviceRef(msgspec.Struct, frozen=True, kw_only=True):
    """One allocated device of ours."""

    request: str
    pool: str
    device: str


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be prepared."""

    claim: ClaimRef
    domain: str
    """uid of the ComputeDomain."""
    all_channels: bool
    devices: tuple[DeviceRef, ...]
    pods: tuple[ObjectReference, ...]
    """The pods that the claim is reserved for: events go there."""


def check_uid(claim: ClaimRef) -> None:
    """Refuse a uid that could not be part of a file name."""
    if not _UID.match(claim.uid):
        raise Refusal(Reason.CLAIM_NOT_FOUND, f"{claim}: {claim.uid!r} is no uid of a claim.", permanent=True)


def demand(ref: ClaimRef, claim: ResourceClaim, *, node: str) -> Demand:
    """Read the claim. Raises a permanent ``Refusal`` that names claim, cause and remedy."""
    try:
        return _demand(ref, claim, node=node)
    except Refusal as refusal:
        raise Refusal(refusal.reason, f"{ref}: {refusal.message}", permanent=refusal.permanent) from None


def _demand(ref: ClaimRef, claim: ResourceClaim, *, node: str) -> Demand:
    if claim.metadata.uid != ref.uid:
        raise Refusal(
            Reason.CLAIM_REPLACED,
            f"kubelet means the claim with uid {ref.uid}, but the one of this name has {claim.metadata.uid}; delete "
            "the pod so that it gets the new claim.",
            permanent=True,
        )
    if claim.status.allocation is None:
        raise Refusal(
            Reason.NOT_ALLOCATED, "it is not allocated (any more); the scheduler has to place the pod.", permanent=True
        )
    allocation = claim.status.allocation.devices
    ours = [result for result in allocation.results if result.driver == DRIVER]
    if not ours:
        raise Refusal(Reason.NOT_ALLOCATED, f"no device of driver {DRIVER} is allocated to it.", permanent=True)
    candidates = configs(allocation.config)
    chosen = []
    for result in ours:
        if result.pool != node:
            raise Refusal(
                Reason.NOT_ALLOCATED,
                f"its device {result.device} is of node {result.pool}, and this is {node}.",
                permanent=True,
            )
        if not _CHANNEL.match(result.device):
            raise Refusal(
                Reason.UNKNOWN_DEVICE, f"device {result.device} is not one that this driver offers.", permanent=True
            )
        config = choose(candidates, result.request)
        if config is None:
            raise Refusal(
                Reason.BAD_CONFIG,
                f"request {result.request} has no ComputeDomainChannelConfig; use the ResourceClaimTemplate that the "
                "ComputeDomain names.",
                permanent=True,
            )
        chosen.append(config)
    domains = sorted({config.domain_id for config in chosen})
    if len(domains) > 1:
        raise Refusal(
            Reason.BAD_CONFIG,
            f"its requests name {len(domains)} ComputeDomains ({', '.join(domains)}); a claim can have one.",
            permanent=True,
        )
    label = claim.metadata.labels.get(DOMAIN_LABEL)
    if label != domains[0]:
        raise Refusal(
            Reason.NO_DOMAIN_LABEL,
            f"its label {DOMAIN_LABEL} is {'missing' if label is None else label}, so the controller does not count "
            f"this node as a member; set it to {domains[0]}, or use the ResourceClaimTemplate that the ComputeDomain "
            "names.",
            permanent=True,
        )
    return Demand(
        claim=ref,
        domain=domains[0],
        all_channels=any(config.allocation_mode == "All" for config in chosen),
        devices=tuple(DeviceRef(request=r.request, pool=r.pool, device=r.device) for r in ours),
        pods=consumers(ref, claim),
    )


def consumers(ref: ClaimRef, claim: ResourceClaim) -> tuple[ObjectReference, ...]:
    """The pods that the claim is reserved for."""
    return tuple(
        ObjectReference(api_version="v1", kind="Pod", namespace=ref.namespace, name=user.name, uid=user.uid)
        for user in claim.status.reserved_for
        if user.resource == "pods" and not user.api_group
    )


def our_devices(claim: ResourceClaim, *, node: str) -> tuple[DeviceRef, ...]:
    """The devices of this node's pool that are allocated to the claim, whatever else is wrong with it."""
    allocation = claim.status.allocation
    return tuple(
        DeviceRef(request=result.request, pool=result.pool, device=result.device)
        for result in (allocation.devices.results if allocation is not None else ())
        if result.driver == DRIVER and result.pool == node
    )

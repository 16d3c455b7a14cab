"""How a claim stands, and the one apply body that says so in ``ResourceClaim.status.devices``.

Invariant: the body holds ``status.devices`` and nothing else of the claim, so the opaque parameters,
which the API server compares byte by byte, are never sent back. The uid in it makes the write fail
for a claim of the same name that came later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlace.api.computedomain import DRIVER
from interlace.api.resource import ResourceClaim
from interlace.node.demand import ClaimRef, DeviceRef

READY = "Ready"
PEERS = "PeersConnected"
_MESSAGE_LIMIT = 32768


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One condition, without its time."""

    good: bool
    reason: str
    message: str


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said of a claim."""

    claim: ClaimRef
    devices: tuple[DeviceRef, ...]
    domain: str
    clique: str
    index: int
    ready: Verdict
    peers: Verdict | None = None

    @property
    def conditions(self) -> Mapping[str, Verdict]:
        """By type."""
        return {READY: self.ready} if self.peers is None else {READY: self.ready, PEERS: self.peers}


def body(standing: Standing, *, since: Mapping[str, str]) -> dict[str, Any]:
    """The apply body; ``since`` gives the last transition of each condition type, RFC 3339."""
    conditions = [
        {
            "type": kind,
            "status": "True" if verdict.good else "False",
            "reason": verdict.reason,
            "message": verdict.message[:_MESSAGE_LIMIT],
            "lastTransitionTime": since[kind],
        }
        for kind, verdict in standing.conditions.items()
    ]
    data = {"domain": standing.domain, "clique": standing.clique, "index": standing.index}
    return {
        "apiVersion": ResourceClaim.resource.api_version,
        "kind": ResourceClaim.resource.kind,
        "metadata": {
            "name": standing.claim.name,
            "namespace": standing.claim.namespace,
            "uid": standing.claim.uid,
        },
        "status": {
            "devices": [
                {
                    "driver": DRIVER,
                    "pool": device.pool,
                    "device": device.device,
                    "conditions": conditions,
                    "data": data,
                }
                for device in standing.devices
            ]
        },
    }


def reported(claim: ResourceClaim) -> dict[str, tuple[Verdict, str]]:
    """What we said of this claim before: verdict and last transition by condition type."""
    ours = (entry for entry in claim.status.devices if entry.driver == DRIVER)
    return {
        condition.type: (
            Verdict(good=condition.status == "True", reason=condition.reason, message=condition.message),
            condition.last_transition_time or "",
        )
        for entry in ours
        for condition in entry.conditions or ()
        if condition.type in (READY, PEERS)
    }

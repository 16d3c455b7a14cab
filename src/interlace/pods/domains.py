"""ComputeDomains as they are created: what the schema cannot say and would only show later.

A spec cannot be changed after creation, so a fault is cheapest before it. Invariant: what passes the schema and is
refused here could never have worked; existing manifests run unmodified.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from interlace.api.computedomain import ComputeDomain, ComputeDomainSpec
from interlace.kube.client import Client
from interlace.kube.errors import NotFound
from interlace.pods.review import ALLOWED, Request, Verdict, refuse

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*\Z")


def check(request: Request) -> Verdict:
    """Refuse a ComputeDomain that could never work (validating)."""
    try:
        domain = msgspec.json.decode(request.object, type=ComputeDomain)
    except msgspec.ValidationError as error:
        return refuse([f"the ComputeDomain cannot be read: {error}"])
    reasons = faults(domain.spec) if domain.spec is not None else ["spec is missing; write spec.channel"]
    return refuse(reasons) if reasons else ALLOWED


async def find(client: Client, *, uid: str, namespace: str) -> ComputeDomain | None:
    """The ComputeDomain of a uid. Asked for claims by hand alone, so one list each is cheaper than a cache."""
    try:
        found = await client.list(ComputeDomain, namespace=namespace)
    except NotFound:  # a cluster without the kind
        return None
    return next((domain for domain in found.items if domain.metadata.uid == uid), None)


def faults(spec: ComputeDomainSpec) -> list[str]:
    """What is wrong with a spec that the schema accepts, each a sentence with path, value, cause and remedy."""
    found = []
    name = spec.channel.resource_claim_template.name
    if len(name) > 253 or not _NAME.match(name):
        found.append(
            f"spec.channel.resourceClaimTemplate.name {name!r} cannot be the name of an object; "
            "use lower-case letters, digits, '-' and '.'"
        )
    if spec.isolation == "Channel" and spec.channel.allocation_mode == "All":
        found.append(
            "spec.channel.allocationMode All gives every channel of the node, and with spec.isolation Channel those "
            "belong to other domains; use allocationMode Single or isolation Domain"
        )
    return found

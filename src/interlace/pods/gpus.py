"""Which containers of a Pod use GPUs, and whether they take what the fabric can serve.

Invariant: GPUs are counted as the scheduler counts them: containers and native sidecars add up, other init
containers run before them and do not. GPUs that come by a claim are not counted: their number is the scheduler's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from interlace.api.webhook import FABRIC_LABEL, OFF
from interlace.fabric.family import Family
from interlace.pods.draft import Container, Draft, Json, mapping, mappings
from interlace.pods.errors import InjectError

RESOURCE: Final = "nvidia.com/gpu"
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
_GPU_CLASSES: Final = ("gpu.nvidia.com",)
_PARTS: Final = ("mig.nvidia.com",)
_NIC_CLASSES: Final = ("mrdma.google.com", "netdev.google.com", "dranet")
_COUNT: Final = re.compile(r"[0-9]+\Z")


class Gpus(msgspec.Struct, frozen=True, kw_only=True):
    """GPU containers, the GPUs that are counted, and what comes by claims."""

    containers: tuple[Container, ...] = ()
    count: int = 0
    by_claim: bool = False
    nics_by_claim: bool = False


def gpus(draft: Draft, *, claims: Mapping[str, tuple[str, ...]], also: Collection[str] = ()) -> Gpus:
    """The GPU containers of a Pod; ``also`` names containers that get their GPUs later. Raises InjectError."""
    classes = claimed(draft, claims)
    found: list[Container] = []
    count, by_claim = 0, False
    for container in draft.containers():
        own = _count(container)
        mine = {each for name in _claims_of(container) for each in classes.get(name, ())}
        if mine & set(_PARTS):
            raise InjectError(
                f"{container.path}.resources.claims",
                ", ".join(sorted(mine)),
                "GPUDirect needs whole GPUs, and this class gives parts of them (MIG)",
                "claim whole GPUs",
            )
        claimed_gpus = bool(mine & set(_GPU_CLASSES))
        if not own and not claimed_gpus and container.name not in also:
            continue
        found.append(container)
        by_claim = by_claim or claimed_gpus
        if own and (not container.init or container.native_sidecar):
            count += own
    return Gpus(
        containers=tuple(found),
        count=count,
        by_claim=by_claim,
        nics_by_claim=any(_is_nic(each) for group in classes.values() for each in group),
    )


def check(found: Gpus, *, family: Family) -> None:
    """Refuse a Pod that takes a part of a node where the transport needs the whole. Raises InjectError."""
    wanted = family.node.gpus
    if found.by_claim or not found.count:
        return
    if found.count == wanted:
        return
    names = ", ".join(container.name for container in found.containers)
    path = "spec.containers" if len(found.containers) > 1 else f"{found.containers[0].path}.resources"
    if found.count > wanted:
        raise InjectError(
            path,
            f"{RESOURCE} {found.count} ({names})",
            f"a node of family {family.id} has {wanted} GPUs",
            f"ask for {wanted} and run more Pods",
        )
    if family.node.whole_node:
        remedy = (
            f"set {RESOURCE} so that the containers of the Pod add up to {wanted}, or the label {FABRIC_LABEL}: {OFF} "
            "where it needs none of this"
        )
    elif family.networks and not found.nics_by_claim:
        remedy = f"ask for {wanted}, or take GPUs and NICs that belong together by claims"
    else:
        return
    raise InjectError(
        path,
        f"{RESOURCE} {found.count} ({names})",
        f"a Pod of family {family.id} takes all {wanted} GPUs and all NICs of its node",
        remedy,
    )


def claimed(draft: Draft, claims: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The DeviceClasses behind each claim of the Pod, by its name in the Pod; none where it is not known."""
    return {
        str(entry.get("name")): claims.get(
            str(entry.get("resourceClaimTemplateName") or entry.get("resourceClaimName") or ""), ()
        )
        for entry in mappings(draft.spec, "resourceClaims", "spec.resourceClaims")
    }


def device_classes(spec: Any) -> tuple[str, ...]:
    """The DeviceClasses that the spec of a ResourceClaim asks for, in any version of ``resource.k8s.io``."""
    found: dict[str, None] = {}
    for request in _list(_dict(_dict(spec).get("devices")).get("requests")):
        for each in (request, _dict(request).get("exactly"), *_list(_dict(request).get("firstAvailable"))):
            name = _dict(each).get("deviceClassName")
            if isinstance(name, str) and name:
                found[name] = None
    return tuple(found)


def has_unknown_claims(draft: Draft, claims: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the Pod has claims of which nothing is known."""
    return any(not classes for classes in claimed(draft, claims).values())


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_nic(device_class: str) -> bool:
    return device_class.startswith(_NIC_CLASSES)


def _claims_of(container: Container) -> list[str]:
    resources = mapping(container.fields, "resources", f"{container.path}.resources")
    return [str(each.get("name")) for each in mappings(resources, "claims", f"{container.path}.resources.claims")]


def _count(container: Container) -> int:
    path = f"{container.path}.resources"
    resources = mapping(container.fields, "resources", path)
    counts: dict[str, int] = {}
    for part in ("requests", "limits"):
        amounts: Json = mapping(resources, part, f"{path}.{part}")
        for name, value in amounts.items():
            if name.startswith("nvidia.com/mig-"):
                raise InjectError(
                    f"{path}.{part}[{name}]",
                    value,
                    "GPUDirect does not work on parts of GPUs (MIG)",
                    f"use nodes without MIG and ask for {RESOURCE}",
                )
            if name == f"{RESOURCE}.shared":
                raise InjectError(
                    f"{path}.{part}[{name}]",
                    value,
                    "GPUDirect does not work on GPUs that are shared",
                    f"use nodes without sharing and ask for {RESOURCE}",
                )
        if RESOURCE in amounts:
            counts[part] = _number(amounts[RESOURCE], f"{path}.{part}[{RESOURCE}]")
    limit = counts.get("limits")
    if limit != counts.get("requests", limit):
        raise InjectError(
            f"{path}.limits[{RESOURCE}]",
            limit,
            f"the container requests {counts['requests']}, and API servers take GPUs only if both are the same",
            "write the number under limits alone",
        )
    return limit or 0


def _number(value: Any, path: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and _COUNT.match(value):
        return int(value)
    raise InjectError(path, value, "the number of GPUs is a whole number", "write its digits alone, as 8")

"""Claims that the known driver prepared on this node, read from its checkpoint when an agent of ours takes over.

``{"version"?, "checksum", "v1": {"preparedClaims"}, "v2"?: {"checksum", "preparedClaims", "nodeBootID"}}`` with claims
by uid; each has ``status`` (the ResourceClaimStatus), ``preparedDevices`` and, in v2, ``checkpointState``, ``name`` and
``namespace`` (the last two often empty). Releases before 25.8 have ``preparedClaims`` at the top.
Read leniently, unlike our own: that driver's checksums are over re-serialised structs, so that files of other
releases of it fail them; a claim that is lost here would strand its Pod. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from interlace.api.computedomain import DRIVER
from interlace.api.resource import DeviceConfiguration, ResourceClaimStatus
from interlace.node.cdi import PreparedClaim
from interlace.node.demand import ClaimRef, DeviceRef

COMPLETED: Final = "PrepareCompleted"


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds."""

    boot_id: str
    """Empty where the file does not say."""
    claims: list[PreparedClaim]
    """The completed claims with channels; those that were only begun are prepared again by kubelet."""
    intact: bool
    """Whether the checksums are those that the driver computes."""
    unreadable: int
    """Claims left out."""


class _Claim(msgspec.Struct, rename="camel"):
    checkpoint_state: str = COMPLETED
    status: msgspec.Raw = msgspec.Raw(b"{}")
    name: str = ""
    namespace: str = ""


class _Domain(msgspec.Struct):
    domain_id: str = msgspec.field(name="domainID", default="")


_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def is_inherited(content: bytes) -> bool:
    """Whether the bytes are a checkpoint of the known driver."""
    fields = _object(content)
    return fields is not None and "sha256" not in fields and bool(fields.keys() & {"v1", "v2", "preparedClaims"})


def read(content: bytes, *, has_spec: Callable[[str], bool]) -> Inherited:
    """The claims in the checkpoint; ``has_spec`` tells whether a CDI spec of a claim lies on the node.

    Never raises for a content that ``is_inherited``: what cannot be read is counted.
    """
    fields = _object(content) or {}
    newest = _object(fields.get("v2")) or _object(fields.get("v1")) or fields
    stored = _object(newest.get("preparedClaims")) or {}
    claims: list[PreparedClaim] = []
    unreadable = 0
    for uid, text in stored.items():
        try:
            found = msgspec.json.decode(text, type=_Claim)
            if found.checkpoint_state != COMPLETED:
                continue
            status = msgspec.json.decode(found.status, type=ResourceClaimStatus)
        except msgspec.MsgspecError:
            unreadable += 1
            continue
        if (claim := _claim(uid, found, status, injected=has_spec(uid))) is not None:
            claims.append(claim)
    boot = newest.get("nodeBootID")
    return Inherited(
        boot_id=_text(boot) if boot is not None else "",
        claims=claims,
        intact=_intact(fields),
        unreadable=unreadable,
    )


def _claim(uid: str, found: _Claim, status: ResourceClaimStatus, *, injected: bool) -> PreparedClaim | None:
    """None for a claim without channels: of an IMEX daemon, mostly."""
    allocation = status.allocation.devices if status.allocation is not None else None
    if allocation is None:
        return None
    devices = tuple(
        DeviceRef(request=result.request, pool=result.pool, device=result.device)
        for result in allocation.results
        if result.driver == DRIVER and result.device.startswith("channel-")
    )
    if not devices:
        return None
    return PreparedClaim(
        claim=ClaimRef(namespace=found.namespace, name=found.name, uid=uid),
        domain=_domain(allocation.config),
        clique="",
        index=-1,
        devices=devices,
        injected=injected,
        completed=True,
        inherited=True,
    )


def _domain(configs: list[DeviceConfiguration]) -> str:
    """The domain's uid; later configurations win, those of the claim over those of the class."""
    domain = ""
    for config in sorted(configs, key=lambda config: config.source != "FromClass"):
        if config.opaque is not None and config.opaque.driver == DRIVER:
            try:
                domain = msgspec.json.decode(config.opaque.parameters, type=_Domain).domain_id or domain
            except msgspec.MsgspecError:
                continue
    return domain


def checksum(text: bytes) -> int:
    """As the known driver computes it: FNV-1a of 32 bits over Go's printed form of the bytes.

    From ``checkpointmanager/checksum`` and ``util/dump`` of Kubernetes.
    """
    value = 0x811C9DC5
    for byte in b"([]uint8)[" + " ".join(map(str, text)).encode() + b"]":
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def _intact(fields: Mapping[str, msgspec.Raw]) -> bool:
    v1, v2 = fields.get("v1"), _object(fields.get("v2"))
    if "checksum" not in fields or v1 is None:
        return False
    if checksum(b'{"checksum":0,"v1":' + bytes(v1) + b"}") != _number(fields["checksum"]):
        return False
    if v2 is None:
        return True
    cleared: dict[str, Any] = {key: msgspec.Raw(b"0") if key == "checksum" else value for key, value in v2.items()}
    return checksum(msgspec.json.encode(cleared)) == _number(v2.get("checksum"))


def _object(text: bytes | msgspec.Raw | None) -> dict[str, msgspec.Raw] | None:
    try:
        return _fields.decode(text) if text is not None else None
    except msgspec.MsgspecError:
        return None


def _text(raw: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.MsgspecError:
        return ""


def _number(raw: msgspec.Raw | None) -> int | None:
    try:
        return msgspec.json.decode(raw, type=int) if raw is not None else None
    except msgspec.MsgspecError:
        return None

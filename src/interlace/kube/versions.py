"""``resource.k8s.io`` in the version that a server speaks, for code that knows ``v1`` alone.

Kubernetes 1.34 and later serve v1; 1.33 serves v1beta2 and v1beta1, 1.32 v1beta1 alone. v1beta2 has the shapes
of v1. v1beta1 has the fields of ``exactly`` in the request itself, and the fields of a device below ``basic``.
Invariant: what is not on the way to these fields is never decoded, so that opaque parameters and device data stay
byte for byte; there and back is the same object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from interlace.api.meta import Resource
from interlace.api.resource import GROUP
from interlace.kube.errors import NotFound, UnknownKind
from interlace.kube.log import get_logger

VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
"""In the order in which they are chosen."""
NEWEST: Final = VERSIONS[0]

_FLAT: Final = "v1beta1"
_WAY: Final = {
    "ResourceClaim": ("spec", "devices", "requests"),
    "ResourceClaimTemplate": ("spec", "spec", "devices", "requests"),
    "ResourceSlice": ("spec", "devices"),
}
"""Kind to where its list of requests or devices is."""
_IN_REQUEST: Final = frozenset({"name", "firstAvailable"})
_NOTHING: Final = frozenset({b'""', b"null", b"0", b"[]", b"{}"})
"""How v1beta1 writes fields of a request that are not set."""

_Fields = dict[str, msgspec.Raw]
_fields = msgspec.json.Decoder(_Fields)
_items = msgspec.json.Decoder(list[msgspec.Raw])
_log = get_logger(__name__)


class _GroupVersion(msgspec.Struct, frozen=True):
    version: str


class _Group(msgspec.Struct, frozen=True):
    versions: list[_GroupVersion] = []


class Versions:
    """The version that one server speaks: v1 until the server says that it does not serve it."""

    def __init__(self, read: Callable[[str], Awaitable[bytes]]) -> None:
        """``read`` gets a path of the server; it raises the errors of ``interlace.kube.errors``."""
        self._read = read
        self._lock = asyncio.Lock()
        self.spoken = NEWEST
        """The version of ``resource.k8s.io`` in use."""

    def of(self, wanted: Resource) -> Resource:
        """Where a kind that is wanted in v1 lives on this server; an older version is what was asked for by name."""
        if wanted.group != GROUP or wanted.version != NEWEST or self.spoken == NEWEST:
            return wanted
        return msgspec.structs.replace(wanted, version=self.spoken)

    async def changed(self, wanted: Resource, asked: Resource, error: NotFound) -> bool:
        """Whether ``error`` came because ``wanted`` is not served as ``asked``, but in another version.

        Asks the server then; the next ``of`` is the version that it serves. Raises ``UnknownKind`` where the
        server has none that we speak.
        """
        if wanted.group != GROUP or wanted.version != NEWEST or _about_object(error):
            return False
        async with self._lock:
            if asked.version == self.spoken:
                await self._choose()
        return asked.version != self.spoken

    async def choose(self) -> str:
        """Ask the server, and speak the newest version that it serves from now on. Raises ``UnknownKind``."""
        async with self._lock:
            await self._choose()
        return self.spoken

    async def _choose(self) -> None:
        chosen = await self._served()
        if chosen != self.spoken:
            _log.info("version chosen", group=GROUP, version=chosen, instead=self.spoken)
        self.spoken = chosen

    async def _served(self) -> str:
        try:
            group = msgspec.json.decode(await self._read(f"/apis/{GROUP}"), type=_Group)
            served = {found.version for found in group.versions}
        except (NotFound, msgspec.MsgspecError):
            served = set()
        chosen = next((version for version in VERSIONS if version in served), None)
        if chosen is None:
            others = f" (it serves {', '.join(sorted(served))})" if served else ""
            raise UnknownKind(
                f"the API server serves {GROUP} in none of {', '.join(VERSIONS)}{others}; use Kubernetes 1.34 or "
                f"later, or start kube-apiserver with --runtime-config={GROUP}/v1beta1=true and the feature gate "
                "DynamicResourceAllocation"
            )
        return chosen


def _about_object(error: NotFound) -> bool:
    """Whether the path is served and only the object is missing: then the answer names it."""
    details = error.details.details if error.details is not None else None
    return details is not None and bool(details.name)


def to_newest(text: bytes, *, asked: Resource) -> bytes:
    """An object, a list or a line of a watch, as the server sent it for the kind ``asked``, in v1.

    What is not of this group (a ``Status``, metadata alone) comes back as it is. Raises ``msgspec.MsgspecError``
    where the text is no JSON object.
    """
    if asked.group != GROUP or asked.version == NEWEST:
        return text
    fields = _fields.decode(text)
    if "object" in fields and "type" in fields:
        fields["object"] = msgspec.Raw(to_newest(bytes(fields["object"]), asked=asked))
    elif not _of_group(fields):
        return text
    else:
        fields["apiVersion"] = _raw(f"{GROUP}/{NEWEST}")
        if "items" in fields:
            fields["items"] = _each(fields["items"], lambda item: _reshaped(item, asked, _FROM_FLAT))
        else:
            return bytes(_reshaped(_raw(fields), asked, _FROM_FLAT))
    return msgspec.json.encode(fields)


def from_newest(text: bytes, *, asked: Resource) -> bytes:
    """A body of ours, written for v1, as the version in ``asked`` has it: an object, an apply or a merge patch."""
    if asked.group != GROUP or asked.version == NEWEST:
        return text
    fields = _fields.decode(text)
    if _of_group(fields):
        fields["apiVersion"] = _raw(asked.api_version)
    return bytes(_reshaped(_raw(fields), asked, _TO_FLAT))


def manifest_in(version: str, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """A manifest that was written for v1 in an older version, for ``kubectl apply``; other groups as they are."""
    if manifest.get("apiVersion") != f"{GROUP}/{NEWEST}" or version == NEWEST:
        return manifest
    asked = Resource(GROUP, version, "", str(manifest.get("kind", "")), True)
    return msgspec.json.decode(from_newest(msgspec.json.encode(manifest), asked=asked), type=dict[str, Any])


def _request_to_flat(request: _Fields) -> _Fields:
    exactly = _object(request.get("exactly")) or {}
    return {**{key: value for key, value in request.items() if key != "exactly"}, **exactly}


def _request_from_flat(request: _Fields) -> _Fields:
    kept = {key: value for key, value in request.items() if key in _IN_REQUEST}
    exactly = {
        key: value
        for key, value in request.items()
        if key not in {*_IN_REQUEST, "exactly"} and bytes(value).strip() not in _NOTHING
    }
    return {**kept, "exactly": _raw(exactly)} if exactly else kept


def _device_to_flat(device: _Fields) -> _Fields:
    basic = dict(device)
    name = basic.pop("name", None)
    return {**({"name": name} if name is not None else {}), "basic": _raw(basic)}


def _device_from_flat(device: _Fields) -> _Fields:
    return {**{key: value for key, value in device.items() if key == "name"}, **(_object(device.get("basic")) or {})}


_Change = Callable[[_Fields], _Fields]
_TO_FLAT: Final[Mapping[str, _Change]] = {
    "ResourceClaim": _request_to_flat,
    "ResourceClaimTemplate": _request_to_flat,
    "ResourceSlice": _device_to_flat,
}
_FROM_FLAT: Final[Mapping[str, _Change]] = {
    "ResourceClaim": _request_from_flat,
    "ResourceClaimTemplate": _request_from_flat,
    "ResourceSlice": _device_from_flat,
}


def _reshaped(text: msgspec.Raw, asked: Resource, changes: Mapping[str, _Change]) -> msgspec.Raw:
    """An object of the kind with each of its requests or devices changed."""
    if asked.version != _FLAT or asked.kind not in changes:
        return text
    change = changes[asked.kind]

    def one(item: msgspec.Raw) -> msgspec.Raw:
        fields = _object(item)
        return item if fields is None else _raw(change(fields))

    return _at(text, _WAY[asked.kind], lambda found: _each(found, one))


def _at(text: msgspec.Raw, way: Sequence[str], change: Callable[[msgspec.Raw], msgspec.Raw]) -> msgspec.Raw:
    """``text`` with the value at ``way`` changed; as it is where the way ends early."""
    if not way:
        return change(text)
    fields = _object(text)
    if fields is None or way[0] not in fields:
        return text
    fields[way[0]] = _at(fields[way[0]], way[1:], change)
    return _raw(fields)


def _each(text: msgspec.Raw, change: Callable[[msgspec.Raw], msgspec.Raw]) -> msgspec.Raw:
    """A list with every item changed; anything else as it is."""
    try:
        items = _items.decode(text)
    except msgspec.ValidationError:
        return text
    return _raw([change(item) for item in items])


def _object(text: msgspec.Raw | None) -> _Fields | None:
    try:
        return _fields.decode(text) if text is not None else None
    except msgspec.ValidationError:
        return None


def _of_group(fields: _Fields) -> bool:
    return bytes(fields.get("apiVersion", b"")).strip().startswith(b'"' + GROUP.encode() + b"/")


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))

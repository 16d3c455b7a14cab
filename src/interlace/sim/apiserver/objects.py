"""JSON values as the server keeps them: plain dicts and lists, treated as immutable once stored.

The one exception is ``opaque.parameters`` of device configurations, which is held as :class:`raw.RawJson`: a leaf
that no code here looks into. Answers carry the bytes as stored, spaces included: components of a real platform see
them through the binary encoding, those of the embedded platform through this.

Invariant: ``encode(decode(body))`` leaves every ``opaque.parameters`` in ``body`` as it was, byte for byte.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from interlace.sim.apiserver.raw import RawJson

Json = dict[str, Any]

_encoder = msgspec.json.Encoder()
_plain = msgspec.json.Decoder()
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array = msgspec.json.Decoder(list[msgspec.Raw])
_RAW_GROUP = "resource.k8s.io/"
_MARK = b'"parameters"'


def encode(value: Any) -> bytes:
    """Compact JSON, keys in the order of the dicts."""
    return _encoder.encode(_wire(value) if _may_be_raw(value) else value)


def _may_be_raw(value: Any) -> bool:
    """Whether raw values may be in it: false for one object of a kind that has none."""
    if type(value) is not dict or not value.get("metadata"):
        return True
    kind, version = value.get("kind"), value.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        return True
    return version.startswith(_RAW_GROUP) or kind.endswith("List") or kind == "Table"


def _wire(value: Any) -> Any:
    if type(value) is dict:
        changed = {key: new for key, item in value.items() if (new := _wire(item)) is not item}
        return {**value, **changed} if changed else value
    if type(value) is list:
        items = [_wire(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if type(value) is RawJson:
        return msgspec.Raw(value.raw)
    return value


def decode(body: bytes) -> Any:
    """The JSON value in ``body`` with opaque parameters kept raw.

    Raises ``msgspec.DecodeError`` for malformed JSON.
    """
    value = _plain.decode(body)
    return _walk(body.strip(), value, under_opaque=False) if _MARK in body else value


def _walk(text: bytes, value: Any, *, under_opaque: bool) -> Any:
    if _MARK not in text:
        return value
    if type(value) is dict:
        parts = _object.decode(text)
        return {
            key: RawJson(bytes(part))
            if under_opaque and key == "parameters" and type(value[key]) is dict
            else _walk(bytes(part), value[key], under_opaque=key == "opaque")
            for key, part in parts.items()
        }
    if type(value) is list:
        return [
            _walk(bytes(part), item, under_opaque=False) for part, item in zip(_array.decode(text), value, strict=True)
        ]
    return value


def rewritten(raw: RawJson, style: Literal["compact", "sorted"]) -> RawJson:
    """The same value as other bytes: without white space, or with sorted keys as well.

    Merge and JSON patches pass objects through JSON text (``compact``), server-side apply and strategic merge pass
    them through maps (``sorted``).
    """
    value = json.loads(raw.raw)
    text = json.dumps(value, separators=(",", ":"), sort_keys=style == "sorted", ensure_ascii=False)
    return RawJson(text.encode())


def restyle(value: Any, style: Literal["compact", "sorted"]) -> Any:
    """``value`` with every raw leaf :func:`rewritten`; what holds no raw leaf is shared, not copied."""
    if type(value) is dict:
        changed = {key: new for key, item in value.items() if (new := restyle(item, style)) is not item}
        return {**value, **changed} if changed else value
    if type(value) is list:
        items = [restyle(item, style) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if type(value) is RawJson:
        new = rewritten(value, style)
        return value if new.raw == value.raw else new
    return value


def clone(value: Any) -> Any:
    """A deep copy; leaves are shared."""
    if type(value) is dict:
        return {key: clone(item) for key, item in value.items()}
    if type(value) is list:
        return [clone(item) for item in value]
    return value


def get(obj: Any, *path: str) -> Any:
    """The value at ``path`` or None."""
    for step in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj


def name_of(obj: Json) -> str:
    """``metadata.name`` or an empty string."""
    return get(obj, "metadata", "name") or ""


def namespace_of(obj: Json) -> str:
    """``metadata.namespace`` or an empty string."""
    return get(obj, "metadata", "namespace") or ""

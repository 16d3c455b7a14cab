"""Bodies in the binary encoding of Kubernetes, which kubectl uses for kinds that it was built with.

Only reading: every such client also takes JSON for an answer. Field numbers are in ``builtin.json``.

Invariant: :func:`decode` yields what the JSON form of the same object would have yielded, or ValueError.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from interlace.sim.apiserver.raw import RawJson
from interlace.sim.apiserver.shapes import ANY, Numbers, Shape, builtin, delete_options

MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KEPT = ("any", "intorstring", "quantity")
"""Forms whose empty value says something."""
_SIGN = 1 << 63
_DAMAGE = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError, msgspec.DecodeError)
"""What reading runs into when a field is not what its number says."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode(body: bytes) -> dict[str, Any]:
    """The object in an envelope that begins with :data:`MAGIC`. Raises ValueError."""
    try:
        return _open(body)
    except _DAMAGE as error:
        raise ValueError(f"the binary body cannot be read: {type(error).__name__}: {error}") from error


def _open(body: bytes) -> dict[str, Any]:
    envelope = dict(_fields(body[len(MAGIC) :]))
    meta = {number: value.decode() for number, value in _fields(envelope[1])}
    api_version, kind = meta.get(1, ""), meta.get(2, "")
    shape = delete_options() if kind == "DeleteOptions" else builtin(api_version, kind)
    return {"kind": kind, "apiVersion": api_version, **_struct(envelope.get(2, b""), shape, shape.numbers)}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an int for numbers, bytes for the rest."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value - (1 << 64) if value & _SIGN else value
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise IndexError("a field is longer than the message")
                yield tag >> 3, data[at : at + size]
                at += size
            case 1 | 5 as wire:
                size = 8 if wire == _FIXED64 else 4
                yield tag >> 3, data[at : at + size]
                at += size
            case wire:
                raise IndexError(f"unknown wire type {wire}")


def _struct(data: bytes, shape: Shape, numbers: Numbers) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for number, value in _fields(data):
        name = numbers.get(str(number))
        if name is None:
            continue
        if isinstance(name, dict):  # a struct that JSON writes into its parent
            out.update(_struct(value, shape, name))
            continue
        child = shape.child(name)
        if child.form == "list":
            out.setdefault(name, []).append(_value(value, child.of or ANY))
        elif child.form == "map":
            entry = dict(_fields(value))
            out.setdefault(name, {})[entry.get(1, b"").decode()] = _entry(entry.get(2, b""), child.of or ANY)
        elif (found := _value(value, child)) or name in shape.pointers or child.form in _KEPT:
            out[name] = found
    return out


def _entry(value: Any, shape: Shape) -> Any:
    if shape.form == "list":  # a map of lists has a message around each list
        return [_value(item, shape.of or ANY) for _, item in _fields(value)]
    return _value(value, shape)


def _value(value: Any, shape: Shape) -> Any:
    match shape.form:
        case "struct":
            return _struct(value, shape, shape.numbers)
        case "boolean":
            return bool(value)
        case "integer" | "int32" | "int64" | "number":
            return value
        case "bytes":
            return base64.b64encode(value).decode()
        case "string":
            return value.decode()
        case "quantity":
            return dict(_fields(value)).get(1, b"0").decode()
        case "intorstring":
            parts = dict(_fields(value))
            return parts.get(3, b"").decode() if parts.get(1) else parts.get(2, 0)
        case "time":
            parts = dict(_fields(value))
            if not parts.get(1):
                return None
            then = _EPOCH + timedelta(seconds=parts[1], microseconds=parts.get(2, 0) // 1000)
            return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if then.microsecond else "%Y-%m-%dT%H:%M:%SZ")
        case _:
            text = dict(_fields(value)).get(1, b"null")
            return RawJson(text) if text[:1] == b"{" else msgspec.json.decode(text)

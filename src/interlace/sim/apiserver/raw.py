"""JSON objects that remember the bytes they came from.

The real API server keeps opaque parameters as bytes and compares them as bytes, so a claim whose
parameters were written in another key order or with spaces is another claim. Invariant: a
``RawJson`` is never changed; whoever wants other content makes another one.
"""

from __future__ import annotations

from typing import Any, Final, Self

import msgspec

_RAW_FIELDS: Final = frozenset({"parameters", "data"})
"""Fields that the API declares as raw; no other field of ours has these names."""


class RawJson(dict[str, Any]):
    """A JSON object, readable as a dict, with the bytes it was decoded from in ``raw``."""

    raw: bytes

    def __init__(self, raw: bytes) -> None:
        """Raises ``msgspec.DecodeError`` if ``raw`` is no JSON object."""
        super().__init__(msgspec.json.decode(raw, type=dict[str, Any]))
        self.raw = raw

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def raw_bytes(value: Any) -> bytes:
    """The bytes that are compared: the original ones where known, else compact JSON in the given key order."""
    return value.raw if isinstance(value, RawJson) else msgspec.json.encode(value)


def same(left: Any, right: Any) -> bool:
    """Equality as the server means it: raw fields by bytes, absent equal to empty."""
    if isinstance(left, RawJson) or isinstance(right, RawJson):
        return raw_bytes(left) == raw_bytes(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return all(
            (_same_raw if key in _RAW_FIELDS else same)(left.get(key), right.get(key)) for key in left.keys() | right
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if left is None or right is None:
        other = right if left is None else left
        return other is None or (isinstance(other, dict | list) and not other)
    return bool(left == right)


def _same_raw(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    return raw_bytes(left) == raw_bytes(right)

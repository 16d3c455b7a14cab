"""JSON objects that remember the bytes they came from.

The real API server keeps opaque parameters as bytes and compares them as bytes, so a claim whose
parameters were written in another key order or with spaces is another claim. Invariant: a
``RawJson`` is never changed; whoever wants other content makes another one.
"""

from __future__ import annotations

from typing import Any, Self

import msgspec


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

"""The common shape of messages of Google's APIs and of Kubernetes.

Invariant: structs name the fields that rules read and nothing else; unknown fields are left out, an absent field has
the API's own default, and lists keep order and length, so that an index in a value is an index in the document.
"""

from __future__ import annotations

import msgspec


class Api(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A message: camelCase in JSON."""


class Switch(Api, frozen=True, kw_only=True):
    """A feature that is on or off."""

    enabled: bool = False

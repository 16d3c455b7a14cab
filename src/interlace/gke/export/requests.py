"""A cluster as the bare requests that make it, in an order in which each finds what it refers to."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlace.gke.bodies.requests import create
from interlace.gke.export.fields import Exported
from interlace.gke.resource import Resource


def as_requests(resources: Iterable[Resource]) -> Exported:
    """``{"requests": [{"service", "method", "path", "query", "body"}]}``."""
    document = {"requests": [msgspec.to_builtins(create(each)) for each in resources]}
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return Exported(text=f"{text}\n")

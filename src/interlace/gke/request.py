"""One call of a Google API, as data: what the importer reads, the renderer makes, the engine sends and tests compare.

Invariant: a request is plain JSON and names its service instead of a host, so that the same value can be printed, sent
to Google or to a simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

HOSTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "compute": "compute.googleapis.com",
        "container": "container.googleapis.com",
        "serviceusage": "serviceusage.googleapis.com",
        "cloudquotas": "cloudquotas.googleapis.com",
        "cloudresourcemanager": "cloudresourcemanager.googleapis.com",
        "cloudbilling": "cloudbilling.googleapis.com",
    }
)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """``path`` begins with a slash and holds the version: ``/compute/v1/projects/...``, ``/v1/projects/...``."""

    service: str
    method: str
    path: str
    query: dict[str, str] = {}
    body: dict[str, Any] | None = None

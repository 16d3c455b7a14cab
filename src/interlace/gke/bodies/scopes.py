"""Access scopes of nodes: short names, and the sets that gcloud gives where none are said.

Invariant: an alias is written out as the scopes that it stands for, in alphabetical order.
Source: recorded requests of gcloud 528 and the help text of its ``--scopes``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

PREFIX: Final = "https://www.googleapis.com/auth/"

CLOUD_PLATFORM: Final = PREFIX + "cloud-platform"

DEFAULT: Final = tuple(
    PREFIX + each
    for each in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
)
"""What nodes may do with the default service account of Compute Engine unless something is said."""

OWN_ACCOUNT: Final = (CLOUD_PLATFORM, PREFIX + "userinfo.email")
"""With a service account of their own nodes may do all that the account may."""


def urls(scopes: Iterable[str]) -> list[str]:
    """Scopes written out: short names without a dot or slash get the common prefix."""
    return [each if each.startswith("https://") else PREFIX + each for each in scopes]

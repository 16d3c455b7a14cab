"""Access scopes of nodes: short names, and the sets that gcloud gives where none are said.

Source: recorded requests of gcloud 528 and the help text of its ``--scopes``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

PREFIX: Final = "https://www.googleapis.com/auth/"

CLOUD_PLATFORM: Final = PREFIX + "cloud-platform"

_GKE: Final = (
    "devstorage.read_only",
    "logging.write",
    "monitoring",
    "service.management.readonly",
    "servicecontrol",
    "trace.append",
)

DEFAULT: Final = tuple(PREFIX + each for each in _GKE)
"""What nodes may do with the default service account of Compute Engine unless something is said."""

OWN_ACCOUNT: Final = (CLOUD_PLATFORM, PREFIX + "userinfo.email")
"""With a service account of their own nodes may do all that the account may."""

ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "bigquery": ("bigquery",),
    "cloud-platform": ("cloud-platform",),
    "cloud-source-repos": ("source.full_control",),
    "cloud-source-repos-ro": ("source.read_only",),
    "compute-ro": ("compute.readonly",),
    "compute-rw": ("compute",),
    "datastore": ("datastore",),
    "default": (
        "devstorage.read_only", "logging.write", "monitoring.write", "pubsub", "service.management.readonly",
        "servicecontrol", "trace.append",
    ),
    "gke-default": _GKE,
    "logging-write": ("logging.write",),
    "monitoring": ("monitoring",),
    "monitoring-read": ("monitoring.read",),
    "monitoring-write": ("monitoring.write",),
    "pubsub": ("pubsub",),
    "service-control": ("servicecontrol",),
    "service-management": ("service.management.readonly",),
    "sql": ("sqlservice",),
    "sql-admin": ("sqlservice.admin",),
    "storage-full": ("devstorage.full_control",),
    "storage-ro": ("devstorage.read_only",),
    "storage-rw": ("devstorage.read_write",),
    "taskqueue": ("taskqueue",),
    "trace": ("trace.append",),
    "userinfo-email": ("userinfo.email",),
}  # fmt: skip
"""gcloud's short names."""


def urls(scopes: Iterable[str]) -> list[str]:
    """Scopes written out: short names without a scheme get the common prefix."""
    return [each if each.startswith("https://") else PREFIX + each for each in scopes]


def written_out(scopes: Iterable[str]) -> list[str]:
    """Scopes as gcloud sends them: aliases written out, each once, sorted; what is no alias stays as it is."""
    return sorted({url for each in scopes for url in (urls(ALIASES[each]) if each in ALIASES else [each])})

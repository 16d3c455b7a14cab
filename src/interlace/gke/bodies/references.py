"""References from one Compute resource to another: full URLs, of the API version of the body that they stand in.

Invariant: a reference that is a URL already stays as it is; a name or a path relative to the API becomes one.
"""

from __future__ import annotations

from interlace.gke.request import HOSTS


def network_url(name: str, *, project: str, version: str = "v1") -> str:
    """``name``: a network's name, ``projects/P/global/networks/N`` (a shared VPC), or its URL."""
    return compute_url(name, collection="global/networks", project=project, version=version)


def compute_url(name: str, *, collection: str, project: str, version: str = "v1") -> str:
    """URL of a Compute resource. ``collection``: ``global/networks``, ``regions/R/subnetworks`` and so on."""
    if name.startswith("https://"):
        return name
    path = name if name.startswith("projects/") else f"projects/{project}/{collection}/{name}"
    return f"https://{HOSTS['compute']}/compute/{version}/{path}"

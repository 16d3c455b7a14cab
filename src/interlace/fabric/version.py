"""GKE versions (``a.b.c-gke.d``) and driver versions, and their order.

Invariant: what does not parse is an error that names the text; nothing is compared as text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_GKE: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,6})-gke\.(\d{1,12})\Z", re.ASCII)
_MINOR: Final = re.compile(r"(\d{1,4})\.(\d{1,4})\Z", re.ASCII)
_DRIVER: Final = re.compile(r"(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?\Z", re.ASCII)


class VersionError(ValueError):
    """A text that is no version; says which form is expected."""


class Minor(NamedTuple):
    """A Kubernetes minor, ``1.34``."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class GkeVersion(NamedTuple):
    """``1.34.5-gke.1153000``; ordered field by field."""

    major: int
    minor: int
    patch: int
    gke: int

    @property
    def of(self) -> Minor:
        return Minor(self.major, self.minor)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}-gke.{self.gke}"


class DriverVersion(NamedTuple):
    """``580.65.06``; what is not given counts as 0, so ``580`` is the start of its branch."""

    branch: int
    minor: int
    patch: int


def gke_version(text: str) -> GkeVersion:
    """Parse ``a.b.c-gke.d``, with or without the ``v`` of a node's kubeletVersion. Raises VersionError."""
    match = _GKE.match(text.strip())
    if match is None:
        raise VersionError(f"{text!r} is not a GKE version; write it like 1.34.5-gke.1153000")
    return GkeVersion(*map(int, match.groups()))


def minor_version(text: str) -> Minor:
    """Parse ``a.b``. Raises VersionError."""
    match = _MINOR.match(text.strip())
    if match is None:
        raise VersionError(f"{text!r} is not a minor version; write it like 1.34")
    return Minor(*map(int, match.groups()))


def driver_version(text: str) -> DriverVersion:
    """Parse ``branch[.minor[.patch]]``. Raises VersionError."""
    match = _DRIVER.match(text.strip())
    if match is None:
        raise VersionError(f"{text!r} is not a driver version; write it like 580.65.06")
    branch, minor, patch = (int(part or 0) for part in match.groups())
    return DriverVersion(branch, minor, patch)

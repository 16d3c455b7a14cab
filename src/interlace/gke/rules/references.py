"""What references say by themselves: project, region and reservation in a path, the family of a machine type.

Invariant: a plain name says nothing but itself; nothing here looks anything up.
"""

from __future__ import annotations

import re
from typing import Final

from interlace.fabric.family import Family, FamilyError, find
from interlace.gke.places import short

_PROJECT: Final = re.compile(r"(?:^|/)projects/([^/]+)/")
_ZONE: Final = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]\Z")


def family_of(machine: str) -> Family | None:
    """The family of a machine type."""
    try:
        family = find(short(machine))
    except FamilyError:
        return None
    return family if family.node.gke and short(machine).lower() in family.machines else None


def project_in(reference: str) -> str:
    """The project that a path or URL names; empty for a name."""
    match = _PROJECT.search(reference)
    return match[1] if match else ""


def region_in(reference: str) -> str:
    """The region that a path or URL names; empty for a name."""
    match = re.search(r"/regions/([^/]+)/", reference)
    return match[1] if match else ""


def region_of(location: str) -> str:
    """The region of a zone; a region is its own."""
    match = _ZONE.match(location)
    return match[1] if match else location


def reservation_name(value: str) -> str:
    """The reservation in a value of reservation affinity, without project and block."""
    path = value.partition("/reservationBlocks/")[0]
    return short(path)


def is_zone(location: str) -> bool:
    """Whether a location is a zone, not a region."""
    return _ZONE.match(location) is not None

"""What Google offers, as far as the simulation knows: regions, zones, machine types, GPUs, versions, quotas.

The figures are data with a date (``data/catalog.json``), in part a choice of the simulation, and a source for nothing
else.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import msgspec


class MachineType(msgspec.Struct, frozen=True, kw_only=True):
    """``zones`` empty: offered everywhere."""

    cpus: int
    memory_mb: int
    shared: bool = False
    gpu: str = ""
    gpus: int = 0
    local_ssds: int = 0
    zones: tuple[str, ...] = ()


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """``family`` is the dimension of its quota."""

    description: str
    family: str


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    default: str
    valid: tuple[str, ...]


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Newest first."""

    valid: tuple[str, ...]
    default: str
    channels: dict[str, Channel]


class Catalog(msgspec.Struct, kw_only=True):
    """Tests may change quotas and versions of their own copy."""

    basis: str
    regions: dict[str, tuple[str, ...]]
    machine_types: dict[str, MachineType]
    accelerators: dict[str, Accelerator]
    rdma_profile_zones: tuple[str, ...]
    versions: Versions
    global_quotas: dict[str, float]
    region_quotas: dict[str, float]
    gpu_family_quota: int
    vm_family_quota: int
    """CPUs of each family of machines with GPUs in a region; other machines count as CPUS."""

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(zone for zones in self.regions.values() for zone in zones)

    def offered(self, machine_type: str, zone: str) -> bool:
        """Whether the type can be had in the zone."""
        found = self.machine_types.get(machine_type)
        return found is not None and zone in self.zones and (not found.zones or zone in found.zones)

    def resolve(self, version: str, channel: str) -> str | None:
        """The version that ``""``, ``-``, ``latest``, a prefix or a whole version means; None if there is none."""
        valid = self.versions.valid
        if version in {"", "-"}:
            found = self.versions.channels.get(channel)
            return found.default if found else self.versions.default
        if version == "latest":
            return valid[0]
        return next(
            (each for each in valid if each == version or each.startswith((f"{version}.", f"{version}-"))), None
        )


def vm_family(machine_type: str) -> str:
    """The family by which Cloud Quotas counts CPUs: ``A3`` of ``a3-megagpu-8g``."""
    return machine_type.partition("-")[0].upper()


def region_of(location: str) -> str:
    """The region of a zone, or the region itself."""
    return location.rpartition("-")[0] if location.count("-") == 2 else location


def load() -> Catalog:
    """A copy of what is shipped."""
    return msgspec.json.decode(_raw(), type=Catalog)


@cache
def _raw() -> bytes:
    found: Any = resources.files("interlace.sim.gke") / "data" / "catalog.json"
    content: bytes = found.read_bytes()
    return content

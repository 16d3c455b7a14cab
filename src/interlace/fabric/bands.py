"""How fast a fabric should be: the one table of bands, and the physical bounds.

Units: busbw as nccl-tests prints it, in GB/s of 10^9 bytes; sizes in bytes; times in ms. Invariant: a family without
a row is not judged, and no bound depends on a measurement.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Final, Literal

import msgspec

from interlace.fabric.family import Source

MIB: Final = 1 << 20

LEAST_SIZE: Final = 256 * MIB
"""Rows below it say nothing about bandwidth; no row of the table starts lower."""

Scope = Literal["nodes", "nvlink"]
"""``nodes``: traffic leaves the nodes through their NICs; ``nvlink``: all ranks are in one NVLink domain."""

RING_BOUND: Final = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives whose busbw a ring through all ranks bounds by the line rate of a node."""


class Band(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From which share of ``bound_gb_s`` a run passes and from which it is degraded; below that it fails.

    Holds for rows of at least ``from_bytes``; the largest one decides.
    """

    family: str
    scope: Scope
    collectives: tuple[str, ...] = RING_BOUND
    bound_gb_s: float
    pass_share: float
    degraded_share: float
    from_bytes: int
    source: str
    why: str


class Floor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most that a collective of ``bytes`` may take, ``most_ms``."""

    family: str
    scope: Scope
    bytes: int
    most_ms: float
    source: str
    why: str


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole table with its sources."""

    sources: dict[str, Source]
    bands: tuple[Band, ...]
    floors: tuple[Floor, ...]


@cache
def table() -> Table:
    """The table as it is in ``fabric/data/bands.toml``."""
    text = (resources.files(__package__) / "data" / "bands.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Table)


def band(family: str, *, scope: Scope, collective: str) -> Band | None:
    """The band of a family's id for that collective, or None: then nobody knows how fast it should be."""
    for each in table().bands:
        if each.family == family and each.scope == scope and collective in each.collectives:
            return each
    return None


def floor(family: str, *, scope: Scope) -> Floor | None:
    """The latency floor of a family's id, or None."""
    return next((each for each in table().floors if each.family == family and each.scope == scope), None)


def most_busbw(rate_gb_s: float, *, nodes: int, ranks: int) -> float:
    """What no all_reduce, all_gather or reduce_scatter exceeds without reduction in the network.

    ``rate_gb_s`` is the line rate of one node, ``ranks`` are spread evenly over ``nodes`` >= 2. A value above is an
    error of the measurement. rate * (n - 1) / n * N / (N - 1): at two nodes and 16 ranks 1.875 times the rate.
    """
    return rate_gb_s * (ranks - 1) / ranks * nodes / (nodes - 1)

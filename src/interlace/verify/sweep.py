"""What a test measures: which collective, which sizes, how long that takes, and what it should reach. Pure."""

from __future__ import annotations

import math
import re
from typing import Final

import msgspec

from interlace.fabric import bands
from interlace.fabric.bands import Band, Scope
from interlace.fabric.family import Family

COLLECTIVES: Final = (
    "all_gather",
    "all_reduce",
    "alltoall",
    "broadcast",
    "reduce",
    "reduce_scatter",
    "sendrecv",
)
_SIZE = re.compile(r"(\d{1,15})([KMG]?)B?\Z", re.IGNORECASE)
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ROUNDS: Final = 2 * (5 + 20) + 4
"""Of each size: both placements, warm-up and timed iterations, and the comparison of results."""
_START_SECONDS: Final = 60.0
"""Image, SSH, MPI and NCCL, as published runs show them; no promise."""
_UNKNOWN_SHARE: Final = 0.5
"""Of the line rate, where no band is known."""
_NVLINK_GB_S: Final = 900.0


class SweepError(ValueError):
    """Sizes or collective that cannot be measured; the message says what can."""


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """One table of nccl-tests: sizes from ``least`` to ``most`` bytes, each twice the one before."""

    collective: str
    least: int
    most: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes."""
        return tuple(self.least << step for step in range((self.most // self.least).bit_length()))

    def seconds(self, family: Family, *, nodes: int, scope: Scope) -> float:
        """About how long a healthy fabric takes, with the start of the Pods."""
        found = bands.band(family.id, scope=scope, collective=self.collective)
        line = _NVLINK_GB_S if scope == "nvlink" else max(1.0, family.node.nics * family.node.nic_gbps / 8)
        rate = found.pass_share * found.bound_gb_s if found is not None else _UNKNOWN_SHARE * line
        return _START_SECONDS + nodes * 0.5 + _ROUNDS * sum(2 * size / (rate * 1e9) for size in self.sizes)


def sweep(*, collective: str | None, least: str, most: str, family: Family, scope: Scope) -> Sweep:
    """Read options; without a collective the one that the family's band is for. Raises SweepError."""
    if collective is None:
        known = next((each for each in bands.table().bands if each.family == family.id and each.scope == scope), None)
        collective = "all_gather" if known is None or "all_gather" in known.collectives else known.collectives[0]
    collective = collective.removesuffix("_perf").replace("-", "_")
    if collective not in COLLECTIVES:
        raise SweepError(f"--collective: {collective!r} is not one of {', '.join(COLLECTIVES)}")
    lowest, highest = size(least, option="--min"), size(most, option="--max")
    if lowest > highest:
        raise SweepError(f"--min {least} is more than --max {most}; give sizes that rise")
    return Sweep(collective=collective, least=lowest, most=highest)


def size(text: str, *, option: str) -> int:
    """Bytes of ``1M``, ``8G``, ``1048576``; K, M and G are powers of 1024, as in nccl-tests. Raises SweepError."""
    found = _SIZE.match(text.strip())
    value = int(found[1]) * _UNITS[found[2].upper()] if found else 0
    if not 64 <= value <= 1 << 40:
        raise SweepError(f"{option}: {text!r} is not a size from 64 to 1024G bytes, such as 1M or 8G")
    return value


def scope_of(family: Family, *, nodes: int, one_clique: bool = True) -> Scope:
    """Whether NVLink joins that many nodes of the family, or their NICs."""
    return "nvlink" if family.node.mnnvl and one_clique and nodes <= max(1, family.node.domain_nodes) else "nodes"


def band_of(family: Family, *, scope: Scope, measured: Sweep) -> Band | None:
    """The band that the largest size may be held against, if any."""
    found = bands.band(family.id, scope=scope, collective=measured.collective)
    return found if found is not None and measured.most >= found.from_bytes else None


def duration(seconds: float) -> str:
    """For people: ``about 40 seconds``, ``about 3 minutes``, ``about 2.5 hours``."""
    if seconds < 90:
        return f"about {max(10, 10 * round(seconds / 10))} seconds"
    if seconds < 5400:
        return f"about {math.ceil(seconds / 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"

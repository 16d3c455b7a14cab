"""How long Google takes for each step, as far as anybody has said so in public: for an estimate and for deadlines.

Invariant: an estimate, shown as one. Sources: operations listed in terraform-provider-google issue 1643 (cluster 3 min
10 s, pools 1 min 46 s and 6 min 35 s); time-outs of gcloud 528 (cluster 3,600 s, pool 1,800 s) and the 35 min after
which a stockout was reported. No public figure is known for networks, subnets and firewall rules: a round half minute.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from interlace.gke.resource import Key, Kind
from interlace.gke.scheduling import critical_path

_SECONDS: Final[Mapping[Kind, float]] = MappingProxyType(
    {
        "network": 30.0,
        "subnetwork": 30.0,
        "firewall": 30.0,
        "resourcePolicy": 30.0,
        "reservation": 30.0,
        "cluster": 240.0,
        "nodePool": 360.0,
    }
)
_LIMITS: Final[Mapping[Kind, float]] = MappingProxyType({"cluster": 3600.0, "nodePool": 3600.0})
_LIMIT: Final = 600.0


def expected(kind: Kind) -> float:
    """Seconds that making one usually takes."""
    return _SECONDS[kind]


def limit(kind: Kind) -> float:
    """Seconds after which nobody waits any longer for an operation."""
    return _LIMITS.get(kind, _LIMIT)


def expected_minutes(needs: Mapping[Key, Collection[Key]]) -> int:
    """Minutes for all of it when what may run at once does, rounded up; 0 for nothing."""
    seconds = critical_path(needs, {key: expected(key.kind) for key in needs})
    return int(-(-seconds // 60))

"""Events in their two versions: ``v1``, which is stored, and ``events.k8s.io/v1``, a view of it.

Invariant: going from one to the other and back changes nothing.
"""

from __future__ import annotations

from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json

_PAIRS = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("source", "deprecatedSource"),
    ("reportingComponent", "reportingController"),
)
_TO_NEW = dict(_PAIRS)
_TO_CORE = {new: core for core, new in _PAIRS}


def present_event(obj: Json, kind: Kind) -> Json:
    """An event as the version of ``kind`` names its fields."""
    names = _TO_NEW if kind.group else _TO_CORE
    out = {names.get(key, key): value for key, value in obj.items()}
    out["apiVersion"] = kind.api_version
    return out

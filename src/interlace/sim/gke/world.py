"""The state that every simulated service shares, and how a mutation becomes an operation.

Invariant: pure but for the clock, which is given; nothing here waits. What a request changes at once and what its
operation changes later are told apart by ``start``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from interlace.sim.gke.catalog import Catalog, load
from interlace.sim.gke.errors import invalid
from interlace.sim.gke.faults import Faults, Kind
from interlace.sim.gke.operations import COMPUTE, Operation, OperationFailed, Operations
from interlace.sim.gke.routes import Call
from interlace.sim.gke.store import Store

Json = dict[str, Any]


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that operations take."""

    compute: float = 0.02
    cluster: float = 0.05
    pool: float = 0.05
    update: float = 0.02

    @classmethod
    def every(cls, seconds: float) -> Durations:
        """The same for all."""
        return cls(compute=seconds, cluster=seconds, pool=seconds, update=seconds)


QUICK: Final = Durations()
"""For tests."""
LIFELIKE: Final = Durations(compute=12, cluster=190, pool=106, update=30)
"""A cluster and a pool as long as public reports say; the others a guess."""


@dataclass(slots=True, kw_only=True)
class World:
    """``clock`` gives seconds. ``projects`` are the ids that exist; ``disabled`` the APIs that are off."""

    projects: tuple[str, ...]
    clock: Callable[[], float]
    durations: Durations = QUICK
    catalog: Catalog = field(default_factory=load)
    store: Store = field(default_factory=Store)
    operations: Operations = field(default_factory=Operations)
    faults: Faults = field(default_factory=Faults)
    disabled: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    """Permissions that the caller lacks, such as ``compute.networks.create``."""
    pool_operation_limit: int = 5
    enrolled: set[str] = field(default_factory=set)
    """Clusters to which the server gave a release channel."""
    shortages: dict[str, Kind] = field(default_factory=dict)
    """Node pools that did not come up, and why."""

    def start(
        self,
        call: Call,
        *,
        type: str,
        target: str,
        effect: Callable[[], None],
        seconds: float,
        lock: str = "",
    ) -> Operation:
        """The operation that will do ``effect``; faults for operations apply."""
        if self.faults.striking(call.line, (Kind.STUCK,)):
            seconds = math.inf
        document = self.store.get(target) or {}
        compute = call.route.service == "compute"
        ident = document.get("id") or (self.store.next_id() if compute else "0")
        return self.operations.start(
            service=call.route.service,
            project=call.project,
            scope=call.scope,
            type=type,
            target=target,
            target_id=ident,
            now=self.clock(),
            seconds=seconds,
            effect=effect,
            lock=lock,
        )

    def later(self, call: Call, effect: Callable[[], None], metric: str, limit: float) -> Callable[[], None]:
        """``effect`` of compute, or the failure at its end of a fault that strikes this call."""
        if self.faults.striking(call.line, (Kind.QUOTA_AT_COMPLETION,)):
            return _failing(quota_failure(metric, limit))
        if metric == "RESERVATIONS" and self.faults.striking(call.line, (Kind.STOCKOUT,)):
            return _failing(_stockout(call.project, call.place))
        return effect

    def link(self, path: str) -> str:
        """The URL of a compute resource."""
        return COMPUTE + path

    def zone_of(self, zone: str) -> None:
        """400 unless the zone exists."""
        if zone not in self.catalog.zones:
            raise invalid("zone", zone, "Unknown zone.")


def _failing(failure: OperationFailed) -> Callable[[], None]:
    def fail() -> None:
        raise failure

    return fail


def _stockout(project: str, zone: str) -> OperationFailed:
    text = (
        f"The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request.  "
        "Try a different zone, or try again later."
    )
    return OperationFailed(text, code="ZONE_RESOURCE_POOL_EXHAUSTED", http=(503, "SERVICE UNAVAILABLE"))


def quota_failure(metric: str, limit: float) -> OperationFailed:
    """What an operation of compute ends with when a quota is exceeded only then."""
    name = metric.lower()
    details = {
        "quotaInfo": {
            "metricName": f"compute.googleapis.com/{name}",
            "limitName": f"{metric}-per-project",
            "limit": float(limit),
            "dimensions": {"global": "global"},
        }
    }
    return OperationFailed(
        f"Quota '{metric}' exceeded.  Limit: {float(limit)} globally.",
        code="QUOTA_EXCEEDED",
        http=(403, "FORBIDDEN"),
        details=(details,),
    )

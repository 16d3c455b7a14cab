"""What Prometheus is told about domains.

``nvidia_dra_compute_domain_info`` has the name and label of the existing driver and is counted from
the cache at each scrape, so it is right from the first one after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from interlace.api.computedomain import ComputeDomain
from interlace.domains.reasons import WaitReason
from interlace.kube.meters import Family, Registry, Sample, counter, histogram

_INFO = "nvidia_dra_compute_domain_info"
_WAITING = "interlace_claims_waiting"


class Metrics:
    """Counters and gauges of one controller process; ``observe`` says what the gauges are counted from."""

    def __init__(self, registry: Registry) -> None:
        self.clique_writes = counter(
            "interlace_clique_writes", "Writes of ComputeDomainCliques.", ["operation"], registry=registry
        )
        self.status_writes = counter(
            "interlace_domain_status_writes", "Writes of ComputeDomain status.", registry=registry
        ).labels()
        self.pods_touched = counter(
            "interlace_pods_touched", "Pods annotated so that kubelet prepares them again.", registry=registry
        ).labels()
        self.pods_evicted = counter(
            "interlace_pods_evicted", "Pods evicted from a node of another domain.", registry=registry
        ).labels()
        self.formation = histogram(
            "interlace_domain_formation_seconds",
            "From the first claim of a domain that waits until all its nodes are ready.",
            buckets=(0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256),
            registry=registry,
        ).labels()
        self._domains: Callable[[], Iterable[ComputeDomain]] = tuple
        self._waiting: Callable[[], Iterable[WaitReason]] = tuple
        registry.add(_INFO, self._info)
        registry.add(_WAITING, self._claims_waiting)

    def observe(
        self, *, domains: Callable[[], Iterable[ComputeDomain]], waiting: Callable[[], Iterable[WaitReason]]
    ) -> None:
        """``domains``: all that exist; ``waiting``: one reason for each claim that waits."""
        self._domains = domains
        self._waiting = waiting

    def _info(self) -> Family:
        tally = Counter[str](d.status.status if d.status else "NotReady" for d in self._domains())
        samples = [Sample(_INFO, {"status": status}, tally[status]) for status in ("Ready", "NotReady")]
        return Family(_INFO, "gauge", "Number of ComputeDomains by status.", samples)

    def _claims_waiting(self) -> Family:
        tally = Counter(self._waiting())
        samples = [Sample(_WAITING, {"reason": str(reason)}, tally[reason]) for reason in WaitReason]
        return Family(_WAITING, "gauge", "Claims of ComputeDomains that wait, by reason.", samples)

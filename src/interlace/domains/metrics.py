"""What Prometheus is told about domains.

``nvidia_dra_compute_domain_info`` has the name and label of the existing driver and is counted from
the cache at each scrape, so it is right from the first one after a restart.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from interlace.api.computedomain import ComputeDomain
from interlace.domains.reasons import WaitReason


class Metrics:
    """Counters and gauges of one controller process; ``observe`` says what the gauges are counted from."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.clique_writes = Counter(
            "interlace_clique_writes", "Writes of ComputeDomainCliques.", ["operation"], registry=registry
        )
        self.status_writes = Counter(
            "interlace_domain_status_writes", "Writes of ComputeDomain status.", registry=registry
        )
        self.pods_touched = Counter(
            "interlace_pods_touched", "Pods annotated so that kubelet prepares them again.", registry=registry
        )
        self.formation = Histogram(
            "interlace_domain_formation_seconds",
            "From the first claim of a domain that waits until all its nodes are ready.",
            buckets=(0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256),
            registry=registry,
        )
        self._domains: Callable[[], Iterable[ComputeDomain]] = tuple
        self._waiting: Callable[[], Iterable[WaitReason]] = tuple
        registry.register(_Gauges(self))

    def observe(
        self, *, domains: Callable[[], Iterable[ComputeDomain]], waiting: Callable[[], Iterable[WaitReason]]
    ) -> None:
        """``domains``: all that exist; ``waiting``: one reason for each claim that waits."""
        self._domains = domains
        self._waiting = waiting

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges, counted now."""
        info = GaugeMetricFamily(
            "nvidia_dra_compute_domain_info", "Number of ComputeDomains by status.", labels=["status"]
        )
        tally = Tally[str](d.status.status if d.status else "NotReady" for d in self._domains())
        for status in ("Ready", "NotReady"):
            info.add_metric([status], tally[status])
        yield info
        waiting = GaugeMetricFamily(
            "interlace_claims_waiting", "Claims of ComputeDomains that wait, by reason.", labels=["reason"]
        )
        reasons = Tally(self._waiting())
        for reason in WaitReason:
            waiting.add_metric([str(reason)], reasons[reason])
        yield waiting


class _Gauges(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[GaugeMetricFamily]:
        return self._metrics.collect()

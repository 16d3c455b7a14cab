"""What the runtime counts, in a registry that the caller hands in.

Invariant: one ``Metrics`` a registry (a second one on the same registry is refused by it);
client, queues, informers and recorder of a process share it.
"""

from __future__ import annotations

from interlace.kube.meters import Registry, counter, gauge, histogram

_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


class Metrics:
    """Collectors of ``interlace.kube``."""

    def __init__(self, registry: Registry) -> None:
        self.requests = counter(
            "interlace_kube_requests", "API requests by answer", ["method", "resource", "code"], registry=registry
        )
        self.lists = counter(
            "interlace_kube_lists", "Full lists made by informers, initial ones included", ["kind"], registry=registry
        )
        self.depth = gauge("interlace_queue_depth", "Keys that wait for a worker", ["queue"], registry=registry)
        self.latency = histogram(
            "interlace_queue_latency_seconds",
            "Time from the addition of a key until a worker takes it",
            ["queue"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.work = histogram(
            "interlace_queue_work_seconds",
            "Time that a worker spends on a key",
            ["queue"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.retries = counter("interlace_queue_retries", "Keys put back after a failure", ["queue"], registry=registry)
        dropped = counter("interlace_events_dropped", "Events that were not written", registry=registry)
        self.events_dropped = dropped.labels()

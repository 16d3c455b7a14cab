"""Metrics under the names of the existing driver, in a registry of our own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from interlace.api.computedomain import DRIVER
from interlace.kube.meters import Registry, counter, gauge, histogram

PREPARE, UNPREPARE = "prepare", "unprepare"
_BUCKETS = tuple(0.05 * 2**step for step in range(9))


class Metrics:
    """Counts calls of kubelet. ``nvidia_dra_requests_total`` counts successes, as its predecessor does."""

    def __init__(self, registry: Registry, *, node: str) -> None:
        labels = ("driver", "operation")
        self._node = node
        self._requests = counter("nvidia_dra_requests", "Calls without an error.", labels, registry=registry)
        self._duration = histogram(
            "nvidia_dra_request_duration_seconds", "Duration of calls.", labels, buckets=_BUCKETS, registry=registry
        )
        self._inflight = gauge("nvidia_dra_requests_inflight", "Calls in progress.", labels, registry=registry)
        self._prepared = gauge(
            "nvidia_dra_prepared_devices",
            "Devices of prepared claims.",
            ("node", "driver", "device_type"),
            registry=registry,
        )
        self._errors = {
            PREPARE: counter(
                "nvidia_dra_node_prepare_errors",
                "Claims not prepared, by reason.",
                ("driver", "error_type"),
                registry=registry,
            ),
            UNPREPARE: counter(
                "nvidia_dra_node_unprepare_errors",
                "Claims not unprepared, by reason.",
                ("driver", "error_type"),
                registry=registry,
            ),
        }
        self._healthy = gauge(
            "interlace_fabric_healthy",
            "1 if the node's NVLink fabric is healthy or absent.",
            ("node",),
            registry=registry,
        )
        for operation in (PREPARE, UNPREPARE):
            self._requests.labels(DRIVER, operation)
            self._inflight.labels(DRIVER, operation)

    @contextmanager
    def call(self, operation: str) -> Iterator[None]:
        """Around one call of kubelet; an exception means that it failed."""
        began = time.monotonic()
        self._inflight.labels(DRIVER, operation).inc()
        try:
            yield
        finally:
            self._inflight.labels(DRIVER, operation).dec()
            self._duration.labels(DRIVER, operation).observe(time.monotonic() - began)

    def success(self, operation: str) -> None:
        """A call without an error."""
        self._requests.labels(DRIVER, operation).inc()

    def failure(self, operation: str, reason: str) -> None:
        """One claim of a call failed."""
        self._errors[operation].labels(DRIVER, reason).inc()

    def prepared(self, devices: int) -> None:
        """So many devices are prepared now."""
        self._prepared.labels(self._node, DRIVER, "channel").set(devices)

    def fabric(self, *, healthy: bool) -> None:
        """The verdict on the fabric."""
        self._healthy.labels(self._node).set(healthy)

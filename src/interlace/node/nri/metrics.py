"""Metrics of the device injector."""

from __future__ import annotations

from interlace.kube.meters import Registry, counter, gauge
from interlace.node.nri.errors import Reason


class Metrics:
    """What a node's injector counts."""

    def __init__(self, registry: Registry) -> None:
        self._registered = gauge(
            "interlace_nri_registered", "1 while the container runtime calls the injector.", registry=registry
        )
        self._devices = counter("interlace_nri_devices_injected", "Devices given to containers.", registry=registry)
        self._there = counter(
            "interlace_nri_devices_left_alone", "Devices that containers had already.", registry=registry
        )
        self._refusals = counter(
            "interlace_nri_refusals", "Containers refused, by reason.", ("reason",), registry=registry
        )
        self._bare = counter(
            "interlace_nri_containers_without_devices",
            "Containers that run without devices that they ask for.",
            registry=registry,
        )
        self._others = gauge(
            "interlace_nri_other_injector",
            "1 for each other injector met on this node.",
            ("plugin",),
            registry=registry,
        )
        self._registered.labels().set(0)
        for reason in Reason:
            self._refusals.labels(reason)

    def registered(self, *, yes: bool) -> None:
        self._registered.labels().set(yes)

    def injected(self, devices: int, *, there: int) -> None:
        self._devices.labels().inc(devices)
        self._there.labels().inc(there)

    def refused(self, reason: Reason) -> None:
        self._refusals.labels(reason).inc()

    def bare(self) -> None:
        self._bare.labels().inc()

    def other(self, name: str) -> None:
        self._others.labels(name).set(1)

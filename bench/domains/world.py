"""What a scenario needs to know of a driver under test, and of the cluster that it runs in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from bench.domains.series import Series
from interlace.sim.cluster import Cluster
from testbed import flags, process


class World(Protocol):
    """A running cluster with a driver in it."""

    @property
    def cluster(self) -> Cluster:
        """Real control plane, hollow nodes."""
        ...

    def component(self, user: str) -> str:
        """Which component a user of the API server is."""
        ...

    async def calm(self) -> None:
        """Wait until what the driver does periodically is done for now and not due soon."""
        ...

    async def imex_starts(self) -> list[float]:
        """Seconds that the last start of each node's IMEX took until READY; empty if the driver does not say."""
        ...

    def processes(self) -> Mapping[str, list[int]]:
        """Process ids of the driver's programs, by kind, now."""
        ...


class Driver(Protocol):
    """An implementation of ComputeDomains."""

    @property
    def name(self) -> str:
        """In result files and tables."""
        ...

    @property
    def components(self) -> tuple[str, ...]:
        """Its own clients of the API server."""
        ...

    def start(self, series: Series, *, nodes: int) -> AbstractAsyncContextManager[World]:
        """A cluster of ``nodes`` with the driver installed and ready; everything is gone when it is left."""
        ...


PLATFORM = ("scheduler", "controller-manager", "kubelet")
"""Who else asks the API server, in tables."""


def plane_processes(state: Path) -> dict[str, list[int]]:
    """Process ids of the control plane whose state is in ``state``."""
    found = {}
    for name in flags.COMPONENTS:
        try:
            identity = process.Identity.parse((state / f"{name}.pid").read_text())
        except FileNotFoundError:
            continue
        if identity is not None:
            found[name] = [identity.pid]
    return found

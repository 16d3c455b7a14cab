"""All hollow nodes of a cluster, and their power switches.

Invariant: a node that is off has no process, no connection and no socket; its objects in the
API stay as they were, which is what a power cut looks like from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from interlace.sim.kubelet.hardware import Tray
from interlace.sim.kubelet.node import HollowNode
from interlace.sim.kubelet.output import Finite
from interlace.sim.kubelet.pods import PodWorker
from interlace.sim.kubelet.programs import Programs
from interlace.sim.kubelet.settings import KubeletSettings
from interlace.sim.kubelet.stopping import run_until
from interlace.sim.plane import Plane


class Fleet:
    """Hollow nodes by name; ``run`` serves those that are switched on."""

    def __init__(
        self, trays: Iterable[Tray], *, plane: Plane, programs: Programs, settings: KubeletSettings | None = None
    ) -> None:
        chosen = settings or KubeletSettings()
        self.programs = programs
        self.nodes = {tray.name: HollowNode(tray, plane=plane, programs=programs, settings=chosen) for tray in trays}
        self._on = {name: asyncio.Event() for name in self.nodes}
        self._off = {name: asyncio.Event() for name in self.nodes}
        self._dark = {name: asyncio.Event() for name in self.nodes}
        for name in self.nodes:
            self._on[name].set()
            self._dark[name].set()

    def watch_pods(self, handler: Callable[[PodWorker, str], None]) -> None:
        """Call ``handler(worker, what)`` when a pod is ``bound``, ``called``, ``prepared``, ``running`` or ``gone``.

        ``called``: its claims are prepared from now on; ``gone``: they are unprepared.
        """
        for node in self.nodes.values():
            node.on_pod = handler

    def run_finite(self, finite: Finite) -> None:
        """Let ``finite`` run what it takes, on every node that boots from now on."""
        for node in self.nodes.values():
            node.finite = finite

    def is_on(self, name: str) -> bool:
        """Whether the node has power."""
        return self._on[name].is_set()

    async def run(self) -> None:
        """Serve all nodes until cancelled; errors of a node end everything."""
        async with asyncio.TaskGroup() as group:
            for name, node in self.nodes.items():
                group.create_task(self._life(name, node))

    async def power_off(self, name: str, *, within: float = 10.0) -> None:
        """Cut the power of a node and wait until it is dark. Raises TimeoutError."""
        self._on[name].clear()
        self._off[name].set()
        async with asyncio.timeout(within):
            await self._dark[name].wait()

    def power_on(self, name: str) -> None:
        """Switch a node on; it boots with a new boot id."""
        self._off[name].clear()
        self._on[name].set()

    async def _life(self, name: str, node: HollowNode) -> None:
        try:
            while True:
                await self._on[name].wait()
                self._dark[name].clear()
                await run_until(self._off[name], node.run())
                await node.cut_power()
                self._dark[name].set()
        finally:
            await node.cut_power()

"""Values and stand-ins for the injector's neighbours: a node's /dev, who is told, a runtime on a socket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from interlace.api.core import ObjectReference
from interlace.fabric.devices import PREFIX, allow
from interlace.kube.meters import Registry
from interlace.node.nri.errors import Refused
from interlace.node.nri.injection import Decision, Rules
from interlace.node.nri.injector import Dial, Injector, InjectorSettings
from interlace.node.nri.metrics import Metrics
from interlace.node.nri.proto import nri_pb2 as pb
from interlace.sim.nri import Runtime, RuntimeSettings, run_runtime

WITHIN = 60.0
"""Seconds that anything may take on a busy machine."""
NODE = "a3-mega-1"
NULL = "/dev/null"
ZERO = "/dev/zero"
REAL = Rules(allowed=allow([NULL, ZERO], base=()))
"""Two devices that every machine has, from its own /dev."""


def listed(*paths: str) -> str:
    """The text of an annotation."""
    return "".join(f"- path: {path}\n" for path in paths)


def pod(**texts: str) -> pb.PodSandbox:
    """A Pod whose containers ask for devices; the text of each by its name."""
    annotations = {PREFIX + container.replace("_", "-"): text for container, text in texts.items()}
    return pb.PodSandbox(id="p1", name="train-0", uid="uid-1", namespace="team", annotations=annotations)


def container(name: str = "daemon", *, devices: Iterable[pb.LinuxDevice] = ()) -> pb.Container:
    """A container that has ``devices`` already."""
    return pb.Container(
        id="c1", pod_sandbox_id="p1", name=name, state=pb.CONTAINER_RUNNING, linux=pb.LinuxContainer(devices=devices)
    )


def real(path: str) -> pb.LinuxDevice:
    """A device of this machine."""
    number = os.lstat(path).st_rdev
    return pb.LinuxDevice(path=path, type="c", major=os.major(number), minor=os.minor(number))


class Told:
    """Remembers what a plugin tells."""

    def __init__(self) -> None:
        self.synchronizations = 0
        self.decisions: list[Decision] = []
        self.refusals: list[Refused] = []
        self.lacking: list[tuple[str, str, list[str]]] = []
        self.others: list[tuple[str, str, bool]] = []

    def synchronized(self) -> None:
        self.synchronizations += 1

    def injected(self, pod: pb.PodSandbox, container: str, decision: Decision) -> None:
        self.decisions.append(decision)

    def refused(self, pod: pb.PodSandbox, refused: Refused) -> None:
        self.refusals.append(refused)

    def bare(self, pod: pb.PodSandbox, container: str, paths: Iterable[str]) -> None:
        self.lacking.append((pod.name, container, list(paths)))

    def other(self, name: str, index: str, *, later: bool) -> None:
        self.others.append((name, index, later))


class Said:
    """Remembers events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, bool]] = []

    def event(self, about: ObjectReference, *, reason: str, message: str, warning: bool = False) -> None:
        self.events.append((f"{about.kind}/{about.name}", reason, message, warning))


class World:
    """An injector that runs, and the runtime that it is registered at."""

    def __init__(
        self,
        folder: Path,
        *,
        pause: float = 0.001,
        longest: float = 0.01,
        index: str = "50",
        dial: Dial | None = None,
    ) -> None:
        self.socket = folder / "nri.sock"
        self.said = Said()
        self.registry = Registry()
        settings = InjectorSettings(socket=self.socket, index=index, rules=REAL, pause=pause, longest_pause=longest)
        metrics = Metrics(self.registry)
        self.injector = Injector(settings, node=NODE, events=self.said, metrics=metrics, dial=dial)


@asynccontextmanager
async def running(world: World, settings: RuntimeSettings | None = None) -> AsyncIterator[Runtime]:
    """The runtime, and the injector beside it until the context ends."""
    settings = settings or RuntimeSettings(limit=WITHIN)
    async with run_runtime(world.socket, settings) as runtime, asyncio.TaskGroup() as group:
        task = group.create_task(world.injector.run())
        try:
            yield runtime
        finally:
            task.cancel()

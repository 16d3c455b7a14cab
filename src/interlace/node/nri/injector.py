"""Keeps the device injector registered at the runtime, whatever becomes of the connection.

NRI fails open: a plugin that is away is left out, and containers start without their devices. So the injector comes
back at once, says in ``problem`` when it is away (the agent is not ready then), and looks after each return for
containers that started meanwhile. Invariant: between two attempts there is a pause with jitter, at most a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

import msgspec

from interlace.api.core import ObjectReference
from interlace.kube.backoff import backoff
from interlace.kube.log import get_logger
from interlace.node.nri.connection import converse
from interlace.node.nri.errors import NriError, Refused
from interlace.node.nri.injection import Decision, Rules
from interlace.node.nri.metrics import Metrics
from interlace.node.nri.plugin import CREATE, VALIDATE, Plugin
from interlace.node.nri.proto import nri_pb2 as pb

MASKS: Final = (CREATE | VALIDATE, CREATE)
"""What is subscribed to, and what instead where the runtime hangs up on that."""
CONNECT_LIMIT: Final = 5.0
CLOSE_LIMIT: Final = 1.0
STABLE: Final = 5.0
"""Seconds after which a registration counts as a good one, and the pauses begin small again."""
log = get_logger(__name__)


class InjectorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the plugin is known to the runtime, and what it may inject; times in seconds."""

    socket: Path = Path("/var/run/nri/nri.sock")
    name: str = "interlace"
    index: str = "50"
    """Two digits; higher than that of an injector to which this one leaves what it serves (GKE's has 10)."""
    rules: Rules
    pause: float = 0.05
    longest_pause: float = 1.0


Dial = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Events(Protocol):
    """Where events are written; `kube.events.Recorder` does."""

    def event(self, about: ObjectReference, *, reason: str, message: str, warning: bool = False) -> None:
        """Say something about an object, at once."""


class Injector:
    """The plugin of one node; ``node`` is its name."""

    def __init__(
        self,
        settings: InjectorSettings,
        *,
        node: str,
        events: Events,
        metrics: Metrics,
        dial: Dial | None = None,
    ) -> None:
        self._settings = settings
        self._node = ObjectReference(api_version="v1", kind="Node", name=node)
        self._events = events
        self._metrics = metrics
        self._dial = dial or (lambda: asyncio.open_unix_connection(settings.socket))
        self._mask = 0
        self._others: set[tuple[str, str]] = set()
        self.registrations = 0
        """How often the runtime took us in."""
        self.problem: str | None = "the device injector is not registered at the container runtime yet"
        self.registered = asyncio.Event()
        """Set once it was for the first time."""

    async def run(self) -> None:
        """Serve until cancelled."""
        failures = 0
        while True:
            began = time.monotonic()
            await self._serve()
            failures = 1 if time.monotonic() - began > STABLE else failures + 1
            await asyncio.sleep(backoff(failures, base=self._settings.pause, cap=self._settings.longest_pause))

    async def _serve(self) -> None:
        """One connection, until it ends."""
        settings = self._settings
        try:
            async with asyncio.timeout(CONNECT_LIMIT):
                reader, writer = await self._dial()
        except (OSError, TimeoutError) as error:
            self._away(_unreachable(settings.socket, error))
            return
        plugin = Plugin(
            events=MASKS[self._mask], name=settings.name, index=settings.index, rules=settings.rules, witness=self
        )
        try:
            await converse(reader, writer, name=settings.name, index=settings.index, services=plugin.services())
        except NriError as error:
            fewer = self._fall_back(plugin)
            self._away(f"the device injector is not registered at the container runtime: {error}{fewer}")
        finally:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_LIMIT):
                    await writer.wait_closed()

    def _fall_back(self, plugin: Plugin) -> str:
        """Choose the events of the next attempt."""
        refused = plugin.configured and not plugin.synchronized
        before, self._mask = self._mask, min(self._mask + 1, len(MASKS) - 1) if refused else 0
        return " It may not know an event; fewer are asked for." if refused and self._mask != before else ""

    def _away(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("not registered", cause=problem)
        self.problem = problem
        self._metrics.registered(yes=False)

    # What the plugin tells.

    def synchronized(self) -> None:
        log.info(
            "registered", socket=str(self._settings.socket), plugin=f"{self._settings.index}-{self._settings.name}"
        )
        self.registrations += 1
        self.problem = None
        self.registered.set()
        self._metrics.registered(yes=True)

    def injected(self, pod: pb.PodSandbox, container: str, decision: Decision) -> None:
        self._metrics.injected(len(decision.add), there=len(decision.there))
        log.info(
            "devices", namespace=pod.namespace, pod=pod.name, container=container,
            injected=[device.asked.path for device in decision.add], there=list(decision.there),
        )  # fmt: skip

    def refused(self, pod: pb.PodSandbox, refused: Refused) -> None:
        self._metrics.refused(refused.reason)
        log.warning("refused", namespace=pod.namespace, pod=pod.name, reason=refused.reason, cause=refused.message)
        self._events.event(_reference(pod), reason=refused.reason, message=refused.message, warning=True)

    def bare(self, pod: pb.PodSandbox, container: str, paths: Iterable[str]) -> None:
        message = (
            f"container {container} runs without {', '.join(paths)}: it was made while no device injector was "
            "registered on the node. Delete the Pod, or let the container start again"
        )
        self._metrics.bare()
        log.warning("a container lacks devices", namespace=pod.namespace, pod=pod.name, cause=message)
        self._events.event(_reference(pod), reason="DevicesMissing", message=message, warning=True)

    def other(self, name: str, index: str, *, later: bool) -> None:
        if (name, index) in self._others:
            return
        self._others.add((name, index))
        message = (
            f"Another device injector, {name} with index {index}, serves this node; this one (index "
            f"{self._settings.index}) {'stands down for all Pods' if later else 'leaves alone what that one injected'}"
            "; it still refuses devices that are not on its allow-list."
        )
        log.warning("another injector", cause=message)
        self._metrics.other(name)
        self._events.event(self._node, reason="OtherDeviceInjector", message=message)


def _reference(pod: pb.PodSandbox) -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Pod", name=pod.name, namespace=pod.namespace, uid=pod.uid)


def _unreachable(socket: Path, error: OSError | TimeoutError) -> str:
    if isinstance(error, FileNotFoundError):
        return (
            f"{socket} does not exist: NRI is off (it is by default below containerd 2.0), or the container runtime "
            "does not run; switch NRI on in its configuration, or let --enable-nri write that"
        )
    return f"{socket} cannot be reached: {str(error) or 'no answer'}; does the container runtime run?"

"""The whole agent of a node, wired together.

Order of a start: lock, checkpoint, GPUs; then, once no other driver of our name is seen, the DRA socket, the
registration socket and the slice. Where an agent of another Pod has the lock, the sockets and the device injector come
first, so that kubelet and the runtime always have somebody to call; calls wait until that agent has handed over.
Order of a stop: the sockets go first, the lock last. Jobs and IMEX are not touched by either: IMEX lives in the
imex-host, channels in the containers.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from pathlib import Path

from interlace import __version__
from interlace.api.computedomain import DRIVER
from interlace.api.core import ObjectReference
from interlace.imex.control import HostLink
from interlace.kube.client import Client
from interlace.kube.config import Config
from interlace.kube.events import Recorder
from interlace.kube.log import get_logger
from interlace.kube.meters import Registry
from interlace.kube.metrics import Metrics as KubeMetrics
from interlace.kube.serving import Serving
from interlace.node.board import Board
from interlace.node.checkpoint import Checkpoint
from interlace.node.cliques import CliqueWatch
from interlace.node.errors import AgentError, StateError
from interlace.node.fabric import Fabric, judge, succeed, unreadable
from interlace.node.facts import FactsError, FactsSource
from interlace.node.health import health_service
from interlace.node.metrics import Metrics
from interlace.node.nri.injector import Injector
from interlace.node.nri.metrics import Metrics as NriMetrics
from interlace.node.nri.switch import switch_on
from interlace.node.offering import Offering
from interlace.node.outage import OutageWatch
from interlace.node.ownership import Ownership
from interlace.node.peers import PeersWatch
from interlace.node.plugin import Calls, Registration, dra_services
from interlace.node.prepare import Preparer
from interlace.node.report import Reporter
from interlace.node.rivals import refuse_rivals, remove_dead
from interlace.node.rpc import listen
from interlace.node.settings import AgentSettings
from interlace.node.slices import SlicePublisher, slice_name
from interlace.node.state import NodeState
from interlace.node.sweep import Sweeper, remove_orphans
from interlace.node.tenure import Tenure

CLEAR_WAIT = 15.0
"""How long the sockets wait for an API server that does not answer; kubelet needs them to unprepare."""
log = get_logger(__name__)


async def serve(settings: AgentSettings, *, config: Config, facts: FactsSource) -> None:
    """Run until cancelled. Raises an ``AgentError`` where the agent cannot, or must not, run on this node."""
    tenure = Tenure(settings.home, instance=settings.instance)
    ask = True
    try:
        while True:
            await _Agent(settings, config=config, facts=facts, tenure=tenure).run(ask=ask)
            # Handed over; the other one may be taken away again.
            ask = False
    except* AgentError as group:
        raise _first(group) from None


class _Agent:
    def __init__(self, settings: AgentSettings, *, config: Config, facts: FactsSource, tenure: Tenure) -> None:
        self._settings = settings
        self._facts = facts
        self._tenure = tenure
        self._registry = Registry()
        self._metrics = Metrics(self._registry, node=settings.node_name)
        self._client = Client(config, user_agent=f"interlace-agent/{__version__}", metrics=KubeMetrics(self._registry))
        self._events = Recorder(self._client, component="interlace-agent", host=settings.node_name)
        self._checkpoint = Checkpoint(settings.home, boot_id=_boot_id(settings.boot_id))
        self._link = HostLink(settings.imex_socket)
        self._state = NodeState(
            node=settings.node_name, slots=settings.max_nodes, link=self._link, checkpoint=self._checkpoint
        )
        self._board = Board(self._client, slice_name=slice_name(settings.node_name))
        self._reporter = Reporter(self._client, board=self._board)
        self._preparer = Preparer(
            settings,
            client=self._client,
            checkpoint=self._checkpoint,
            state=self._state,
            reporter=self._reporter,
            events=self._events,
        )
        self._cliques = CliqueWatch(self._client, namespace=settings.namespace, state=self._state)
        self._slices = SlicePublisher(
            self._client,
            node=settings.node_name,
            rival_timeout=settings.rival_timeout,
            ownership=Ownership(config, node=settings.node_name),
            on_published=self._published,
        )
        self._sweeper = Sweeper(
            settings,
            client=self._client,
            checkpoint=self._checkpoint,
            preparer=self._preparer,
            reporter=self._reporter,
        )
        self._peers = PeersWatch(settings, state=self._state, reporter=self._reporter)
        self._injector = (
            Injector(
                settings.injector,
                node=settings.node_name,
                events=self._events,
                metrics=NriMetrics(self._registry),
            )
            if settings.nri
            else None
        )
        self._calls = Calls(self._preparer, limit=settings.prepare_timeout)
        self._registration = Registration(settings.endpoint, on_status=self._state.poke, versions=settings.dra_versions)
        self._state.on_change(self._count)

    async def run(self, *, ask: bool) -> None:
        """Until cancelled, or until an agent of another Pod took over; with ``ask`` take over where one works."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._client)
            if self._settings.http_port >= 0:
                await stack.enter_async_context(self._serving())
            first = self._tenure.take()
            if first:
                asked = await stack.enter_async_context(self._tenure.held())
            await refuse_rivals(self._settings.registrar_dir, home=self._settings.home)
            tasks: list[asyncio.Task[None]] = []
            async with asyncio.TaskGroup() as group:
                if not first:
                    log.info("another agent of this node works", ask=ask)
                    if ask:
                        tasks += [group.create_task(part()) for part in (self._serve_kubelet, self._inject)]
                        await self._until_called()
                    await self._tenure.wait(ask=ask)
                    asked = await stack.enter_async_context(self._tenure.held())
                self._load()
                if not tasks:
                    tasks += [group.create_task(part()) for part in (self._serve_cleared, self._inject)]
                for part in (
                    self._events.run,
                    self._link.run,
                    self._reporter.run,
                    self._board.run,
                    self._cliques.run,
                    self._slices.run,
                    Offering(state=self._state, shelf=self._slices).run,
                    self._sweeper.run,
                    self._peers.run,
                    OutageWatch(state=self._state, reporter=self._reporter).run,
                    self._watch_fabric,
                ):
                    tasks.append(group.create_task(part()))
                self._calls.begun.set()
                await asked.wait()
                await self._calls.ended()
                for task in tasks:
                    task.cancel()
        log.info("handed over to another agent of this node")

    async def _until_called(self) -> None:
        """Wait until kubelet and the runtime know this agent beside the other, or have had time enough."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLEAR_WAIT):
                await self._registration.registered.wait()
                if self._injector is not None:
                    await self._injector.registered.wait()

    def _load(self) -> None:
        remove_dead((self._settings.home, self._settings.registrar_dir))
        loaded = self._checkpoint.load(cdi_root=self._settings.cdi_root)
        if loaded.remark:
            log.warning("checkpoint", remark=loaded.remark)
        if loaded.damaged:
            node = ObjectReference(api_version="v1", kind="Node", name=self._settings.node_name)
            self._events.event(node, reason="CheckpointDamaged", message=loaded.remark, warning=True)
        remove_orphans(self._checkpoint, self._settings)
        for held in self._state.prepared:
            # Until the GPUs are read; a job that runs needs its peers' addresses also where they cannot be.
            if held.injected and held.clique:
                self._cliques.follow(Fabric(clique=held.clique))
        self._count()

    async def _serve_cleared(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLEAR_WAIT):
                await self._slices.cleared.wait()
        await self._serve_kubelet()

    async def _serve_kubelet(self) -> None:
        endpoint, registration = self._settings.endpoint, self._settings.registration
        async with (
            listen(
                endpoint,
                [*dra_services(self._calls, self._metrics), health_service(self._state, after=self._calls.begun)],
            ),
            listen(registration, [self._registration.service]),
        ):
            log.info("waiting for kubelet", registration=str(registration), endpoint=str(endpoint))
            await asyncio.Event().wait()

    async def _inject(self) -> None:
        if self._injector is None:
            return
        if self._settings.enable_nri is not None:
            try:
                await switch_on(
                    self._settings.enable_nri, socket=self._settings.nri_socket, restart=self._settings.restart_runtime
                )
            except StateError as error:
                # Channels are prepared all the same; the agent is not ready, and says why.
                log.error("NRI could not be switched on", cause=str(error))  # noqa: TRY400
        await self._injector.run()

    async def _watch_fabric(self) -> None:
        """Read the GPUs again and again; one failed reading after a good one is not believed yet."""
        failures = 0
        while True:
            found = succeed(self._state.fabric, await self._read_fabric())
            failures = failures + 1 if found.reason == "FactsUnreadable" else 0
            if failures != 1 or not self._state.fabric.healthy:
                self._show(found)
            settled = found.settled and not failures
            await asyncio.sleep(self._settings.fabric_interval if settled else self._settings.fabric_interval_unsettled)

    async def _read_fabric(self) -> Fabric:
        try:
            return judge(await self._facts.read())
        except FactsError as error:
            return unreadable(str(error))
        except Exception as error:
            # Whatever a driver does, the agent stays: it reports.
            log.exception("reading the GPUs failed")
            return unreadable(f"Reading the GPUs failed: {type(error).__name__}: {error}.")

    def _show(self, fabric: Fabric) -> None:
        if fabric == self._state.fabric:
            return
        level = log.info if fabric.healthy else log.warning
        level("fabric", clique=fabric.clique, healthy=fabric.healthy, reason=fabric.reason, cause=fabric.message)
        self._state.fabric = fabric
        self._metrics.fabric(healthy=fabric.healthy)
        self._cliques.follow(fabric)
        self._slices.show(fabric)
        self._state.poke()

    def _published(self) -> None:
        self._state.poke()
        self._board.renew(self._slices.own, claims={held.claim.uid for held in self._checkpoint})

    def _count(self) -> None:
        self._metrics.prepared(sum(len(held.devices) for held in self._checkpoint if held.completed))

    def _ready(self) -> str | None:
        if not self._calls.begun.is_set():
            return "this agent starts, or waits until another agent of this node has handed over"
        if self._registration.problem is not None:
            return self._registration.problem
        if self._injector is not None and self._injector.problem is not None:
            return self._injector.problem
        if not self._slices.published:
            return "the ResourceSlice of this node is not published"
        foreign = self._slices.foreign
        return f"another driver named {DRIVER} keeps ResourceSlice {foreign[0].metadata.name}" if foreign else None

    def _serving(self) -> Serving:
        return Serving(
            host=self._settings.http_host,
            port=self._settings.http_port,
            ready=self._ready,
            metrics=self._registry.render,
        )


def _boot_id(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        log.warning("the boot id cannot be read, so a reboot will not be noticed", path=str(path), cause=str(error))
        return ""


def _first(group: BaseExceptionGroup[AgentError]) -> AgentError:
    """The first error of a group of groups."""
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found

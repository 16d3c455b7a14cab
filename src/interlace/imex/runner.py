"""Does what `supervisor` decides: one loop takes events in order, acts, saves and publishes.

Invariants: the model changes only in `_feed`, one event after the other; the answer to an action
is fed before any other event; state is published after it was saved, and only when it changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from interlace.imex import health, hosts, process, store
from interlace.imex.config import config_text, nodes_text
from interlace.imex.names import domain_hash
from interlace.imex.order import SENTINEL, Order, State
from interlace.imex.reasons import ImexError, Reason
from interlace.imex.supervisor import (
    Action,
    BecameReady,
    Event,
    Exited,
    Fault,
    Health,
    HostsFailed,
    Kill,
    Model,
    NotStarted,
    Reload,
    Resumed,
    Start,
    Started,
    Terminate,
    Tick,
    WriteHosts,
    describe,
    step,
    wake_at,
)
from interlace.imex.tail import Tail

SOCKET_PATIENCE = 5.0
"""Seconds that the command socket is looked for before nvidia-imex-ctl is asked anyway."""
SETTLE = 1.0
"""Seconds after READY, a reload or a change before connections are looked at."""
HEALTH_PAUSE = 3.0
DOUBT_PAUSE = 1.5
SPREAD = 0.5
"""Share by which these times are drawn out at random: a look asks every member, and members become READY together."""
EXIT_PATIENCE = 15.0
"""Seconds that the process gets to end when imex-host itself is told to."""
KEPT_FOLDERS = 4
_FOLDERS = "[0-9a-f]" * 10 + "-[0-9]*"

log = logging.getLogger(__name__)
child_log = logging.getLogger("interlace.imex.nvidia-imex")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things are, as this process sees them."""

    run_dir: Path
    driver_root: Path
    hosts_file: Path
    address: str
    """Own address; "" takes it from the order."""


@dataclass(slots=True, kw_only=True)
class _Child:
    """What belongs to the living process."""

    handle: process.Handle
    tail: Tail
    folder: Path
    env: dict[str, str]
    identity: process.Identity | None
    ready: asyncio.Task[None] | None = None


class Runner:
    """Owns the node's nvidia-imex while `run` runs."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._handlers: list[Callable[[State], None]] = []
        self._model = Model()
        self._state = State()
        self._record = store.Record()
        self._inbox: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._child: _Child | None = None
        self._group: asyncio.TaskGroup | None = None
        self._started_at = 0.0
        self.resumed = asyncio.Event()
        """Set once the state is that of what the last imex-host left behind."""
        self.start_seconds = 0.0
        """Seconds from the last start to READY."""
        self.reloads = 0

    @property
    def state(self) -> State:
        return self._state

    def on_state(self, handler: Callable[[State], None]) -> None:
        """Call ``handler`` with each new state; it must not block."""
        self._handlers.append(handler)

    def submit(self, event: Event) -> None:
        """Queue an event; called on the loop of `run`."""
        self._inbox.append(event)
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled. The process is then stopped cleanly: in a container it could not live on, and peers
        that are told end its exports in order. The wanted order stays stored.
        """
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._resume()
                self.resumed.set()
                group.create_task(self._follow_log())
                group.create_task(self._watch_health())
                while True:
                    await self._wait()
        finally:
            await self._end()

    # Events and actions

    async def _wait(self) -> None:
        self._wake.clear()
        while self._inbox:
            self._feed(self._inbox.popleft())
        due = wake_at(self._model)
        try:
            async with asyncio.timeout_at(due):
                await self._wake.wait()
        except TimeoutError:
            self._feed(Tick())

    def _feed(self, event: Event) -> None:
        now = asyncio.get_running_loop().time()
        events: deque[Event] = deque([event])
        while events:
            self._model, actions = step(self._model, events.popleft(), now=now)
            for action in actions:
                events.extend(self._act(action))
        self._save()
        state = describe(self._model)
        if state != self._state:
            if state.phase == "Idle":
                self._forget()
            log.info("state %s", _brief(state))
            self._state = state
            for handler in self._handlers:
                handler(state)
        self._changed.set()

    def _act(self, action: Action) -> Iterable[Event]:
        match action:
            case Start(order=order):
                yield self._start(order)
            case WriteHosts(order=order):
                try:
                    self._write_hosts(order)
                except ImexError as error:
                    log.warning("%s", error.message)
                    yield HostsFailed(Fault(reason=error.reason, message=error.message))
            case Reload():
                self.reloads += 1
                self._signal(signal.SIGUSR1)
            case Terminate():
                self._signal(signal.SIGTERM)
            case Kill():
                self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            log.info("%s to nvidia-imex, pid %d", number.name, self._child.handle.pid)
            self._child.handle.send(number)

    def _save(self) -> None:
        model, running = self._model, None
        if model.process is not None and self._child is not None and self._child.identity is not None:
            running = store.Running(
                identity=self._child.identity, order=model.process.order, reload_pending=model.reload_pending
            )
        record = store.Record(wanted=model.wanted, running=running, restarts=model.restarts)
        if record == self._record:
            return
        try:
            store.save(self._record_path, record)
        except OSError as error:
            log.warning("order not stored in %s: %s", self._record_path, error.strerror or error)
        else:
            self._record = record

    # Files and process

    @property
    def _record_path(self) -> Path:
        return self._places.run_dir / "order.json"

    def _folder(self, order: Order) -> Path:
        return self._places.run_dir / f"{domain_hash(order.domain)}-{order.index}"

    def _write_hosts(self, order: Order) -> bool:
        addresses = hosts.own_view(order, self._places.address)
        return hosts.rewrite(self._places.hosts_file, names=order.names, addresses=addresses)

    def _forget(self) -> None:
        """Nothing of a domain stays on a node that serves none; its log went to our own output line by line."""
        with contextlib.suppress(ImexError):
            hosts.rewrite(self._places.hosts_file, names=(), addresses=())
        self._remove_old_folders(kept=0)
        process.forget_libraries(self._places.run_dir)

    def _start(self, order: Order) -> Event:
        try:
            return Started(self._spawn(order))
        except ImexError as error:
            log.warning("nvidia-imex not started: %s", error.message)
            return NotStarted(Fault(reason=error.reason, message=error.message))
        except OSError as error:
            message = f"the files of the order cannot be written in {self._places.run_dir}: {error.strerror or error}"
            log.warning("nvidia-imex not started: %s", message)
            return NotStarted(Fault(reason=Reason.FILES_NOT_WRITTEN, message=message))

    def _spawn(self, order: Order) -> int:
        places, folder = self._places, self._folder(order)
        bind = places.address or order.addresses[order.index]
        if bind == SENTINEL:
            raise ImexError(Reason.ORDER_INVALID, f"own index {order.index} of domain {order.domain} has no address")
        binary = process.find_program(places.driver_root, process.DAEMON)
        process.find_program(places.driver_root, process.CONTROL)
        config = config_text(order, bind=bind, nodes_file=folder / "nodes.cfg", command_socket=folder / "cmd.sock")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_old_folders(folder, kept=KEPT_FOLDERS)
        (folder / "cmd.sock").unlink(missing_ok=True)
        store.replace_file(folder / "nodes.cfg", nodes_text(order).encode())
        store.replace_file(folder / "imex.cfg", config.encode())
        self._write_hosts(order)
        tail = Tail(folder / "imex.log", sink=child_log.info, from_end=True)
        env = process.environment(places.driver_root, places.run_dir)
        handle = process.spawn([binary, "-c", folder / "imex.cfg"], log=folder / "imex.log", env=env)
        log.info("nvidia-imex started for domain %s, index %d, pid %d", order.domain, order.index, handle.pid)
        identity = process.identify(handle.pid)
        self._hold(_Child(handle=handle, tail=tail, folder=folder, env=env, identity=identity))
        return handle.pid

    def _hold(self, child: _Child) -> None:
        self._child = child
        loop = asyncio.get_running_loop()
        self._started_at = loop.time()
        loop.add_reader(child.handle.fd, self._on_exit, child)
        if self._group is not None:
            child.ready = self._group.create_task(self._await_ready(child))

    def _on_exit(self, child: _Child) -> None:
        asyncio.get_running_loop().remove_reader(child.handle.fd)
        how = child.handle.close()
        child.tail.finish()
        if child.ready is not None:
            child.ready.cancel()
        with contextlib.suppress(OSError):
            (child.folder / "cmd.sock").unlink()
        self._child = None
        log.info("nvidia-imex ended, pid %d %s", child.handle.pid, how)
        self.submit(Exited(child.handle.pid, child.tail.cause(pid=child.handle.pid, how=how)))

    def _remove_old_folders(self, current: Path | None = None, *, kept: int) -> None:
        folders = [path for path in self._places.run_dir.glob(_FOLDERS) if path.is_dir() and path != current]
        folders.sort(key=lambda entry: entry.stat().st_mtime)
        for folder in folders[: max(0, len(folders) - kept)]:
            with contextlib.suppress(OSError):
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()

    async def _resume(self) -> None:
        """Take up the stored order; adopt its process if that still lives, and end every other one of ours."""
        self._record = record = store.load(self._record_path)
        running, child = record.running, None
        handle = process.adopt(running.identity) if running is not None else None
        folder = self._folder(running.order) if running is not None else self._places.run_dir
        if handle is not None and not (folder / "imex.cfg").exists():
            handle.close()
            handle = None
        if running is not None and handle is not None:
            tail = Tail(folder / "imex.log", sink=child_log.info, from_end=True)
            env = process.environment(self._places.driver_root, self._places.run_dir)
            child = _Child(handle=handle, tail=tail, folder=folder, env=env, identity=running.identity)
        await self._end_strays(child.handle.pid if child is not None else 0)
        pending = running is not None and running.reload_pending
        if running is not None and child is not None:
            log.info("nvidia-imex of domain %s adopted, pid %d", running.order.domain, child.handle.pid)
            try:
                pending |= self._write_hosts(running.order)
            except ImexError as error:
                log.warning("%s", error.message)
            self._hold(child)
        self._feed(
            Resumed(
                wanted=record.wanted,
                running=running.order if running is not None and child is not None else None,
                pid=child.handle.pid if child is not None else 0,
                reload_pending=pending,
                restarts=record.restarts,
            )
        )

    async def _end_strays(self, adopted: int) -> None:
        for pid in process.find_strays(self._places.run_dir):
            if pid == adopted:
                continue
            with contextlib.suppress(OSError):
                handle = process.Handle(pid, child=False)
                log.warning("ending nvidia-imex of ours that nothing is stored about, pid %d", pid)
                handle.send(signal.SIGKILL)
                await process.ended_within(handle.fd, seconds=5.0)
                handle.close()

    async def _end(self) -> None:
        child = self._child
        if child is None:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(child.handle.fd)
        child.handle.send(signal.SIGTERM)
        if not await process.ended_within(child.handle.fd, seconds=EXIT_PATIENCE):
            log.warning("nvidia-imex does not end on SIGTERM, killing it, pid %d", child.handle.pid)
            child.handle.send(signal.SIGKILL)
            await process.ended_within(child.handle.fd, seconds=5.0)
        child.handle.close()
        child.tail.finish()
        self._child = None
        self._model = Model(wanted=self._model.wanted, restarts=self._model.restarts)
        self._save()

    # Readiness, log and health

    def _control(self, child: _Child, *question: str) -> list[str | Path]:
        program = process.find_program(self._places.driver_root, process.CONTROL)
        return [program, "-c", child.folder / "imex.cfg", *question]

    async def _await_ready(self, child: _Child) -> None:
        """Look cheaply for the command socket, then ask until the answer is READY."""
        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + SOCKET_PATIENCE, 0.005
        while not (child.folder / "cmd.sock").exists() and loop.time() < give_up:
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, 0.05)
        pause = 0.05
        while True:
            try:
                answer = await health.ask(self._control(child, "-q"), env=child.env)
                if health.says_ready(answer):
                    self.start_seconds = loop.time() - self._started_at
                    self.submit(BecameReady(child.handle.pid))
                    return
            except (health.NoAnswerError, ImexError) as error:
                log.debug("not READY: %s", error)
            await asyncio.sleep(pause)
            pause = min(pause * 1.6, 2.0)

    async def _follow_log(self) -> None:
        pause = 0.05
        while True:
            child = self._child
            if child is None:
                self._changed.clear()
                await self._changed.wait()
                pause = 0.05
                continue
            try:
                pause = 0.05 if child.tail.read() else min(pause * 1.5, 1.0)
            except OSError as error:
                # Losing lines of the log is better than losing the process.
                log.warning("log of nvidia-imex: %s", error)
                pause = 1.0
            await asyncio.sleep(pause)

    async def _watch_health(self) -> None:
        judge = health.Judge()
        last: object = None
        while True:
            model, child = self._model, self._child
            current = _epoch(model)
            if current is None or child is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            if current != last:
                last = current
                judge.forget()
                await asyncio.sleep(_spread(SETTLE))
                continue
            verdict = await self._look(child, current[1], judge)
            if verdict is not None and _epoch(self._model) == current:
                self.submit(verdict)
            await asyncio.sleep(_spread(DOUBT_PAUSE if judge.doubtful else HEALTH_PAUSE))

    async def _look(self, child: _Child, order: Order, judge: health.Judge) -> Health | None:
        present = set(order.present) - {order.index}
        if not present:
            return Health("Connected")
        try:
            answer = await health.ask(self._control(child, "-N", "-j"), env=child.env)
            missing = health.read_table(answer, own=order.index, present=present)
        except (health.NoAnswerError, ImexError) as error:
            return Health("Unknown", (), Fault(reason=Reason.HEALTH_UNKNOWN, message=str(error)))
        return judge.judge(missing, names=order.names)


def _epoch(model: Model) -> tuple[int, Order, int] | None:
    """What a verdict belongs to; None while there is nothing to look at."""
    if model.process is None or model.process.ready_since is None or model.process.stop_asked:
        return None
    if model.reload_pending or model.hosts_due is not None:
        return None
    return model.process.pid, model.process.order, model.reloads


def _spread(seconds: float) -> float:
    return seconds * random.uniform(1.0, 1.0 + SPREAD)


def _brief(state: State) -> str:
    why = f", {state.reason}: {state.message}" if state.reason else ""
    return f"{state.phase} domain={state.domain or '-'} index={state.index} peers={state.peers}{why}"

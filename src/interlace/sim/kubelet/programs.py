"""Our own programs on a hollow node: what the machine offers them, and running them.

``equip`` writes what a real machine has (driver root with simulated ``nvidia-imex``,
``/proc/devices``, boot id); ``run`` starts a component the way its Pod says, in this process
or, for tests that kill, in one of its own. Either way the code is the one that runs in a
cluster; only paths and NVML are replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from interlace.sim.kubelet.container import ContainerRecord, translate
from interlace.sim.kubelet.process import end_processes

if TYPE_CHECKING:
    from interlace.sim.kubelet.node import HollowNode

PROC_DEVICES = """Character devices:
  1 mem
195 nvidia
234 nvidia-caps
235 nvidia-caps-imex-channels

Block devices:
  7 loop
"""
_DAEMON = "interlace-simulated/daemon"
"""Part of the command line of a simulated ``nvidia-imex``."""
_Settings = TypeVar("_Settings")


class ProgramFailedError(Exception):
    """A program of ours that ran as a process of its own ended with an error."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """How a component is started as a process of its own."""

    argv: tuple[str, ...]
    env: dict[str, str] | None = None
    """None: that of this process."""


class Foreign(Protocol):
    """Runs programs that are not ours, for measurements of another driver."""

    @property
    def commands(self) -> frozenset[str]:
        """First words of the commands that it runs."""
        ...

    async def run(self, record: ContainerRecord, *, node: HollowNode) -> None:
        """Run the container's program until it ends or is cancelled; nothing of it is left then."""
        ...

    async def execute(self, record: ContainerRecord, command: Sequence[str], *, limit: float) -> bool:
        """Run ``command`` in the container, as an exec probe does; whether it succeeded within ``limit`` seconds."""
        ...


class Programs:
    """Runs components for all nodes of one simulated cluster."""

    def __init__(
        self,
        *,
        imex_start: float = 0.05,
        separate: frozenset[str] = frozenset(),
        launch: Callable[[ContainerRecord, HollowNode], Command] | None = None,
        foreign: Foreign | None = None,
        on_boot: Callable[[HollowNode], None] = lambda _node: None,
    ) -> None:
        self.imex_start = imex_start
        """Seconds that the simulated ``nvidia-imex`` takes to be READY."""
        self.separate = separate
        self.launch = launch or launch_child
        """Makes the command of a component that runs separately; by default with simulated NVML."""
        self.foreign = foreign
        self.on_boot = on_boot
        """Called with each node that boots, before it does anything."""
        self.processes: dict[str, int] = {}
        """Pod name to process id, for components that run separately."""

    def equip(self, node: HollowNode) -> None:
        """Lay out the machine's files."""
        from interlace.sim.imex import install  # noqa: PLC0415  only machines with GPUs need it

        self.on_boot(node)
        root = node.tray.root
        (root / "proc/sys/kernel/random").mkdir(parents=True, exist_ok=True)
        (root / "proc/sys/kernel/random/boot_id").write_text(node.boot_id + "\n")
        (root / "proc/devices").write_text(PROC_DEVICES)
        hosts = root / "etc/hosts"
        if not hosts.exists():
            hosts.write_text(f"127.0.0.1\tlocalhost\n{node.tray.address}\t{node.tray.name}\n")
        if node.tray.gpus:
            install(root, hosts_file=hosts, faults=root / "etc/imex-faults.json", start_delay=self.imex_start)

    def runs(self, command: Sequence[str]) -> bool:
        """Whether a container with this command is really run; others are only recorded."""
        if tuple(command[:2]) == ("interlace", "serve"):
            return True
        return self.foreign is not None and bool(command) and command[0] in self.foreign.commands

    async def execute(self, record: ContainerRecord, command: Sequence[str], *, limit: float) -> bool:
        """An exec probe; ours have none."""
        return self.foreign is not None and await self.foreign.execute(record, command, limit=limit)

    async def run(self, record: ContainerRecord, *, node: HollowNode) -> None:
        """Run one component until it ends or is cancelled (SIGTERM; SIGKILL after the grace period)."""
        if not record.component and self.foreign is not None:
            await self.foreign.run(record, node=node)
            return
        try:
            if record.component in self.separate:
                await self._run_separately(record, node=node)
            else:
                await run_component(record, root=node.tray.root, clique=node.tray.clique, gpus=node.tray.gpus)
        finally:
            if record.component == "imex-host":
                # the kernel ends a container's other processes with its first one
                await end_processes(node.tray.root, program=_DAEMON)

    async def _run_separately(self, record: ContainerRecord, *, node: HollowNode) -> None:
        command = self.launch(record, node)
        log = node.tray.root / "var/log" / f"{record.component}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *command.argv, env=command.env, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out
            )
        self.processes[record.pod] = process.pid
        try:
            code = await process.wait()
        finally:
            self.processes.pop(record.pod, None)
            if process.returncode is None:
                await _end(process, grace=node.settings.stop_grace)
        if code != 0:
            message = f"{record.component} ended with status {code}, see {log}"
            raise ProgramFailedError(message)


def launch_child(record: ContainerRecord, node: HollowNode) -> Command:
    """The command of a component that runs as a process of its own; its last word is the file that says what to run."""
    root = node.tray.root
    spec = root / "run" / f"{record.pod}.json"
    spec.write_bytes(
        msgspec.json.encode(
            {"record": record, "root": str(root), "clique": node.tray.clique, "gpus": node.tray.gpus},
            enc_hook=str,
        )
    )
    return Command(argv=(sys.executable, "-m", "interlace.sim.kubelet.child", str(spec)))


async def _end(process: asyncio.subprocess.Process, *, grace: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def run_component(record: ContainerRecord, *, root: Path, clique: str, gpus: int) -> None:
    """Run the component of ``record`` in this process until it ends or is cancelled."""
    from interlace.kube.config import in_cluster  # noqa: PLC0415  one component needs not all of these

    argv = record.command[3:]
    match record.component:
        case "agent":
            from interlace.node import agent  # noqa: PLC0415
            from interlace.node.settings import AgentSettings  # noqa: PLC0415
            from interlace.sim.kubelet.facts import SimulatedFacts  # noqa: PLC0415

            settings = localize(AgentSettings.parse(argv, record.env), record, root=root)
            await agent.serve(settings, config=in_cluster(record.env), facts=SimulatedFacts(clique=clique, gpus=gpus))
        case "imex-host":
            from interlace.imex import host  # noqa: PLC0415

            await host.serve(localize(host.HostSettings.parse(argv, record.env), record, root=root))
        case "controller":
            from interlace.domains import controller  # noqa: PLC0415
            from interlace.domains.settings import ControllerSettings  # noqa: PLC0415

            await controller.serve(
                localize(ControllerSettings.parse(argv, record.env), record, root=root),
                config=in_cluster(record.env),
            )
        case unknown:
            message = f"interlace serve {unknown}: no such component"
            raise ProgramFailedError(message)


def localize(settings: _Settings, record: ContainerRecord, *, root: Path) -> _Settings:
    """``settings`` as they are without namespaces: paths of this computer, ports on the pod's own address.

    A path that no mount covers belongs to the container alone and moves below the machine's root too.
    """
    changes: dict[str, Any] = {}
    for field in settings.__struct_fields__:  # type: ignore[attr-defined]
        value = getattr(settings, field)
        if isinstance(value, Path) and value.is_absolute() and root not in value.parents:
            moved = translate(value, record.mounts)
            changes[field] = moved if moved != value else root / str(value).lstrip("/")
        elif field == "http_host":
            changes[field] = record.address
    return msgspec.structs.replace(settings, **changes)  # type: ignore[type-var]

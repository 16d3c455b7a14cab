"""Daemon pods of the known driver, really run: one box a container, exec probes inside.

Everything else of these pods (claims, CDI, status, deletion) is the hollow kubelet's. Cannot be tried without
the known driver's programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.domains.boxes import Box, start_box
from interlace.sim.kubelet.container import ContainerRecord

if TYPE_CHECKING:
    from interlace.sim.kubelet.node import HollowNode

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
GRACE = 30.0
"""Kubernetes' own."""


class DaemonPods:
    """Fits as ``foreign`` of the hollow nodes' programs."""

    def __init__(self, *, nsbox: Path, natives: Path, programs: Path, imex_start: float, names: Sequence[str]) -> None:
        self._nsbox = nsbox
        self._natives = natives
        """Folder of the IMEX stand-ins."""
        self._programs = programs
        self._imex_start = imex_start
        self.commands = frozenset(names)
        self.boxes: dict[str, Box] = {}
        """By name of the pod."""
        self.killed: list[str] = []
        """Pods whose program did not end within its grace period."""

    async def run(self, record: ContainerRecord, *, node: HollowNode) -> None:
        """One container until it ends or is cancelled."""
        folder = node.tray.root / "pods" / record.pod
        folder.mkdir(parents=True, exist_ok=True)
        hosts = folder / "hosts"
        hosts.write_text(f"127.0.0.1\tlocalhost\n{record.address}\t{record.pod}\n")
        env = self.environment(record.env)
        box = await start_box(
            self.localize(record.command),
            nsbox=self._nsbox,
            root=folder / "root",
            log=folder / "log",
            env=env,
            binds={
                "/etc/hosts": hosts,
                ACCOUNT: Path(record.env["INTERLACE_SERVICE_ACCOUNT_DIR"]),
                str(self._natives): self._natives,
                str(self._programs): self._programs,
                **record.mounts,
            },
        )
        self.boxes[record.pod] = box
        try:
            await box.ended()
        finally:
            del self.boxes[record.pod]
            if await box.stop(grace=GRACE):
                self.killed.append(record.pod)

    async def execute(self, record: ContainerRecord, command: Sequence[str], *, limit: float) -> bool:
        """An exec probe; False while the container does not run."""
        box = self.boxes.get(record.pod)
        return box is not None and await box.execute(self.localize(command), limit=limit)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The container's environment, with our stand-ins first on PATH."""
        return {
            **given,
            "PATH": f"{self._natives}:/usr/bin:/bin",
            "IMEX_FAKE_DELAY_MS": f"{1000 * self._imex_start:.0f}",
        }

    def localize(self, command: Sequence[str]) -> list[str]:
        """The command with its program where it lies here."""
        first = str(self._programs / command[0]) if command[0] in self.commands else command[0]
        return [first, *command[1:]]

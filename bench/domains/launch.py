"""Our components as they run in a cluster: the installed ``interlace serve …``, one process each.

The Pod's own command, arguments and environment, with its own service account token. Replaced are only
paths (there is no mount namespace: what a Pod mounts lies below the machine's folder) and listening
addresses (there is no network namespace either: each Pod has an address of its own on loopback).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.domains.natives import fabric_env, install_nvml
from interlace.sim.kubelet.container import ContainerRecord, translate
from interlace.sim.kubelet.node import HollowNode
from interlace.sim.kubelet.programs import Command
from testbed.process import leash

SEPARATE = frozenset({"agent", "imex-host", "controller"})


def localize_env(record: ContainerRecord, *, root: Path) -> dict[str, str]:
    """The container's environment with paths of this computer and listening addresses of the Pod."""
    env = {
        name: str(translate(Path(value), record.mounts)) if value.startswith("/") else value
        for name, value in record.env.items()
    }
    if "HTTP_ENDPOINT" in env:
        env["HTTP_ENDPOINT"] = f"{record.address}:{env['HTTP_ENDPOINT'].rpartition(':')[2]}"
    elif "HEALTHCHECK_PORT" in env and record.component == "agent":
        env["HTTP_ENDPOINT"] = f"{record.address}:{env['HEALTHCHECK_PORT']}"
    if record.component == "agent":
        env["ALT_PROC_DEVICES_PATH"] = str(root / "proc/devices")
    if record.component == "imex-host":
        env["HOSTS_PATH"] = str(root / "etc/hosts")
        env["INTERLACE_IMEX_RUN_DIR"] = str(Path(env["INTERLACE_IMEX_SOCKET"]).parent / "run")
    return env


class Launcher:
    """Makes the command of each component; fits as ``launch`` of the hollow nodes' programs."""

    def __init__(self, *, nvml: Path) -> None:
        self._nvml = nvml
        """The compiled stand-in."""

    def __call__(self, record: ContainerRecord, node: HollowNode) -> Command:
        """The installed command on a leash: it ends when this process does, however that ends."""
        tray = node.tray
        if record.component == "agent":
            install_nvml(self._nvml, driver_root=tray.root)
        program = Path(sys.executable).with_name("interlace")
        pidfile = tray.root / "run" / f"{record.pod}.pid"
        return Command(
            argv=tuple(leash([str(program), *record.command[1:]], pidfile=pidfile, owner=os.getpid())),
            env={
                "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
                **fabric_env(tray.clique, gpus=tray.gpus),
                **localize_env(record, root=tray.root),
            },
        )

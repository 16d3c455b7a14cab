"""Everything that a cluster holds, so that two listings can be compared: what was left behind?

Every kind in discovery except events (they expire by themselves an hour after they were
written), and on the machines CDI files, sockets and processes. Invariant: an entry is named
so that a person can find and remove it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from interlace.kube.client import Client
from interlace.kube.errors import ApiError
from interlace.kube.untyped import Discovery, untyped
from interlace.sim.kubelet.cdi import CDI_SUFFIXES
from interlace.sim.kubelet.fleet import Fleet
from interlace.sim.kubelet.process import find_processes


async def list_objects(client: Client) -> set[str]:
    """``kind namespace/name`` of every object of every kind that can be listed."""
    found: set[str] = set()
    for resource in await Discovery(client).listable():
        if resource.plural == "events":
            continue
        try:
            listing = await client.list(untyped(resource))
        except ApiError as error:
            if error.status in {403, 404, 405}:  # a kind that cannot be listed holds nothing of ours
                continue
            raise
        for item in listing.items:
            metadata = item["metadata"]
            where = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
            found.add(f"{resource.kind} {where}")
    return found


def list_machines(fleet: Fleet) -> set[str]:
    """CDI files, sockets and processes of all hollow nodes."""
    found: set[str] = set()
    for name, node in fleet.nodes.items():
        root = node.tray.root
        found |= {f"CDI file {name}:{path.name}" for path in node.cdi_root.glob("*") if path.suffix in CDI_SUFFIXES}
        found |= {f"socket {name}:/{path.relative_to(root)}" for path in _sockets(root)}
        for pid in find_processes(root):
            found.add(f"process {name}: {_command(pid, root)}")
    return found


def _sockets(root: Path) -> list[Path]:
    found = []
    for folder, _, files in os.walk(root):
        for file in files:
            path = Path(folder) / file
            try:
                if stat.S_ISSOCK(path.lstat().st_mode):
                    found.append(path)
            except FileNotFoundError:
                continue
    return found


def _command(pid: int, root: Path) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "(ended)"
    return raw.replace(b"\0", b" ").decode(errors="replace").replace(str(root), "").strip()

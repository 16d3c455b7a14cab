"""What there is on a node: everything that something of ours could leave behind, as names for people."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from testbed.box import hierarchies
from testbed.node import Node

FOLDERS = (
    "/var/lib/kubelet/plugins",
    "/var/lib/kubelet/plugins_registry",
    "/var/lib/kubelet/pods",
    "/run/cdi",
    "/run/interlace",
)
"""Where files of ours, or of Pods with our devices, could lie. No link among them: one would lead to our own root."""
CHECKPOINT = "/var/lib/kubelet/plugins/compute-domain.nvidia.com/checkpoint.json"
"""Of the agent."""
_IDENTITY = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")


def snapshot(node: Node) -> Counter[str]:
    """Cgroups, mounts, sockets, processes, and files below ``FOLDERS``; how many of each name."""
    return Counter(f"{node.name}: {entry}" for entry in _entries(node))


def identities(entries: Iterable[str]) -> set[str]:
    """Ids of Pods, sandboxes, containers and their networks that the entries of a snapshot name."""
    return {found for entry in entries for found in _IDENTITY.findall(entry)}


def container_id(pod: dict[str, Any]) -> str:
    """Of the Pod's first container; another one after a restart."""
    return str(pod["status"]["containerStatuses"][0]["containerID"])


def container_pid(pod: dict[str, Any]) -> int:
    """First process of the Pod's first container, as the machine counts."""
    identity = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if f"/{identity}" in (entry / "cgroup").read_text() and _is_first(entry):
                    return int(entry.name)
    raise AssertionError(f"container {identity} has no process")


def _is_first(entry: Path) -> bool:
    lines = (entry / "status").read_text().splitlines()
    return next(line for line in lines if line.startswith("NSpid:")).split()[-1] == "1"


def allowed_devices(pid: int) -> set[str]:
    """What the device cgroup of a process lets it use, ``c 1:3 rwm`` and the like; version 1 of cgroups."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "devices":
            (root,) = (root for root in hierarchies() if root.name == "devices")
            return set((root / group.lstrip("/") / "devices.list").read_text().splitlines())
    raise AssertionError("this machine has no device controller of cgroups version 1")


def _entries(node: Node) -> Iterator[str]:
    for root in hierarchies():
        top = root / node.box.cgroup
        for folder, _, _ in os.walk(top):
            yield f"cgroup {root.name}:/{Path(folder).relative_to(top)}"
    for line in Path(f"/proc/{node.box.init}/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        yield f"mount {before.split()[4]} ({after.split()[0]})"
    for pid in _processes(node):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if words:
                yield f"process {words}"
    for table in ("unix", "tcp", "tcp6"):
        for line in Path(f"/proc/{node.box.init}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if table == "unix" and len(fields) == 8 and fields[3] == "00010000":
                yield f"socket {fields[7]}"
            elif table != "unix" and fields[3] == "0A":
                yield f"socket {table} {fields[1]}"
    for folder in FOLDERS:
        yield from _files(node, folder)


def _files(node: Node, folder: str) -> Iterator[str]:
    root = node.box.path("/")
    assert node.box.path(folder).is_dir(), f"{folder} of {node.name} is no folder"
    for where, folders, names in os.walk(node.box.path(folder)):
        for name in (*folders, *names):
            path = Path(where) / name
            with contextlib.suppress(FileNotFoundError):
                kind = "socket" if stat.S_ISSOCK(path.lstat().st_mode) else "file"
                yield f"{kind} /{path.relative_to(root)}"


def read_checkpoint(node: Node) -> dict[str, Any]:
    """What the agent's checkpoint holds: ``boot_id`` and ``claims``."""
    body: dict[str, Any] = json.loads(node.box.path(CHECKPOINT).read_bytes())["body"]
    return body


def specs(node: Node) -> list[str]:
    """Names of all that lies in the CDI folder."""
    return [path.name for path in node.box.path("/run/cdi").iterdir()]


def memory(pid: int) -> float:
    """Resident memory of a process in MB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


def find_process(node: Node, part: str) -> int:
    """The process of the node with ``part`` in its command line, as the machine counts."""
    for pid in _processes(node):
        with contextlib.suppress(OSError):
            if part in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "):
                return pid
    raise AssertionError(f"no process of {node.name} has {part} in its command line")


def _processes(node: Node) -> list[int]:
    own = Path(f"/proc/{node.box.init}/ns/pid").readlink()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # A process of a container has a pid namespace of its own, below the box's: told by its mount of the box.
            with contextlib.suppress(OSError):
                if (entry / "ns/pid").readlink() == own or _inside(int(entry.name), node):
                    found.append(int(entry.name))
    return found


def _inside(pid: int, node: Node) -> bool:
    """Whether the process is in one of the node's cgroups."""
    return f"/{node.box.cgroup}/" in Path(f"/proc/{pid}/cgroup").read_text()

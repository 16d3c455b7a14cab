"""What a container runtime does with CDI device ids: find the specs and apply their edits.

Follows the CDI specification as far as drivers for GPUs use it: environment, device nodes
and mounts, at spec and at device level. An id that no spec defines is an error, as it is for
containerd.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml

CDI_SUFFIXES = frozenset({".json", ".yaml"})


class UnresolvableDeviceError(Exception):
    """A CDI id that no spec in the folder defines, or a spec that cannot be read."""


class ContainerEdits(msgspec.Struct, frozen=True):
    """What the container gets."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[str, ...] = ()
    """Paths in the container."""
    mounts: tuple[tuple[str, str], ...] = ()
    """(host path, container path)."""


def resolve(ids: Iterable[str], *, root: Path) -> ContainerEdits:
    """Edits of all ``ids`` from the specs below ``root``. Raises UnresolvableDeviceError."""
    wanted = list(ids)
    if not wanted:
        return ContainerEdits()
    specs = [_read(path) for path in sorted(root.glob("*")) if path.suffix in CDI_SUFFIXES]
    env: list[str] = []
    nodes: list[str] = []
    mounts: list[tuple[str, str]] = []
    for device_id in wanted:
        for edits in _edits(device_id, specs):
            env += edits.get("env", [])
            nodes += [node["path"] for node in edits.get("deviceNodes", [])]
            mounts += [(mount["hostPath"], mount["containerPath"]) for mount in edits.get("mounts", [])]
    return ContainerEdits(tuple(env), tuple(nodes), tuple(mounts))


def _edits(device_id: str, specs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kind, _, name = device_id.partition("=")
    for spec in specs:
        if spec.get("kind") != kind:
            continue
        for device in spec.get("devices", []):
            if device["name"] == name:
                return [spec.get("containerEdits", {}), device.get("containerEdits", {})]
    message = f"unresolvable CDI devices {device_id}"
    raise UnresolvableDeviceError(message)


def _read(path: Path) -> dict[str, Any]:
    try:
        spec = yaml.safe_load(path.read_bytes()) if path.suffix == ".yaml" else msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:  # removed by a driver between listing and reading
        return {}
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        message = f"CDI spec {path} cannot be read: {error}"
        raise UnresolvableDeviceError(message) from error
    return spec if isinstance(spec, dict) else {}

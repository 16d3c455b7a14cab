"""A simulated container: what it would see, and our own program if it runs one.

A command ``interlace serve …`` is really run, with the environment, the arguments and the
mounts that the Pod spec gives it; any other command is only recorded. Paths are translated
from the container's view to the machine's folder, since there is no mount namespace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:  # a child process that runs a component needs the record alone
    from interlace.sim.kubelet.cdi import ContainerEdits
    from interlace.sim.kubelet.podobject import BoundPod


class ContainerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one container of a pod got."""

    name: str
    pod: str
    image: str
    command: tuple[str, ...]
    env: dict[str, str]
    address: str = ""
    """Of the pod."""
    devices: tuple[str, ...] = ()
    """Device nodes from CDI, as the container would list them."""
    mounts: dict[str, Path] = {}
    """Path in the container to path on this computer."""

    @property
    def component(self) -> str:
        """``agent``, ``imex-host``, ``controller`` … if this is a program of ours, else empty."""
        return self.command[2] if self.command[:2] == ("interlace", "serve") and len(self.command) > 2 else ""


def describe(
    pod: BoundPod,
    container: Mapping[str, Any],
    *,
    edits: ContainerEdits,
    root: Path,
    pod_dir: Path,
    pod_ip: str,
    host_ip: str,
    extra_env: Mapping[str, str],
) -> ContainerRecord:
    """The record of ``container``; edits go only to containers that name a claim."""
    env = dict(extra_env)
    fields = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.podIP": pod_ip,
        "status.hostIP": host_ip,
    }
    for entry in container.get("env", []):
        source = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        env[entry["name"]] = fields.get(source, "") if source else _expand(entry.get("value", ""), env)
    uses_claim = bool(container.get("resources", {}).get("claims"))
    if uses_claim:
        env.update(item.partition("=")[::2] for item in edits.env)
    words = [*container.get("command", []), *container.get("args", [])]
    mounts = _mounts(pod, container, root=root, pod_dir=pod_dir)
    if uses_claim:
        # a program that runs without a mount namespace names its files by their path on this computer
        mounts |= {
            inside: Path(outside) if Path(outside).is_relative_to(root) else root / outside.lstrip("/")
            for outside, inside in edits.mounts
        }
    return ContainerRecord(
        name=container["name"],
        pod=pod.metadata.name,
        image=container.get("image", ""),
        command=tuple(_expand(word, env) for word in words),
        env=env,
        address=pod_ip,
        devices=edits.device_nodes if uses_claim else (),
        mounts=mounts,
    )


def translate(path: Path, mounts: Mapping[str, Path]) -> Path:
    """Where ``path`` of the container lies on this computer; itself if no mount covers it."""
    for inside in sorted(mounts, key=len, reverse=True):
        if path == Path(inside) or Path(inside) in path.parents:
            return mounts[inside] / path.relative_to(inside)
    return path


def _mounts(pod: BoundPod, container: Mapping[str, Any], *, root: Path, pod_dir: Path) -> dict[str, Path]:
    volumes = {volume["name"]: volume for volume in pod.spec.volumes}
    mounts: dict[str, Path] = {}
    for mount in container.get("volumeMounts", []):
        volume = volumes.get(mount["name"], {})
        if "hostPath" in volume:
            target = root / volume["hostPath"]["path"].lstrip("/")
        elif "emptyDir" in volume:
            target = pod_dir / "volumes" / mount["name"]
        else:
            continue
        if not target.exists():
            target.mkdir(parents=True)
        mounts[mount["mountPath"].rstrip("/") or "/"] = target
    return mounts


def _expand(text: str, env: Mapping[str, str]) -> str:
    """``$(NAME)`` as kubelet expands it; unknown names stay."""
    return re.sub(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)", lambda match: env.get(match[1], match[0]), text)

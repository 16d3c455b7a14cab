"""Volumes and mounts of a Pod, completed from the contract of the family.

A volume is what it holds, not what it is called: a hostPath of the same folder under another name is used, the
same name for something else is refused. A mount of a folder below counts if both sides have the same suffix
(``…/nvidia/lib64`` at ``…/nvidia/lib64``); a suffix on one side alone puts files where nobody looks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from interlace.fabric.family import Mount, PodContract, Volume
from interlace.pods.draft import Container, Draft, Json, mappings, rows
from interlace.pods.errors import InjectError

_SHM: Final = "/dev/shm"  # noqa: S108  the folder itself is the subject
_TMP: Final = "/tmp"  # noqa: S108  the folder itself is the subject
_LIBRARIES: Final = "/lib64"


class Place(msgspec.Struct, frozen=True):
    """A volume of the Pod that holds what the contract wants, or a folder ``below`` it."""

    name: str
    below: str = ""


def mount(draft: Draft, container: Container, mounts: Iterable[Mount], *, contract: PodContract, reason: str) -> None:
    """Give a container the mounts that it lacks, and the Pod the volumes behind them. Raises InjectError."""
    volumes = {volume.name: volume for volume in contract.volumes}
    for wanted in mounts:
        volume = volumes[wanted.volume]
        if _mounted(draft, container, wanted, volume):
            continue
        place = _place(draft, volume, reason=reason)
        entry: Json = {"name": place.name, "mountPath": wanted.path + place.below}
        if wanted.read_only:
            entry["readOnly"] = True
        path = f"{container.path}.volumeMounts"
        rows(container.fields, "volumeMounts", path).append(entry)
        draft.added(f"{path}[{entry['mountPath']}]", place.name, reason)


def _mounted(draft: Draft, container: Container, wanted: Mount, volume: Volume) -> bool:
    """Whether the container has it already. Raises InjectError if something else is in its place."""
    path = f"{container.path}.volumeMounts"
    sources = {str(each.get("name")): each for each in mappings(draft.spec, "volumes", "spec.volumes")}
    for index, entry in enumerate(mappings(container.fields, "volumeMounts", path)):
        at = str(entry.get("mountPath", "")).rstrip("/")
        source = sources.get(str(entry.get("name")))
        if source is None and entry.get("name") == volume.name and at == wanted.path:
            _place(draft, volume, reason="a mount names it, and nothing declared it")
            return True
        source = source or {}
        if wanted.path == _SHM and at == _SHM:
            return True  # whatever the user put there is the user's
        below = _suffix(source, volume)
        if below is None:
            above = _above(source, volume)
            if above and wanted.path == at + above:
                return True
            if at == wanted.path:
                raise InjectError(
                    f"{path}[{index}]",
                    f"{entry.get('name')} at {at}",
                    f"the fabric needs {_described(volume)} there, and this is {_held(source)}",
                    "mount it elsewhere",
                )
            continue
        if at == wanted.path + below:
            return True
        if not volume.host_path and at == _TMP:
            draft.warn(f"{path}[{index}]: the sockets hide the image's own {_TMP}; {wanted.path} is their folder now")
            continue
        if at == wanted.path or (below and at.startswith(wanted.path)):
            raise InjectError(
                f"{path}[{index}]",
                f"{_held(source)} at {at}",
                f"the files would not be under {wanted.path + below}, where they are looked for",
                f"mount it at {wanted.path + below}, or mount {_described(volume)} at {wanted.path}",
            )
    return False


def _place(draft: Draft, volume: Volume, *, reason: str) -> Place:
    """The volume's name in this Pod; added where there is none. Raises InjectError for a name that is taken."""
    path = "spec.volumes"
    for entry in mappings(draft.spec, "volumes", path):
        below = _suffix(entry, volume)
        if below == "" or (below and entry.get("name") == volume.name):
            _fill(draft, entry)
            return Place(str(entry.get("name")), below)
    for index, entry in enumerate(mappings(draft.spec, "volumes", path)):
        if entry.get("name") == volume.name:
            raise InjectError(
                f"{path}[{index}]",
                f"{volume.name}: {_held(entry)}",
                f"the fabric needs {_described(volume)} under this name",
                "give your volume another name",
            )
    rows(draft.spec, "volumes", path).append({"name": volume.name, **_source(volume)})
    draft.added(f"{path}[{volume.name}]", _described(volume), reason)
    return Place(volume.name)


def _fill(draft: Draft, entry: Json) -> None:
    """``emptyDir:`` with nothing behind it: the API fills it in, some clients refuse it."""
    if "emptyDir" in entry and entry["emptyDir"] is None:
        entry["emptyDir"] = {}
        draft.mended(f"spec.volumes[{entry.get('name')}].emptyDir", {}, "some clients refuse an empty value")


def _suffix(entry: Json, volume: Volume) -> str | None:
    """How far below the wanted folder the entry begins (libraries are one folder below); None: something else."""
    if volume.host_path:
        held = _host_path(entry)
        if held == volume.host_path:
            return ""
        return _LIBRARIES if held == volume.host_path + _LIBRARIES else None
    if "emptyDir" not in entry:
        return None
    source = entry["emptyDir"]
    memory = isinstance(source, dict) and source.get("medium") == "Memory"
    return "" if entry.get("name") == volume.name and memory == volume.memory else None


def _above(entry: Json, volume: Volume) -> str:
    """The suffix that leads from the entry down to the wanted folder of libraries; empty if it does not."""
    held = _host_path(entry)
    return _LIBRARIES if held and held + _LIBRARIES == volume.host_path else ""


def _host_path(entry: Json) -> str:
    source = entry.get("hostPath")
    return str(source.get("path", "")).rstrip("/") if isinstance(source, dict) else ""


def _source(volume: Volume) -> Json:
    if volume.host_path:
        return {"hostPath": {"path": volume.host_path}}
    if volume.memory:
        return {"emptyDir": {"medium": "Memory", **({"sizeLimit": volume.size} if volume.size else {})}}
    return {"emptyDir": {"sizeLimit": volume.size} if volume.size else {}}


def _described(volume: Volume) -> str:
    if volume.host_path:
        return f"hostPath {volume.host_path}"
    return "an emptyDir in memory" if volume.memory else "an emptyDir"


def _held(entry: Json) -> str:
    return ", ".join(_kinds(entry)) or "nothing"


def _kinds(entry: Json) -> Iterator[str]:
    for kind, source in entry.items():
        if kind == "name":
            continue
        path: Any = source.get("path") if isinstance(source, dict) else None
        yield f"{kind} {path}" if path else kind

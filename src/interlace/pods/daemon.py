"""Recognising the daemon of GPUDirect (RxDM) in a Pod that somebody wired by hand, and the tuple it belongs to.

A daemon is what it runs, not what it is called. Invariant: a daemon of no known tuple is refused by name; its
release decides which NCCL settings are right, so nothing can be said about the rest of the Pod.
"""

from __future__ import annotations

from typing import Final

from interlace.fabric.family import Family, SoftwareTuple, families
from interlace.pods.draft import Container, Draft, mapping, words
from interlace.pods.errors import InjectError
from interlace.pods.gpus import RESOURCE

_IMAGE: Final = "tcpgpudmarxd"
_PROGRAMS: Final = ("entrypoint_rxdm_container.sh", "/tcpgpudmarxd")


def find_daemon(draft: Draft, *, family: Family) -> Container | None:
    """The daemon of the Pod, if it has one. Raises InjectError for two, and for a name that something else bears."""
    name = family.pod.sidecar.name if family.pod.sidecar else ""
    found = [container for container in draft.containers() if is_daemon(container)]
    if len(found) > 1:
        raise InjectError(
            found[1].path,
            ", ".join(each.name for each in found),
            "one daemon serves all GPUs of a node, and two disturb each other",
            "leave one",
        )
    for container in draft.containers():
        if container.name == name and not is_daemon(container):
            raise InjectError(
                f"{container.path}.name",
                name,
                "this is the name of the sidecar for GPUDirect, and the container runs something else",
                "give it another name",
            )
    if found and not name:
        raise InjectError(
            found[0].path, found[0].name, f"family {family.id} has no such daemon", "remove it, or choose its family"
        )
    for daemon in found:
        _without_gpus(daemon)
    return found[0] if found else None


def _without_gpus(daemon: Container) -> None:
    resources = mapping(daemon.fields, "resources", f"{daemon.path}.resources")
    for part in ("limits", "requests"):
        if RESOURCE in mapping(resources, part, f"{daemon.path}.resources.{part}"):
            raise InjectError(
                f"{daemon.path}.resources.{part}[{RESOURCE}]",
                resources[part][RESOURCE],
                "the daemon gets the devices of all GPUs by annotation, and GPUs that it asks for are lost to the work",
                "remove it",
            )


def is_daemon(container: Container) -> bool:
    """Whether the container runs RxDM."""
    image = str(container.fields.get("image") or "")
    if _repository(image).startswith(_IMAGE):
        return True
    texts = words(container.fields, "command", f"{container.path}.command")
    texts = texts + words(container.fields, "args", f"{container.path}.args")
    return any(program in text for text in texts for program in _PROGRAMS)


def tuple_of(daemon: Container, *, family: Family) -> SoftwareTuple | None:
    """The tuple of a daemon's image; None for an image that is pinned by digest alone. Raises InjectError."""
    path = f"{daemon.path}.image"
    image = str(daemon.fields.get("image") or "")
    tag = _tag(image)
    if not tag and "@" in image:
        return None
    matches = [each for each in family.tuples if each.daemon and _same(each.daemon, image)]
    if matches:
        return matches[-1]
    known = ", ".join(_tag(each.daemon) for each in family.tuples if each.daemon)
    if tag in ("", "latest"):
        raise InjectError(
            path, image, "without a release nobody knows which NCCL settings it needs", f"write a release: {known}"
        )
    for other in families():
        if any(each.daemon and _same(each.daemon, image) for each in other.tuples):
            raise InjectError(
                path, image, f"it is the daemon of family {other.id}, not of {family.id}", "change one of them"
            )
    raise InjectError(
        path,
        image,
        f"it belongs to no known software tuple of family {family.id}",
        f"use one of the releases {known}",
    )


def _same(ours: str, theirs: str) -> bool:
    """Mirrors have other registries; name and release say what it is."""
    return _repository(ours) == _repository(theirs) and _tag(ours) == _tag(theirs)


def _repository(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]

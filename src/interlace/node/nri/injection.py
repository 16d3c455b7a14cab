"""Which devices a container gets: decided from the Pod's annotations, the allow-list and the node's devices.

Pure but for lstat. Invariants: a container gets all the devices that it asks for, or it is refused; what it does
not ask for it never gets from here; a device that it has already, from another injector before this one or from the
runtime itself, is left alone, since the runtime refuses a device that two plugins inject.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from interlace.fabric.devices import PREFIX, AllowList, Device, DevicesError, read
from interlace.node.nri.errors import Reason, Refused
from interlace.node.nri.hostdevices import HostDevice, look

NODE_RESOURCE: Final = "devices.noderesource.dev"
"""Annotation of the NRI project's own injector: with /container.<name>, else /pod, else alone."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a node's injector may do."""

    allowed: AllowList
    node_resource: bool = False
    """Whether the annotations of the NRI project are read too."""
    dev: Path = Path("/dev")
    """Where the host's /dev is mounted."""


class Injected(msgspec.Struct, frozen=True):
    """A device to add: the node's, at ``asked.path``; mode and owner of ``asked`` where they are not 0."""

    asked: Device
    host: HostDevice


Present = Mapping[str, tuple[str, int, int]]
"""Devices that a container has already: path to kind, major and minor."""


class Decision(msgspec.Struct, frozen=True):
    """The devices to add, and the paths that are there already."""

    add: tuple[Injected, ...] = ()
    there: tuple[str, ...] = ()


def decide(annotations: Mapping[str, str], *, container: str, present: Present, rules: Rules) -> Decision:
    """What to do for one container. Raises ``Refused``."""
    wanted: dict[str, Injected] = {}
    for key, text, strict in _sources(annotations, container=container, rules=rules):
        try:
            for device in _devices(text, strict=strict, rules=rules):
                wanted.setdefault(device.asked.path, device)
        except Refused as refused:
            message = f"container {container}: metadata.annotations[{key}]: {refused.message}"
            raise Refused(refused.reason, message) from None
    there = tuple(path for path, device in wanted.items() if present.get(path) == _identity(device.host))
    return Decision(tuple(device for path, device in wanted.items() if path not in there), there)


def asked(annotations: Mapping[str, str], *, container: str, rules: Rules) -> frozenset[str]:
    """Paths that a container asks for; those of an annotation that cannot be read are left out."""
    paths: set[str] = set()
    for _, text, _ in _sources(annotations, container=container, rules=rules):
        try:
            paths |= {device.path for device in read(text).devices}
        except DevicesError:
            continue
    return frozenset(paths)


def _identity(host: HostDevice) -> tuple[str, int, int]:
    return host.kind, host.major, host.minor


def _sources(annotations: Mapping[str, str], *, container: str, rules: Rules) -> Iterator[tuple[str, str, bool]]:
    """Key and text of the annotations that count, and whether their type and numbers have to be given."""
    key = PREFIX + container
    if key in annotations:
        yield key, annotations[key], False
    if not rules.node_resource:
        return
    for key in (f"{NODE_RESOURCE}/container.{container}", f"{NODE_RESOURCE}/pod", NODE_RESOURCE):
        if key in annotations:
            yield key, annotations[key], True
            return


def _devices(text: str, *, strict: bool, rules: Rules) -> Iterator[Injected]:
    try:
        reading = read(text)
    except DevicesError as error:
        raise Refused(Reason.BAD_ANNOTATION, str(error)) from None
    for device in reading.devices:
        if device.path not in rules.allowed:
            allowed = ", ".join(rules.allowed.patterns)
            raise Refused(
                Reason.NOT_ALLOWED,
                f"{device.path} may not be injected on this node; allowed are {allowed} (* is a number). Leave it "
                "out, or have it added to the allow-list of the agent (--allow-device)",
            )
        host = look(device.path, dev=rules.dev)
        if strict and (device.type.lower(), device.major, device.minor) != _identity(host):
            raise Refused(
                Reason.DIFFERENT_DEVICE,
                f"{device.path} is {host.kind} {host.major}:{host.minor} on the node, the annotation says "
                f"{device.type or 'no type'} {device.major}:{device.minor}; write the node's",
            )
        yield Injected(device, host)

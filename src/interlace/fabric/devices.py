"""The annotation ``devices.gke.io/container.<name>``: host devices that a container asks for, and those it may have.

One reader for whoever admits Pods and for whoever injects devices, so that the two cannot disagree. It reads
what Google's device injector reads (YAML 1.1: octal ``0660``, keys in any case, unknown keys ignored, the first
of equal paths wins). Invariant: a text that another YAML reader could read otherwise is an error, never a guess;
so a list that passes here names the same devices to every injector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

PREFIX: Final = "devices.gke.io/container."
"""Annotation keys: this and the name of a container (init and ephemeral ones included)."""
LONGEST: Final = 8192
"""Characters of one annotation; the list of eight GPUs takes 300."""
ALLOWED: Final = (
    "/dev/nvidia*",
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/dmabuf_import_helper",
)
"""Paths that GPUDirect sidecars need; ``*`` stands for a number."""

_TEXT: Final = re.compile(r"(?:[ -~\n]|\r\n)*\Z")
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_PATH: Final = re.compile(r"/dev(?:/[A-Za-z0-9_.:+@=-]+)+\Z")
_DECIMAL: Final = re.compile(r"(?:0|[1-9][0-9]*)\Z")
_OCTAL: Final = re.compile(r"0[0-7]+\Z")
_NULLS: Final = ("", "~", "null", "Null", "NULL")
_LIMITS: Final = {"major": 2**63, "minor": 2**63, "file_mode": 2**32, "uid": 2**32, "gid": 2**32}
_PATTERN: Final = re.compile(r"/dev(?:/[A-Za-z0-9_.:+@=*-]+)+\Z")


class DevicesError(ValueError):
    """The annotation cannot be read, or readers would differ about it; the text says where and what to write."""


class Device(msgspec.Struct, frozen=True):
    """One entry. Zero means that the annotation does not say: the injector sends only what is not zero.

    ``type``, ``major`` and ``minor`` are what the annotation claims; injectors take them from the node.
    """

    path: str
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int = 0
    uid: int = 0
    gid: int = 0


class Reading(msgspec.Struct, frozen=True):
    """What a text says."""

    devices: tuple[Device, ...] = ()
    ignored: tuple[str, ...] = ()
    """Keys that no injector knows, as they were written; ``fileMode`` is one."""


class AllowList(msgspec.Struct, frozen=True):
    """Which paths a Pod may ask for; made by ``allow``."""

    patterns: tuple[str, ...]
    matcher: str

    def __contains__(self, path: str) -> bool:
        return re.fullmatch(self.matcher, path) is not None


def allow(more: Iterable[str] = (), *, base: Iterable[str] = ALLOWED) -> AllowList:
    """The list of ``base`` and ``more``: paths below /dev in which ``*`` stands for a number.

    Raises ``DevicesError`` for anything else.
    """
    patterns = tuple(dict.fromkeys((*base, *more)))
    for pattern in patterns:
        if not _PATTERN.match(pattern) or {".", ".."} & set(pattern.split("/")):
            raise DevicesError(f"{pattern!r} is no device path: write /dev/<name>, with * for a number")
    # Four digits at most, and no leading zero: /dev/nvidia007 is no device.
    return AllowList(patterns, "|".join(re.escape(p).replace(r"\*", "(?:0|[1-9][0-9]{0,3})") for p in patterns))


def annotated(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations of a Pod that ask for devices: name of the container to text."""
    return {key.removeprefix(PREFIX): text for key, text in annotations.items() if key.startswith(PREFIX)}


# All Pods of a job bear the same text, and PyYAML takes 2 ms for it.
@lru_cache(maxsize=64)
def read(text: str) -> Reading:
    """The devices of one annotation, each path once. Raises ``DevicesError``."""
    if len(text) > LONGEST:
        raise DevicesError(f"it has {len(text)} characters; at most {LONGEST} are read")
    if not _TEXT.match(text):
        odd = next(c for c in text if not _TEXT.match(c))
        raise DevicesError(f"it holds the character U+{ord(odd):04X}, which YAML readers treat differently; use ASCII")
    devices: dict[str, Device] = {}
    ignored: dict[str, None] = {}
    for number, entry in enumerate(_entries(text), start=1):
        where = f"entry {number}"
        fields = _fields(entry, where=where)
        ignored |= {key: None for key in entry if key.lower() not in Device.__struct_fields__}
        device = Device(**fields)
        if not _PATH.match(device.path) or {".", ".."} & set(device.path.split("/")):
            raise DevicesError(f"{where}: path {device.path!r} is no path of a device; write it as /dev/<name>")
        devices.setdefault(device.path, device)
    return Reading(tuple(devices.values()), tuple(ignored))


_Scalar = tuple[str, bool]
"""Text of a scalar, and whether it stood without quotes."""


def _fields(entry: dict[str, _Scalar], *, where: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, (value, plain) in entry.items():
        name = key.lower()
        if plain and value in _NULLS:
            continue
        if name in ("path", "type"):
            fields[name] = value
        elif name in _LIMITS:
            fields[name] = _number(value, plain=plain, where=f"{where}: {key}", below=_LIMITS[name])
    if "path" not in fields:
        raise DevicesError(f"{where}: path is missing; write path: /dev/<name>")
    return fields


def _number(text: str, *, plain: bool, where: str, below: int) -> int:
    if plain and _DECIMAL.match(text):
        number = int(text)
    elif plain and _OCTAL.match(text):
        number = int(text, 8)
    else:
        raise DevicesError(
            f"{where} {text!r} is no number to every reader; write decimal digits, or octal ones as 0660"
        )
    if number >= below:
        raise DevicesError(f"{where} {text} is too large; it must be below {below}")
    return number


def _entries(text: str) -> list[dict[str, _Scalar]]:
    """The list of flat mappings that the text is, keys as they were written."""
    import yaml  # noqa: PLC0415  an agent that meets no annotation does without the 2 MB

    events = _plain(yaml.parse(text, Loader=yaml.SafeLoader), yaml)
    try:
        first = next(events, None)
        if first is None or (isinstance(first, yaml.ScalarEvent) and first.implicit[0] and first.value in _NULLS):
            _end(events)
            return []
        if not isinstance(first, yaml.SequenceStartEvent):
            raise DevicesError("it is no list; write - path: /dev/<name>")
        found: list[dict[str, _Scalar]] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            if not isinstance(event, yaml.MappingStartEvent):
                raise DevicesError(f"entry {len(found) + 1} is no mapping; write - path: /dev/<name>")
            found.append(_mapping(events, yaml, where=f"entry {len(found) + 1}"))
        _end(events)
    except yaml.YAMLError as error:
        raise DevicesError(f"it is no YAML: {' '.join(str(error).split())}") from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, DevicesError):
            raise
        raise DevicesError(f"it is no YAML: {error}") from None  # an escape beyond Unicode
    return found


def _mapping(events: Iterator[Any], yaml: Any, *, where: str) -> dict[str, _Scalar]:
    entry: dict[str, _Scalar] = {}
    seen: set[str] = set()
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        if not isinstance(event, yaml.ScalarEvent) or not _KEY.match(event.value):
            shown = repr(event.value) if isinstance(event, yaml.ScalarEvent) else "that is no word"
            raise DevicesError(f"{where}: a key {shown} is read differently by YAML readers; use path, file_mode, …")
        key = str(event.value)
        if key.lower() in seen:
            raise DevicesError(
                f"{where}: {key} is there twice (case does not count), and readers differ; write it once"
            )
        seen.add(key.lower())
        value = next(events)
        if not isinstance(value, yaml.ScalarEvent):
            raise DevicesError(f"{where}: {key} is no single value; write {key}: VALUE")
        entry[key] = (str(value.value), bool(value.implicit[0]))
    return entry


def _plain(events: Iterator[Any], yaml: Any) -> Iterator[Any]:
    """The events of the one document, none of which has an anchor, alias, tag or directive."""
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1 or event.version or event.tags:
                raise DevicesError("it has several documents or a directive, which readers treat differently")
        elif isinstance(event, yaml.NodeEvent):
            if event.anchor is not None:
                raise DevicesError(f"it has the anchor or alias {event.anchor!r}; write each entry out")
            if getattr(event, "tag", None) is not None:
                raise DevicesError(f"it has the tag {event.tag!r}; write values without tags")
            yield event
        elif isinstance(event, yaml.CollectionEndEvent):
            yield event


def _end(events: Iterator[Any]) -> None:
    """Read on to the end of the text, which may hold a second document."""
    for _ in events:
        raise DevicesError("there is more behind the list")

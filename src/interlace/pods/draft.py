"""A Pod while it is being changed: a copy of plain JSON objects, and the account of what was done to it.

Invariant: nothing that was there is overwritten without an entry in ``changes``; a field of the wrong type is an
``InjectError``, never a crash. Used inside one call of ``inject`` and not shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from interlace.pods.errors import InjectError

Json = dict[str, Any]

_LISTS: Final = ("initContainers", "containers")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was done. ``mended``: a value that was there could not have worked and is another now."""

    path: str
    action: Literal["added", "completed", "mended"]
    value: Any
    reason: str


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container of the draft: ``fields`` is the object inside it, ``path`` where that stands."""

    path: str
    name: str
    init: bool
    fields: Json

    @property
    def native_sidecar(self) -> bool:
        """An init container that runs as long as the Pod."""
        return self.init and self.fields.get("restartPolicy") == "Always"


class Draft:
    """See the module. ``pod`` is the copy; ``changes`` and ``warnings`` grow."""

    def __init__(self, pod: Mapping[str, Any]) -> None:
        self.pod: Json = {key: copied(value) for key, value in pod.items()}
        self.changes: list[Change] = []
        self.warnings: list[str] = []

    def added(self, path: str, value: Any, reason: str) -> None:
        """Account for something new."""
        self.changes.append(Change(path=path, action="added", value=value, reason=reason))

    def completed(self, path: str, value: Any, reason: str) -> None:
        """Account for something that was there in part."""
        self.changes.append(Change(path=path, action="completed", value=value, reason=reason))

    def mended(self, path: str, value: Any, reason: str) -> None:
        """Account for a value that was wrong by a known fault."""
        self.changes.append(Change(path=path, action="mended", value=value, reason=reason))

    def warn(self, sentence: str) -> None:
        """Say something once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    @property
    def spec(self) -> Json:
        """``spec`` of the Pod. Raises InjectError if it has none."""
        spec = self.pod.get("spec")
        if not isinstance(spec, dict):
            raise InjectError("spec", spec, "a Pod has a spec with containers", "write one")
        return spec

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations, for reading; ``annotate`` writes."""
        return strings(mapping(self.pod, "metadata", "metadata"), "annotations", "metadata.annotations")

    @property
    def labels(self) -> dict[str, str]:
        """The labels, for reading."""
        return strings(mapping(self.pod, "metadata", "metadata"), "labels", "metadata.labels")

    def annotate(self, key: str, value: str, reason: str, *, section: str = "annotations") -> None:
        """Set an annotation (or a label, by ``section``)."""
        into = room(room(self.pod, "metadata", "metadata"), section, f"metadata.{section}")
        path = f"metadata.{section}[{key}]"
        (self.completed if key in into else self.added)(path, value, reason)
        into[key] = value

    def containers(self) -> Iterator[Container]:
        """Init containers, then containers. Raises InjectError for what is none."""
        for field in _LISTS:
            for index, fields in enumerate(sequence(self.spec, field, f"spec.{field}")):
                path = f"spec.{field}[{index}]"
                if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
                    raise InjectError(path, fields, "a container is a mapping with a name", "give it a name")
                yield Container(path=path, name=fields["name"], init=field == "initContainers", fields=fields)


def copied(value: Any) -> Any:
    """A copy of plain JSON objects, several times as fast as ``copy.deepcopy``."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [copied(each) for each in value]
    return value


def mapping(parent: Json, key: str, path: str) -> Json:
    """The mapping under ``key``; an empty one, not put into ``parent``, where there is none."""
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InjectError(path, value, "this must be a mapping", "write it as key: value")
    return value


def sequence(parent: Json, key: str, path: str) -> list[Any]:
    """The list under ``key``; an empty one, not put into ``parent``, where there is none."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InjectError(path, value, "this must be a list", "write each entry behind a dash")
    return value


def mappings(parent: Json, key: str, path: str) -> list[Json]:
    """The list of mappings under ``key``."""
    found = sequence(parent, key, path)
    for index, entry in enumerate(found):
        if not isinstance(entry, dict):
            raise InjectError(f"{path}[{index}]", entry, "this must be a mapping", "write it as key: value")
    return found


def words(parent: Json, key: str, path: str) -> list[str]:
    """The list of strings under ``key``."""
    found = sequence(parent, key, path)
    for index, entry in enumerate(found):
        if not isinstance(entry, str):
            raise InjectError(f"{path}[{index}]", entry, "this must be a string", "put it in quotes")
    return found


def strings(parent: Json, key: str, path: str) -> dict[str, str]:
    """The mapping of strings under ``key``."""
    found = mapping(parent, key, path)
    for name, value in found.items():
        if not isinstance(value, str):
            raise InjectError(f"{path}[{name}]", value, "this must be a string", "put the value in quotes")
    return found


def room(parent: Json, key: str, path: str) -> Json:
    """The mapping under ``key``, put there if it is missing."""
    if not mapping(parent, key, path):
        parent[key] = {}
    found: Json = parent[key]
    return found


def rows(parent: Json, key: str, path: str) -> list[Json]:
    """The list of mappings under ``key``, put there if it is missing."""
    if not mappings(parent, key, path):
        parent[key] = []
    found: list[Json] = parent[key]
    return found

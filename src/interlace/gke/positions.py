"""YAML as plain values, with the place of each: line and column, by JSON pointer.

Invariant: what a reader of the file would not expect is refused instead of guessed: two keys of the same name, tags,
keys that are no text, more than one document, values nested without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlace.gke.errors import SpecError
from interlace.rules.pointer import pointer as join

LONGEST: Final = 1 << 20
"""Bytes of a cluster file; a person writes a hundredth of that."""

_DEEPEST: Final = 30
_MOST: Final = 20_000
"""Values, counted with those that aliases repeat."""


class Place(msgspec.Struct, frozen=True, order=True):
    """Line and column, both counted from 1."""

    line: int
    column: int


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A document. ``keys``: where the key of a member stands; ``values``: where its value begins."""

    value: Any
    keys: Mapping[str, Place]
    values: Mapping[str, Place]

    def place(self, pointer: str, *, key: bool = False) -> Place:
        """Where a pointer leads; what is not there is at the nearest thing around it."""
        if key and pointer in self.keys:
            return self.keys[pointer]
        while pointer not in self.values and pointer:
            pointer = pointer.rpartition("/")[0]
        if not pointer:
            return self.values.get("", Place(1, 1))
        value = self.values[pointer]
        name = self.keys.get(pointer)
        # A block begins below its key; the key is what a reader looks for.
        return name if name is not None and value.line != name.line else value


def locate(text: str) -> Located:
    """Read one YAML (or JSON) document. Raises SpecError with line and column."""
    import yaml  # noqa: PLC0415  verbs that read no file start without it

    if len(text) > LONGEST:
        raise SpecError("the file is too long", cause=f"it has more than {LONGEST} characters")
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if "single document" in (error.context or ""):
            raise SpecError(
                "a second document begins here",
                line=mark.line + 1 if mark else 1,
                column=mark.column + 1 if mark else 1,
                cause="a cluster file describes one cluster",
                remedy="put each document into a file of its own",
            ) from None
        raise SpecError(
            f"this is no YAML: {error.problem or error.context}",
            line=mark.line + 1 if mark else 1,
            column=mark.column + 1 if mark else 1,
            remedy="check indentation, quotes and colons there",
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        said = str(error).splitlines() or [""]
        raise SpecError("this is no YAML text", line=1, column=1, cause=said[0]) from None
    if node is None:
        raise SpecError("the file is empty", line=1, column=1, remedy="interlace gke init writes a start")
    reader = _Reader()
    value = reader.read(node, at="", depth=0)
    return Located(value=value, keys=reader.keys, values=reader.values)


class _Reader:
    """Walks the nodes of a document."""

    def __init__(self) -> None:
        import yaml  # noqa: PLC0415

        self.keys: dict[str, Place] = {}
        self.values: dict[str, Place] = {}
        self._yaml = yaml
        self._scalars = yaml.SafeLoader("")
        self._count = 0

    def read(self, node: Any, *, at: str, depth: int) -> Any:
        place = _place(node)
        self._count += 1
        if depth > _DEEPEST or self._count > _MOST:
            raise _wrong("values are nested too deep, or repeated too often", place, at)
        self.values[at] = place
        if isinstance(node, self._yaml.MappingNode):
            return self._mapping(node, at=at, depth=depth)
        if isinstance(node, self._yaml.SequenceNode):
            return [self.read(each, at=at + join(index), depth=depth + 1) for index, each in enumerate(node.value)]
        return self._scalar(node, at=at)

    def _mapping(self, node: Any, *, at: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            place = _place(key)
            if not isinstance(key, self._yaml.ScalarNode):
                raise _wrong("a key must be text", place, at)
            name = str(key.value)
            if name == "<<":
                raise _wrong("merge keys are not taken; write the values out", place, at)
            if name in found:
                first = self.keys[at + join(name)]
                raise _wrong(f"the key {name!r} is here for the second time; it was on line {first.line}", place, at)
            self.keys[at + join(name)] = place
            found[name] = self.read(value, at=at + join(name), depth=depth + 1)
        return found

    def _scalar(self, node: Any, *, at: str) -> Any:
        if node.tag in {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:str"}:
            return str(node.value)
        try:
            return self._scalars.construct_object(node)
        except (self._yaml.YAMLError, ValueError):
            raise _wrong(f"{node.tag} is not taken here", _place(node), at) from None


def _place(node: Any) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


def _wrong(what: str, place: Place, pointer: str) -> SpecError:
    return SpecError(what, line=place.line, column=place.column, pointer=pointer)

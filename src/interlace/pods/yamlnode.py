"""One YAML document as values, and where in the text each of them stands.

Values are read as Kubernetes reads them (YAML 1.1 without times: ``yes`` is true, ``0660`` is octal). Invariant: a
document is read event by event with a bound on depth and on what its aliases expand to, so no text can take more
time or memory than its length allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import yaml

DEPTH: Final = 64
"""A Pod template inside a CRD's schema is 20 deep."""
NODES: Final = 30_000
"""Values of one document, aliases written out. The longest real manifests have some thousand."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE: Final = frozenset(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"))
_INT: Final = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[1-9][0-9_]*|0)\Z")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?\Z")
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
_TAGS: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
_OTHER: Final = frozenset("+-.0123456789~nNyYtTfFoO")
"""How a plain scalar begins that may be more than text."""

Kind = Literal["scalar", "mapping", "sequence", "alias"]


class YamlError(ValueError):
    """The text is no document that can be read; ``line`` counts from 0 within it.

    ``remedy``: what to write instead, where the text is YAML and still too much.
    """

    def __init__(self, sentence: str, line: int = 0, *, remedy: str = "") -> None:
        self.line = line
        self.remedy = remedy
        super().__init__(sentence)


@dataclass(slots=True)
class Node:
    """A value in the text: characters ``start`` to ``end``, ``column`` of its first one."""

    kind: Kind
    start: int
    end: int
    column: int
    line: int
    style: str = ""
    """Of a scalar ``'``, ``"``, ``|``, ``>`` or none; of a collection ``flow`` or none."""
    scalar: Any = None
    decorated: bool = False
    """It has an anchor or a tag."""
    entries: Sequence[tuple[Node, Node]] = ()
    by_key: Mapping[str, Node] | None = None
    """The values of ``entries``, the first of each key."""
    items: Sequence[Node] = ()
    target: Node | None = None
    size: int = 1

    @property
    def flow(self) -> bool:
        return self.style == "flow"

    def value(self) -> Any:
        """What the text says, aliases and merge keys written out."""
        if self.kind == "alias":
            return self.target.value() if self.target else None
        if self.kind == "sequence":
            return [item.value() for item in self.items]
        if self.kind == "mapping":
            return self._mapping()
        return self.scalar

    def get(self, key: str) -> Node | None:
        """The value under a key that stands here itself, not by a merge."""
        return self.by_key.get(key) if self.by_key is not None else None

    def _mapping(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, value in self.entries:
            if key.scalar == _MERGE and not key.style:
                for source in value.items if value.kind == "sequence" else [value]:
                    for name, inherited in source.value().items():
                        merged.setdefault(name, inherited)
            else:
                own[key.scalar] = value.value()
        return {**merged, **own}


class _Open:
    """A mapping or a sequence that has not ended; ``key`` waits for its value."""

    __slots__ = ("by_key", "entries", "items", "key", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.entries: list[tuple[Node, Node]] = []
        self.by_key: dict[str, Node] = {}
        self.items: list[Node] = []
        self.key: Node | None = None


def parse(text: str) -> Node | None:
    """The one document of ``text``; None if it has none. Raises YamlError."""
    anchors: dict[str, Node] = {}
    stack: list[_Open] = []
    root: Node | None = None
    count = 0
    for event in _events(text):
        kind = type(event)
        if kind in _ENDS:
            _close(stack.pop(), event.end_mark.index)
        elif kind in _MAKERS:
            node = _MAKERS[kind](event, anchors)
            count += 1
            if count > NODES:
                raise _too_many(node.line)
            if stack:
                _attach(stack[-1], node)
            elif root is not None:
                raise YamlError("there is a second document", node.line)
            else:
                root = node
            if kind in _BEGINS:
                if len(stack) >= DEPTH:
                    raise YamlError(f"it is nested more than {DEPTH} deep", node.line, remedy="write it flatter")
                stack.append(_Open(node))
            if event.anchor and kind is not yaml.AliasEvent:
                anchors[event.anchor] = node
    if root is not None and root.kind == "scalar" and root.scalar is None and not root.decorated:
        return None
    return root


def plain(text: str) -> Any:
    """What a scalar without quotes means."""
    if text and text[0] not in _OTHER:
        return text
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INT.match(text):
        digits = text.replace("_", "")
        sign, digits = (-1, digits[1:]) if digits[0] == "-" else (1, digits.lstrip("+"))
        if digits.startswith("0") and digits[1:2] not in ("b", "x", "o", ""):
            return sign * int(digits, 8)
        return sign * int(digits, 0)
    if _FLOAT.match(text):
        return float(text.replace("_", ""))
    if _SPECIAL.match(text):
        return float(text.lower().replace(".", ""))
    return text


def _events(text: str) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(" ".join(str(error.problem or error.context).split()), mark.line if mark else 0) from None
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(" ".join(str(error).split())) from None


def _alias(event: Any, anchors: dict[str, Node]) -> Node:
    mark = event.start_mark
    target = anchors.get(str(event.anchor))
    if target is None:
        raise YamlError(f"the alias *{event.anchor} stands for nothing", mark.line)
    if target.end < 0:
        raise YamlError(f"the alias *{event.anchor} stands inside of what it stands for", mark.line)
    if target.size > NODES:
        raise _too_many(mark.line)
    node = Node("alias", mark.index, event.end_mark.index, mark.column, mark.line)
    node.target, node.size = target, target.size
    return node


def _scalar(event: Any, _: dict[str, Node]) -> Node:
    mark, tag, style = event.start_mark, event.tag, event.style or ""
    value: Any = event.value
    if tag is None:
        value = plain(value) if event.implicit[0] else value
    elif tag in (f"{_TAGS}int", f"{_TAGS}float", f"{_TAGS}bool", f"{_TAGS}null"):
        value = plain(value)
    elif tag not in ("!", f"{_TAGS}str"):
        raise YamlError(f"Kubernetes knows no tag {tag}", mark.line)
    decorated = tag is not None or event.anchor is not None
    return Node("scalar", mark.index, event.end_mark.index, mark.column, mark.line, style, value, decorated)


def _collection(event: Any, _: dict[str, Node]) -> Node:
    mark, tag = event.start_mark, event.tag
    if tag not in (None, "!", f"{_TAGS}map", f"{_TAGS}seq"):
        raise YamlError(f"Kubernetes knows no tag {tag}", mark.line)
    kind: Kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
    decorated = tag is not None or event.anchor is not None
    return Node(kind, mark.index, -1, mark.column, mark.line, "flow" if event.flow_style else "", None, decorated)


_MAKERS: Final = {
    yaml.ScalarEvent: _scalar,
    yaml.MappingStartEvent: _collection,
    yaml.SequenceStartEvent: _collection,
    yaml.AliasEvent: _alias,
}
_BEGINS: Final = frozenset((yaml.MappingStartEvent, yaml.SequenceStartEvent))
_ENDS: Final = frozenset((yaml.MappingEndEvent, yaml.SequenceEndEvent))


def _attach(parent: _Open, node: Node) -> None:
    if parent.node.kind == "sequence":
        parent.items.append(node)
        return
    key = parent.key
    if key is None:
        if node.kind != "scalar":
            raise YamlError("a key is a plain word in Kubernetes, and this is none", node.line)
        if not isinstance(node.scalar, str):
            node.scalar = _word(node.scalar)
        parent.key = node
        return
    if key.scalar != _MERGE and key.scalar in parent.by_key:
        raise YamlError(f"the key {key.scalar} is there twice in one mapping; write it once", key.line)
    parent.entries.append((key, node))
    parent.by_key.setdefault(key.scalar, node)
    parent.key = None


def _word(value: Any) -> str:
    """A key that YAML reads as something else, as JSON has it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _close(opened: _Open, end: int) -> None:
    node = opened.node
    node.end, node.entries, node.by_key, node.items = end, opened.entries, opened.by_key, opened.items
    for key, value in opened.entries:
        if key.scalar == _MERGE and not key.style:
            for source in value.items if value.kind == "sequence" else [value]:
                held = source.target if source.kind == "alias" else source
                if held is None or held.kind != "mapping":
                    raise YamlError("only mappings can be merged", key.line)
    size = 1
    for _, value in opened.entries:
        size += value.size
    for item in opened.items:
        size += item.size
    if size > NODES:
        raise _too_many(node.line)
    node.size = size


def _too_many(line: int) -> YamlError:
    return YamlError(
        f"it comes to more than {NODES} values, aliases written out", line, remedy="write fewer of them in one document"
    )

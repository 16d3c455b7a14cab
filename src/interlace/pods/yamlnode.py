"""One YAML document as values, and where in the text each of them stands.

Values are read as Kubernetes reads them (YAML 1.1 without times: ``yes`` is true, ``0660`` is octal). Invariant: a
document is read event by event with a bound on depth and on what its aliases expand to, so no text can take more
time or memory than its length allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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

Kind = Literal["scalar", "mapping", "sequence", "alias"]


class YamlError(ValueError):
    """The text is no document that can be read; ``line`` counts from 0 within it."""

    def __init__(self, sentence: str, line: int = 0) -> None:
        self.line = line
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
    entries: list[tuple[Node, Node]] = field(default_factory=list)
    by_key: dict[str, Node] = field(default_factory=dict)
    """The values of ``entries``, the first of each key."""
    items: list[Node] = field(default_factory=list)
    target: Node | None = None
    decorated: bool = False
    """It has an anchor or a tag."""
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
        return self.by_key.get(key)

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


def parse(text: str) -> Node | None:
    """The one document of ``text``; None if it has none. Raises YamlError."""
    anchors: dict[str, Node] = {}
    stack: list[Node] = []
    pending: list[Node | None] = []
    root: Node | None = None
    count = 0
    for event in _events(text):
        if isinstance(event, yaml.NodeEvent):
            node = _node(event, anchors)
            count += 1
            _bound(count, node.line)
            if stack:
                _attach(stack[-1], pending, node)
            elif root is not None:
                raise YamlError("there is a second document", node.line)
            else:
                root = node
            if node.kind in ("mapping", "sequence"):
                if len(stack) >= DEPTH:
                    raise YamlError(f"it is nested more than {DEPTH} deep", node.line)
                stack.append(node)
                pending.append(None)
            if event.anchor and not isinstance(event, yaml.AliasEvent):
                anchors[event.anchor] = node
        elif isinstance(event, yaml.CollectionEndEvent):
            end: Any = event.end_mark
            _close(stack, end.index)
            pending.pop()
    if root is not None and root.kind == "scalar" and root.scalar is None and not root.decorated:
        return None
    return root


def plain(text: str) -> Any:
    """What a scalar without quotes means."""
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


def _node(event: Any, anchors: dict[str, Node]) -> Node:
    mark = event.start_mark
    node = Node("scalar", mark.index, event.end_mark.index, mark.column, mark.line)
    if isinstance(event, yaml.AliasEvent):
        target = anchors.get(str(event.anchor))
        if target is None:
            raise YamlError(f"the alias *{event.anchor} stands for nothing", mark.line)
        if target.end < 0:
            raise YamlError(f"the alias *{event.anchor} stands inside of what it stands for", mark.line)
        node.kind, node.target, node.size = "alias", target, target.size
        _bound(node.size, mark.line)
        return node
    node.decorated = event.anchor is not None or event.tag is not None
    if isinstance(event, yaml.ScalarEvent):
        node.style = event.style or ""
        node.scalar = _scalar(event)
        return node
    node.kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
    if event.tag not in (None, "!", f"{_TAGS}map", f"{_TAGS}seq"):
        raise YamlError(f"Kubernetes knows no tag {event.tag}", mark.line)
    node.style = "flow" if event.flow_style else ""
    node.end = -1
    return node


def _scalar(event: Any) -> Any:
    tag = event.tag
    if tag is None:
        return plain(event.value) if event.implicit[0] else event.value
    if tag in ("!", f"{_TAGS}str"):
        return event.value
    if tag in (f"{_TAGS}int", f"{_TAGS}float", f"{_TAGS}bool", f"{_TAGS}null"):
        return plain(event.value)
    raise YamlError(f"Kubernetes knows no tag {tag}", event.start_mark.line)


def _attach(parent: Node, pending: list[Node | None], node: Node) -> None:
    if parent.kind == "sequence":
        parent.items.append(node)
        return
    key = pending[-1]
    if key is None:
        if node.kind != "scalar":
            raise YamlError("a key is a plain word in Kubernetes, and this is none", node.line)
        if not isinstance(node.scalar, str):
            node.scalar = _word(node.scalar)
        pending[-1] = node
        return
    if key.scalar != _MERGE and key.scalar in parent.by_key:
        raise YamlError(f"the key {key.scalar} is there twice in one mapping; write it once", key.line)
    parent.entries.append((key, node))
    parent.by_key.setdefault(key.scalar, node)
    pending[-1] = None


def _word(value: Any) -> str:
    """A key that YAML reads as something else, as JSON has it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _close(stack: list[Node], end: int) -> None:
    node = stack.pop()
    node.end = end
    for key, value in node.entries:
        if key.scalar == _MERGE and not key.style:
            for source in value.items if value.kind == "sequence" else [value]:
                held = source.target if source.kind == "alias" else source
                if held is None or held.kind != "mapping":
                    raise YamlError("only mappings can be merged", key.line)
    node.size = 1 + sum(value.size for _, value in node.entries) + sum(item.size for item in node.items)
    _bound(node.size, node.line)


def _bound(size: int, line: int) -> None:
    if size > NODES:
        raise YamlError(f"it comes to more than {NODES} values, aliases written out", line)

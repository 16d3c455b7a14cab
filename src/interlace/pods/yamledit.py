"""Changing values in YAML text and nothing else: comments, order, quotes and line ends stay as they are.

The text is not written anew: lines are put in where values are new, and single values are exchanged in place.
Invariant: what comes out is read back and compared with the value that was asked for.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from interlace.pods import yamltext
from interlace.pods.yamlnode import Node, YamlError, parse

_DASH: Final = re.compile(r" *- +\Z")
_REMARKS: Final = r"(?:[#%][^\n]*\n|[ \t]*\r?\n)*"
_LEAD: Final = re.compile(rf"{_REMARKS}(?:---[ \t]*(?:#[^\n]*)?\r?\n)?{_REMARKS}")
"""Comments, directives and the mark before the first value."""


class _Unfit(Exception):
    """The text has a shape that lines cannot be put into."""


def edit(text: str, new: Any) -> tuple[str, bool]:
    """``text``, a document, changed so that it says ``new``; True if comments had to be given up for that.

    Raises YamlError if the text is none, ValueError if ``new`` cannot be written as YAML at all.
    """
    root = parse(text)
    if root is None:
        raise YamlError("there is nothing in it")
    if root.value() == new:
        return text, False
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    dash = _dash(text, root)
    complete = text if text.endswith("\n") else text + newline
    changed = _changed(complete, root, new, newline=newline, dash=dash)
    if changed is None and (apart := _unshared(complete, root, newline=newline, dash=dash)) is not None:
        again = parse(apart)
        changed = _changed(apart, again, new, newline=newline, dash=dash) if again else None
    if changed is not None:
        return changed
    lead = _LEAD.match(text)
    anew = (lead[0] if lead else "") + newline.join([*yamltext.block(new, column=0, dash=dash), ""])
    if not _says(anew, new):
        raise ValueError("the new values cannot be written as YAML")
    return anew, True


def _changed(text: str, root: Node, new: Any, *, newline: str, dash: int) -> tuple[str, bool] | None:
    """The text with another value, or None if lines cannot be put into it."""
    editor = _Editor(text, newline, dash)
    try:
        editor.change(root, root.value(), new)
        changed = editor.result()
    except _Unfit:
        return None
    return (changed, editor.lost) if _says(changed, new) else None


def _unshared(text: str, root: Node, *, newline: str, dash: int) -> str | None:
    """The text with all its aliases written out, for a change that is not meant for all who share a value."""
    editor = _Editor(text, newline, dash)
    try:
        if not editor.write_out(root):
            return None
        apart = editor.result()
    except _Unfit:
        return None
    return apart if _says(apart, root.value()) else None


def _says(text: str, value: Any) -> bool:
    try:
        root = parse(text)
    except YamlError:
        return False
    return root is not None and root.value() == value


def _dash(text: str, root: Node) -> int:
    """Columns between a key and the dashes of its list, as the first list of the document has it."""
    waiting = [root]
    while waiting:
        node = waiting.pop(0)
        for key, value in node.entries:
            if value.kind == "sequence" and not value.flow and not value.decorated and not node.flow:
                return max(0, min(8, value.column - key.column))
            waiting.append(value)
        waiting.extend(node.items)
    return 2 if "\n  - " in text else 0


@dataclass(slots=True)
class _Editor:
    text: str
    newline: str
    dash: int
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    lost: bool = False

    def result(self) -> str:
        parts: list[str] = []
        at = 0
        for start, end, replacement in sorted(self.edits, key=lambda each: (each[0], each[1])):
            if start < at:
                raise _Unfit
            parts += (self.text[at:start], replacement)
            at = end
        return "".join([*parts, self.text[at:]])

    def change(self, node: Node, old: Any, new: Any) -> None:
        """Edit below a collection whose own kind stays."""
        if isinstance(new, dict) and node.kind == "mapping" and node.entries:
            self._mapping(node, old, new)
        elif isinstance(new, list) and node.kind == "sequence" and node.items:
            self._sequence(node, old, new)
        else:
            raise _Unfit

    def write_out(self, node: Node) -> bool:
        """Put what aliases stand for in their places; False if there are none."""
        found = False
        for key, value in node.entries:
            if key.scalar == "<<" and not key.style:
                self._merge(node, key, value)
                found = True
            elif value.kind == "alias":
                self._value(node, key, value, None, value.value())
                found = True
            else:
                found = self.write_out(value) or found
        for item in node.items:
            if item.kind == "alias":
                self._item(node, item, None, item.value())
                found = True
            else:
                found = self.write_out(item) or found
        return found

    def _merge(self, node: Node, key: Node, value: Node) -> None:
        """What a merge key brings, in its place."""
        whole = node.value()
        brought = {name: each for name, each in whole.items() if node.get(name) is None}
        if node.flow or not brought:
            raise _Unfit
        lines = [
            line
            for name, each in brought.items()
            for line in yamltext.entry(name, each, column=key.column, dash=self.dash)
        ]
        self.edits.append((key.start, self._end(value), self.newline.join(lines).lstrip(" ")))

    def _mapping(self, node: Node, old: dict[str, Any], new: dict[str, Any]) -> None:
        if any(key not in new for key in old):
            raise _Unfit
        added: dict[str, Any] = {}
        for key, value in new.items():
            if key in old and old[key] == value and type(old[key]) is type(value):
                continue
            own = node.get(key)
            if own is None:
                added[key] = value
                continue
            self._value(node, next(name for name, _ in node.entries if name.scalar == key), own, old[key], value)
        if not added:
            return
        if node.flow:
            inner = yamltext.flow(added)[1:-1]
            self._into_flow(node, [value for _, value in node.entries], inner)
            return
        column = node.entries[0][0].column
        first = next((key for key, _ in node.entries if key.scalar == "spec"), None)
        if "metadata" in added and first is not None and self._starts_line(first):
            lines = yamltext.entry("metadata", added.pop("metadata"), column=column, dash=self.dash)
            start = self.text.rfind("\n", 0, first.start) + 1
            self.edits.append((start, start, "".join(line + self.newline for line in lines)))
        self._lines_after(
            self._end(node),
            [
                line
                for key, value in added.items()
                for line in yamltext.entry(key, value, column=column, dash=self.dash)
            ],
        )

    def _starts_line(self, key: Node) -> bool:
        """Whether nothing stands before a key on its line, and no remark that belongs to it above."""
        start = self.text.rfind("\n", 0, key.start) + 1
        above = self.text[self.text.rfind("\n", 0, max(0, start - 1)) + 1 : start]
        return not self.text[start : key.start].strip() and not above.lstrip().startswith("#")

    def _value(self, parent: Node, key: Node, node: Node, old: Any, new: Any) -> None:
        """Exchange the value of a key, as little of it as can be."""
        saved = len(self.edits)
        if node.kind in ("mapping", "sequence"):
            try:
                self.change(node, old, new)
            except _Unfit:
                del self.edits[saved:]
            else:
                return
        if parent.flow:
            if node.start == node.end:
                raise _Unfit
            self.edits.append((node.start, self._end(node), yamltext.flow(new)))
            return
        if key.style and "\n" in self.text[key.start : key.end]:
            raise _Unfit
        colon = self.text.index(":", key.end)
        first, rest = yamltext.under(new, column=key.column, dash=self.dash)
        if node.style in ("'", '"') and isinstance(new, str) and not rest:
            first = f" {json.dumps(new, ensure_ascii=False)}" if node.style == '"' else self._single(new, first)
        end = self._end(node)
        if not rest and self._one_line(colon, end):
            start = node.start if node.start > colon and node.start < end else colon + 1
            self.edits.append((start, end, first.lstrip(" ") if start > colon + 1 else first))
            return
        tail = self._line_end(end)
        self.lost = self.lost or " #" in self.text[colon:end]
        comment = self.text[end:tail].rstrip("\r\n")
        self.edits.append((colon + 1, tail, first + comment + self.newline))
        self.edits.append((tail, tail, "".join(line + self.newline for line in rest)))

    def _single(self, new: str, otherwise: str) -> str:
        safe = "\n" not in new and new.isprintable()
        return " '" + new.replace("'", "''") + "'" if safe else otherwise

    def _sequence(self, node: Node, old: list[Any], new: list[Any]) -> None:
        matcher = difflib.SequenceMatcher(None, [_name(each) for each in old], [_name(each) for each in new], False)
        for step, low, high, begin, stop in matcher.get_opcodes():
            if step == "equal":
                for index, target in zip(range(low, high), range(begin, stop), strict=True):
                    if old[index] != new[target]:
                        self._item(node, node.items[index], old[index], new[target])
            elif step == "insert":
                self._insert(node, low, new[begin:stop])
            elif step == "replace" and high - low == stop - begin:
                for index, target in zip(range(low, high), range(begin, stop), strict=True):
                    self._item(node, node.items[index], old[index], new[target])
            else:
                raise _Unfit

    def _item(self, node: Node, item: Node, old: Any, new: Any) -> None:
        if item.kind in ("mapping", "sequence") and type(old) is type(new):
            self.change(item, old, new)
        elif node.flow:
            self.edits.append((item.start, self._end(item), yamltext.flow(new)))
        else:
            column = self._dash_column(item)
            lines = yamltext.item(new, column=column, dash=self.dash)
            start = self.text.rindex("-", 0, item.start)
            self.edits.append((start, self._end(item), self.newline.join(lines).lstrip(" ")))

    def _insert(self, node: Node, index: int, values: list[Any]) -> None:
        if node.flow:
            inner = yamltext.flow(values)[1:-1]
            if index == len(node.items):
                self._into_flow(node, node.items, inner)
            else:
                start = node.items[index].start
                self.edits.append((start, start, f"{inner}, "))
            return
        column = self._dash_column(node.items[0])
        lines = [line for value in values for line in yamltext.item(value, column=column, dash=self.dash)]
        if index:
            self._lines_after(self._end(node.items[index - 1]), lines)
            return
        start = self.text.rfind("\n", 0, node.items[0].start) + 1
        self.edits.append((start, start, "".join(line + self.newline for line in lines)))

    def _dash_column(self, item: Node) -> int:
        start = self.text.rfind("\n", 0, item.start) + 1
        lead = self.text[start : item.start]
        if not _DASH.match(lead):
            raise _Unfit
        return lead.index("-")

    def _into_flow(self, node: Node, children: Sequence[Node], inner: str) -> None:
        last = self._end(children[-1])
        comma = self.text.find(",", last, node.end - 1)
        if "#" in self.text[last : node.end]:
            raise _Unfit
        if comma >= 0:
            self.edits.append((comma + 1, comma + 1, f" {inner}"))
        else:
            self.edits.append((last, last, f", {inner}"))

    def _end(self, node: Node) -> int:
        """Where the characters of a value end."""
        if node.kind == "mapping" and not node.flow:
            key, value = node.entries[-1]
            return max(self._end(value), self.text.index(":", key.end) + 1)
        if node.kind == "sequence" and not node.flow:
            return self._end(node.items[-1])
        if node.style in ("|", ">"):
            head = self.text[node.start : self.text.index("\n", node.start)]
            if "+" in head:
                return node.end
            return node.start + len(self.text[node.start : node.end].rstrip())
        return node.end

    def _line_end(self, at: int) -> int:
        """Behind the end of the line; ``at`` itself if a line begins there."""
        if at and self.text[at - 1] == "\n":
            return at
        return self.text.index("\n", at) + 1

    def _lines_after(self, at: int, lines: list[str]) -> None:
        position = self._line_end(at)
        self.edits.append((position, position, "".join(line + self.newline for line in lines)))

    def _one_line(self, start: int, end: int) -> bool:
        return "\n" not in self.text[start:end]


def _name(value: Any) -> str:
    """What tells one entry of a list from another."""
    if isinstance(value, dict):
        for key in ("name", "mountPath", "key", "topologyKey"):
            if isinstance(value.get(key), str):
                mount = value.get("mountPath", "")
                return f"{key}={value[key]} {mount}"
        return "a mapping"
    return json.dumps(value, sort_keys=True, default=str)

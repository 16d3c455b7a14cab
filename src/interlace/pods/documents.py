"""A file of manifests as its documents: cut apart, read, changed and put together without touching the rest.

YAML and JSON stay what they are. Invariant: the documents' texts, joined, are the file; a document that is not
changed is never written anew.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from interlace.pods import yamltext
from interlace.pods.yamledit import edit
from interlace.pods.yamlnode import YamlError, parse

LONGEST_FILE: Final = 8 * 1024 * 1024
"""Bytes. 5,000 Deployments come to half of it."""
LONGEST_DOCUMENT: Final = 3 * 512 * 1024
"""Bytes. etcd stores no larger object by default."""

DEEPEST: Final = 200
"""Of JSON: what works on values calls itself for each level. YAML has a bound of its own."""

_BREAK: Final = re.compile(r"---(?:[ \t\r\n]|\Z)")
_STOP: Final = re.compile(r"\.\.\.(?:[ \t\r\n]|\Z)")
_STOPPED: Final = re.compile(r"^\.\.\.[ \t]*\r?\n?\Z", re.MULTILINE)
_KIND: Final = re.compile(r"^kind:[ \t]*[\"']?([A-Za-z0-9]+)[\"']?[ \t\r]*(?:#.*)?$", re.MULTILINE)
_INDENT: Final = re.compile(r"[\[{]\r?\n([ \t]+)")
_BLANK: Final = re.compile(r"[ \t\r\n\ufeff]*")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)


class DocumentError(ValueError):
    """A document that cannot be read or changed; ``line`` counts from 1 in the file."""

    def __init__(self, cause: str, remedy: str, line: int) -> None:
        self.cause = cause
        self.remedy = remedy
        self.line = line
        super().__init__(f"line {line}: {cause}; {remedy}")


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of a file: ``text`` with the ``---`` before it; ``line`` is its first one, from 1."""

    text: str
    line: int
    form: Literal["yaml", "json"] = "yaml"

    @property
    def kinds(self) -> frozenset[str] | None:
        """What it is at a glance, without reading it; None if only reading tells."""
        if self.form == "json":
            return None
        found = _KIND.findall(self.text)
        return frozenset(found) if len(found) == 1 and not _TEMPLATE.search(self.text) else None

    def read(self) -> Any:
        """Its value; None if there is nothing in it but comments. Raises DocumentError."""
        if len(self.text) > LONGEST_DOCUMENT:
            raise DocumentError(
                f"it has {len(self.text)} characters, and no API server stores so large an object",
                f"write one of at most {LONGEST_DOCUMENT}",
                self.line,
            )
        if self.form == "json":
            return _json(self.text, self.line)
        try:
            root = parse(self.text)
        except YamlError as error:
            if _TEMPLATE.search(self.text):
                raise DocumentError(
                    f"it is a template that was not rendered ({_TEMPLATE.search(self.text)[0]})",  # type: ignore[index]
                    "render it first, as with helm template",
                    self.line + error.line,
                ) from None
            if error.remedy:
                raise DocumentError(str(error), error.remedy, self.line + error.line) from None
            raise DocumentError(f"it is no YAML: {error}", "correct it", self.line + error.line) from None
        return None if root is None else root.value()

    def changed(self, value: Any) -> tuple[str, bool]:
        """Its text with another value; True if comments had to be given up. Raises DocumentError."""
        if self.form == "json":
            return _dump(self.text, value), False
        try:
            return edit(self.text, value)
        except (YamlError, ValueError) as error:
            raise DocumentError(f"it cannot be changed: {error}", "write it in block style", self.line) from None


def split(text: str) -> list[Document]:
    """The documents of a file. Raises DocumentError for a file that is too long."""
    if len(text) > LONGEST_FILE:
        raise DocumentError(
            f"the file has {len(text)} characters; at most {LONGEST_FILE} are read", "inject it in parts", 1
        )
    lead = text.lstrip(" \t\r\n\ufeff")
    if lead.startswith(("{", "[")):
        found = _split_json(text)
        if found:
            return found
    documents: list[Document] = []
    start, first, line, stopped = 0, 1, 1, False
    at = 0
    while at < len(text):
        if at > start and (_BREAK.match(text, at) or stopped) and not _directives(text[start:at]):
            documents.append(Document(text[start:at], first))
            start, first = at, line
        stopped = _STOP.match(text, at) is not None
        end = text.find("\n", at)
        at = len(text) if end < 0 else end + 1
        line += 1
    documents.append(Document(text[start:], first))
    return [each for each in documents if each.text]


def separate(before: str, newline: str) -> str:
    """What has to stand between two documents of YAML."""
    if not before:
        return ""
    return f"---{newline}" if before.endswith("\n") else f"{newline}---{newline}"


def apart(before: str, after: str) -> bool:
    """Whether ``---`` is missing between two texts: the first ended at ``...`` once, and does no more."""
    if after.startswith(("---", "{", "[", "%")) or before.lstrip(" \t\r\n\ufeff").startswith(("{", "[")):
        return False
    return _STOPPED.search(before) is None


def render(value: Any, *, like: Document) -> str:
    """A new document in the manner of another one."""
    if like.form == "json":
        return _dump(like.text, value)
    newline = "\r\n" if "\r\n" in like.text else "\n"
    return newline.join([*yamltext.block(value, column=0, dash=0), ""])


def _directives(text: str) -> bool:
    """Whether there are only directives and comments, which belong to the document that follows."""
    lines = [line for line in text.splitlines() if line.strip()]
    return any(line.startswith("%") for line in lines) and all(line.startswith(("%", "#")) for line in lines)


def _split_json(text: str) -> list[Document]:
    """One or several values after each other; nothing if it is no JSON."""
    decoder = json.JSONDecoder()
    documents: list[Document] = []
    at, line = 0, 1
    while at < len(text):
        begin = _BLANK.match(text, at).end()  # type: ignore[union-attr]  # it matches the empty text
        if begin == len(text):
            break
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return []
        after = text.find("\n", end)
        if after >= 0 and not text[end:after].strip():
            end = after + 1
        documents.append(Document(text[at:end], line, "json"))
        line += text.count("\n", at, end)
        at = end
    if documents and at < len(text):
        last = documents.pop()
        documents.append(Document(last.text + text[at:], last.line, "json"))
    return documents


def _json(text: str, line: int) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(found)
        if len(mapping) != len(found):
            names = [name for name, _ in found]
            twice = next(name for name in names if names.count(name) > 1)
            raise DocumentError(f"the key {twice} is there twice in one mapping", "write it once", line)
        return mapping

    def constant(name: str) -> Any:
        raise DocumentError(f"{name} is no value of JSON", "write a number", line)

    try:
        value = json.loads(text.lstrip("\ufeff"), object_pairs_hook=pairs, parse_constant=constant)
        if _deeper(value, DEEPEST):
            raise DocumentError(f"it is nested more than {DEEPEST} deep", "write it flatter", line)
        if half := _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            raise DocumentError(f"it has half of a character, {half[0]!r}", "write the whole one", line)
        return value
    except (ValueError, RecursionError) as error:
        if isinstance(error, DocumentError):
            raise
        raise DocumentError(f"it is no JSON: {error}", "correct it", line) from None


def _deeper(value: Any, most: int) -> bool:
    """Whether lists and mappings stand in each other more than so often."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _dump(text: str, value: Any) -> str:
    """JSON with the indentation, the line ends and the escapes of ``text``."""
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = _INDENT.search(text)
    compact = indent is None and '": ' not in text
    body = json.dumps(
        value,
        indent=indent[1] if indent else None,
        ensure_ascii=text.isascii(),
        separators=(",", ":") if compact else (", ", ": ") if indent is None else (",", ": "),
    )
    lead = text[: len(text) - len(text.lstrip(" \t\r\n\ufeff"))]
    tail = text[len(text.rstrip()) :]
    return lead + body.replace("\n", newline) + tail

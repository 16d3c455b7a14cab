"""A whole file of manifests set up for the fabric: what ``interlace inject`` does, without reading or printing.

Invariant: each document is either given back byte for byte, or injected whole, or refused and left out; one that is
refused keeps none of the others back. Injecting the result again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from interlace.pods.documents import Document, DocumentError, apart, render, separate, split
from interlace.pods.draft import Change
from interlace.pods.errors import InjectError, join
from interlace.pods.gpus import RESOURCE
from interlace.pods.kinds import PATHS, group_and_kind
from interlace.pods.surroundings import KINDS, Surroundings, surroundings
from interlace.pods.workloads import Options, Workload, equip

_READ = KINDS | {kind for _, kind in PATHS} | {"List"}


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a document was left out: where, what stands there, why that cannot stay, what to write."""

    path: str
    value: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.value}: {self.cause}; {self.remedy}"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a document; ``number`` and ``line`` count from 1. ``text``: what is printed of it."""

    number: int
    line: int
    kind: str = ""
    name: str = ""
    result: Literal["injected", "unchanged", "refused"] = "unchanged"
    families: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: Refusal | None = None
    text: str = ""

    @property
    def title(self) -> str:
        """How a person finds it: ``document 2 (Job train, line 14)``."""
        what = " ".join(each for each in (self.kind, self.name) if each)
        return f"document {self.number} ({what + ', ' if what else ''}line {self.line})"


def inject_text(text: str, *, options: Options) -> tuple[Outcome, ...]:
    """All documents of a file. Raises DocumentError for a file that cannot be cut into documents."""
    documents = split(text)
    read: list[Any] = [_read(document, options) for document in documents]
    found = surroundings(each for value in read if isinstance(value, dict) for _, each in _objects(value))
    return tuple(
        _outcome(number, document, value, options=options, found=found)
        for number, (document, value) in enumerate(zip(documents, read, strict=True), 1)
    )


def text_of(outcomes: tuple[Outcome, ...]) -> str:
    """The file afterwards: all that was not refused."""
    parts: list[str] = []
    for outcome in outcomes:
        if parts and outcome.text and apart(parts[-1], outcome.text):
            parts.append("---\n")
        if outcome.text:
            parts.append(outcome.text)
    return "".join(parts)


def _read(document: Document, options: Options) -> Any:
    """The value, None for a document that is of no concern, or the error."""
    kinds = document.kinds
    if kinds is not None and not kinds & _READ and not options.pod_paths and RESOURCE not in document.text:
        return None
    try:
        return document.read()
    except DocumentError as error:
        return error


def _objects(value: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a document: itself, or the items of a List."""
    items = value.get("items")
    if group_and_kind(value)[1].endswith("List") and isinstance(items, list):
        yield from ((f"items[{index}]", each) for index, each in enumerate(items) if isinstance(each, dict))
    else:
        yield "", value


def _outcome(number: int, document: Document, value: Any, *, options: Options, found: Surroundings) -> Outcome:
    if value is None:
        return Outcome(number=number, line=document.line, text=document.text)
    if isinstance(value, DocumentError):
        refusal = Refusal(
            path=f"line {value.line}", value=_glance(document, value.line), cause=value.cause, remedy=value.remedy
        )
        return Outcome(number=number, line=document.line, result="refused", refusal=refusal)
    if not isinstance(value, dict):
        refusal = Refusal(
            path="the document", value=type(value).__name__, cause="a manifest is a mapping", remedy="write one"
        )
        return Outcome(number=number, line=document.line, result="refused", refusal=refusal)
    metadata = value.get("metadata")
    name = metadata.get("name") or metadata.get("generateName") if isinstance(metadata, dict) else ""
    this = Outcome(
        number=number,
        line=document.line,
        kind=str(value.get("kind") or ""),
        name=name if isinstance(name, str) else "",
        text=document.text,
    )
    try:
        work = _equip(value, options=options, found=found)
        return _told(this, work, document, value)
    except InjectError as error:
        refusal = Refusal(path=error.path, value=error.shown, cause=error.cause, remedy=error.remedy)
    except DocumentError as error:
        refusal = Refusal(path=f"line {error.line}", value=this.title, cause=error.cause, remedy=error.remedy)
    return msgspec.structs.replace(this, result="refused", refusal=refusal, text="")


def _told(this: Outcome, work: Workload, document: Document, value: dict[str, Any]) -> Outcome:
    warnings = work.warnings
    text = document.text
    if work.value != value:
        text, lost = document.changed(work.value)
        if lost:
            warnings = (*warnings, "comments inside of what had to be written anew are gone")
    if work.domain is not None:
        newline = "\r\n" if "\r\n" in text else "\n"
        ends = text.endswith("\n")
        if document.form == "json":
            text += ("" if text.endswith("\n") else newline) + render(work.domain, like=document)
        else:
            text += separate(text, newline) + render(work.domain, like=document)
            text = text if ends else text.removesuffix(newline)
    return msgspec.structs.replace(
        this,
        result="unchanged" if text == document.text else "injected",
        families=work.families,
        software=work.software,
        changes=work.changes,
        warnings=warnings,
        text=text,
    )


def _equip(value: dict[str, Any], *, options: Options, found: Surroundings) -> Workload:
    """One object, or all items of a List; a List is injected whole or refused whole."""
    objects = list(_objects(value))
    if objects == [("", value)]:
        return equip(value, options=options, found=found)
    works: list[tuple[str, Workload]] = []
    for at, each in objects:
        try:
            works.append((at, equip(each, options=options, found=found)))
        except InjectError as error:
            raise error.below(at) from None
    items = list(value["items"])
    places = [index for index, each in enumerate(items) if isinstance(each, dict)]
    for index, (_, work) in zip(places, works, strict=True):
        items[index] = work.value
    items += [work.domain for _, work in works if work.domain is not None]
    return Workload(
        value={**value, "items": items},
        families=tuple(dict.fromkeys(each for _, work in works for each in work.families)),
        software=tuple(dict.fromkeys(each for _, work in works for each in work.software)),
        changes=tuple(
            msgspec.structs.replace(change, path=join(at, change.path)) for at, work in works for change in work.changes
        ),
        warnings=tuple(join(at, warning) for at, work in works for warning in work.warnings),
    )


def _glance(document: Document, line_number: int) -> str:
    """The line of the file, or if that is empty the first that shows which document it is."""
    lines = document.text.split("\n")
    for line in (*lines[max(line_number - document.line, 0) :][:1], *lines):
        if line.strip() and not line.startswith(("---", "#")):
            return line.strip()[:60]
    return "the document"

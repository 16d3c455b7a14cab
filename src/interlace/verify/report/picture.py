"""A figure of a report with its alternative in words: the same for those who see it and those who do not.

Invariant: every picture has a title, a description and a table with its numbers; ids are unique in a page as long as
pictures' own are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree import ElementTree as ET

import msgspec

from interlace.verify.report.palette import with_variables
from interlace.verify.report.text import clean, html

MOST_ROWS: Final = 500
"""Of the table below a picture."""
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_SPACE: Final = "{http://www.w3.org/2000/svg}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """An inline SVG and what it says."""

    id: str
    """A word of letters, digits and dashes."""
    title: str
    description: str
    """Whole sentences, plain text."""
    svg: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0
    """Rows that the table does not hold."""


def element(svg: str, *, id: str, title: str, description: str, titles: Sequence[str] = ()) -> str:
    """The SVG of a drawing library as an element of a page: named, coloured by variables, with ids of its own.

    ``titles``: for the children of the group ``cells``, in their order.
    """
    root = ET.fromstring(svg)  # noqa: S314  our own library wrote it
    for child in [each for each in root if each.tag == f"{_SPACE}metadata"]:
        root.remove(child)
    _name_cells(root, titles)
    used = {found for each in root.iter() for found in _references(each)}
    for each in root.iter():
        each.tag = each.tag.removeprefix(_SPACE)
        _own(each, prefix=id, used=used)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    body = "".join(ET.tostring(child, encoding="unicode") for child in root)
    return wrap(with_variables(body), view=root.attrib["viewBox"], id=id, title=title, description=description)


def wrap(body: str, *, view: str, id: str, title: str, description: str) -> str:
    """The element around drawn shapes, with title and description."""
    width = f"{float(view.split()[2]):.0f}"
    return (
        f'<svg role="img" aria-labelledby="{id}-title {id}-desc" viewBox="{html(view)}" style="max-width: {width}pt">'
        f'<title id="{id}-title">{html(title)}</title><desc id="{id}-desc">{html(description, most=5000)}</desc>'
        f"{body}</svg>"
    )


def _name_cells(root: ET.Element, titles: Sequence[str]) -> None:
    if not titles:
        return
    group = next((each for each in root.iter(f"{_SPACE}g") if each.get("id") == "cells"), None)
    cells = (
        [each for each in group.iter() if each.tag in {f"{_SPACE}path", f"{_SPACE}use"}] if group is not None else []
    )
    cells = [each for each in cells if "style" in each.attrib]
    if len(cells) != len(titles):
        raise RuntimeError(f"{len(titles)} cells were drawn, {len(cells)} are in the picture")
    for cell, text in zip(cells, titles, strict=True):
        ET.SubElement(cell, f"{_SPACE}title").text = clean(text)


def _own(each: ET.Element, *, prefix: str, used: set[str]) -> None:
    """Ids that are referred to get a prefix, others go."""
    name = each.attrib.pop("id", None)
    if name in used:
        each.set("id", f"{prefix}-{name}")
    if _LINK in each.attrib:
        each.set("href", f"#{prefix}-{each.attrib.pop(_LINK).removeprefix('#')}")
    for key, value in list(each.attrib.items()):
        each.set(key, _REFERENCE.sub(lambda found: f"url(#{prefix}-{found[1]})", value))


def _references(each: ET.Element) -> Iterator[str]:
    if _LINK in each.attrib:
        yield each.attrib[_LINK].removeprefix("#")
    for value in each.attrib.values():
        yield from _REFERENCE.findall(value)

"""Words of a log in a document: every one of them may have been written by somebody who wishes harm.

Invariant: what these functions return can neither end the place that it is put into nor be taken for markup there,
holds no control or direction characters, and is not longer than ``LONG``.
"""

from __future__ import annotations

import html as _html
import re
from typing import Final

LONG: Final = 1000
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~$&]|^[-+=]|:(?=//)|(?<=^\d)[.)](?=\s|$)|(?<=www)\.)")
_MENTION = re.compile(r"@(?=\w)")


def clean(text: str, *, most: int = LONG) -> str:
    """Printable characters only, on one line; what is not becomes U+FFFD, what is too long ends with an ellipsis."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(each if each.isprintable() else " " if each.isspace() else "\ufffd" for each in cut)


def short(name: str, *, most: int) -> str:
    """A name in so many characters, without its middle: names of a pool differ at their ends."""
    shown = clean(name)
    if len(shown) <= most:
        return shown
    head = (most - 1) // 3
    return f"{shown[:head]}…{shown[len(shown) - (most - 1 - head) :]}"


def html(text: str, *, most: int = LONG) -> str:
    """For the text of an HTML, SVG or XML element, or a quoted attribute."""
    return _html.escape(clean(text, most=most), quote=True)


def markdown(text: str, *, most: int = LONG) -> str:
    """For a line of Markdown or a cell of a table: nothing in it is a link, a tag, a heading or a mention."""
    return _MENTION.sub("@<!-- -->", _MARKDOWN.sub(r"\\\1", clean(text, most=most)))


def label(text: str) -> str:
    """For the value of a Prometheus label."""
    return clean(text).replace("\\", "\\\\").replace('"', '\\"')


def cell(text: str) -> str:
    """For a CSV cell that a spreadsheet must not run as a formula."""
    shown = clean(text)
    return f"'{shown}" if shown[:1] in {"=", "+", "-", "@", "\t"} else shown

"""Values as YAML text that every reader reads alike: block style, quotes wherever a word could be something else.

Invariant: ``yamlnode.parse`` of what is rendered gives the value back.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from interlace.pods.yamlnode import plain

_PART: Final = r"[A-Za-z0-9_./@+=-]"
_WORD: Final = re.compile(rf"(?:[A-Za-z/]|--?[A-Za-z]|[0-9]+[KMGT]i\Z){_PART}*(?::{_PART}+)*(?:[ ,;]{_PART}+)*\Z")
_TEXT: Final = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]*\Z")
_ODD: Final = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_LONGEST_WORD: Final = 400


def flow(value: Any) -> str:
    """On one line, as JSON."""
    text = json.dumps(value, ensure_ascii=False)
    return _ODD.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def scalar(value: Any) -> str:
    """A single value on one line."""
    if isinstance(value, str) and _WORD.match(value) and len(value) < _LONGEST_WORD and plain(value) == value:
        return value
    return flow(value)


def entry(key: str, value: Any, *, column: int, dash: int) -> list[str]:
    """Lines of a key and its value; ``dash``: columns between a key and the dashes of its list."""
    head = f"{' ' * column}{scalar(key)}:"
    first, rest = under(value, column=column, dash=dash)
    return [head + first, *rest]


def under(value: Any, *, column: int, dash: int) -> tuple[str, list[str]]:
    """What follows the colon of a key in ``column``: the rest of its line, and the lines below."""
    if isinstance(value, dict) and value:
        return "", block(value, column=column + 2, dash=dash)
    if isinstance(value, list) and value:
        return "", block(value, column=column + dash, dash=dash)
    if isinstance(value, str) and _literal(value):
        lines = value.removesuffix("\n").split("\n")
        margin = " " * (column + 2)
        return (" |" if value.endswith("\n") else " |-"), [margin + line if line else "" for line in lines]
    return f" {scalar(value)}", []


def block(value: Any, *, column: int, dash: int) -> list[str]:
    """Lines of a mapping or a list that is not empty, or of a single value, from ``column`` on."""
    if isinstance(value, dict) and value:
        return [line for key, each in value.items() for line in entry(key, each, column=column, dash=dash)]
    if isinstance(value, list) and value:
        return [line for each in value for line in item(each, column=column, dash=dash)]
    first, rest = under(value, column=column - 2, dash=dash)
    return [" " * column + first.lstrip(" "), *rest]


def item(value: Any, *, column: int, dash: int) -> list[str]:
    """Lines of one entry of a list whose dashes are in ``column``."""
    lines = block(value, column=column + 2, dash=dash)
    return [f"{' ' * column}- {lines[0][column + 2 :]}", *lines[1:]]


def _literal(text: str) -> bool:
    """Whether a text of several lines can stand as it is."""
    body = text.removesuffix("\n")
    return "\n" in body and body[0] not in " \t\n" and not body.endswith("\n") and _TEXT.match(text) is not None

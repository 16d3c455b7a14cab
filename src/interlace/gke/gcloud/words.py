"""Words of a shell command: how one line is cut into them, and what becomes of variables, braces and quotes.

Only what has one meaning whatever the machine: variables that the page itself sets, sums of integers, ranges in braces.
Invariant: reading and expanding raise ``PageError`` and nothing else; no command is ever run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

import msgspec

from interlace.gke.gcloud.refusal import PageError

_SEQUENCE: Final = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})(?:\.\.(-?\d{1,6}))?\Z")
_BRACES: Final = re.compile(r"\{([^{}]*)\}")

_MOST: Final = 4096
"""No page makes more words than this of one: a loop over a billion numbers is a mistake."""

_MOST_BRACES: Final = 12
"""Braces of one word."""


class Part(msgspec.Struct, frozen=True):
    """A piece of a word. ``kind``: plain text, a variable, a sum, the current project, or something not taken.

    ``other``: what a variable is where it is not set; None if the page must set it.
    """

    kind: str
    text: str
    quoted: bool = False
    other: str | None = None


class Word(msgspec.Struct, frozen=True):
    """A word as it stands in the page, or an operator. ``line``: where it begins."""

    parts: tuple[Part, ...]
    line: int
    operator: str = ""

    @property
    def literal(self) -> str:
        """The text where nothing is to be expanded, else as much of it as is known."""
        return self.operator or "".join(
            part.text if part.kind == "text" else f"${{{part.text}}}" for part in self.parts
        )


class Unset(msgspec.Struct, frozen=True):
    """A variable whose value cannot be known from the page. ``why``: one clause."""

    why: str


Variables = Mapping[str, "str | Unset"]


def quoted(text: str, *, line: int) -> Word:
    """A word that is just this text."""
    return Word((Part("text", text, quoted=True),), line)


def expand(word: Word, variables: Variables, *, project: str = "") -> list[str]:
    """The words that it stands for: none if it is an empty variable, several if it holds spaces or braces.

    ``project``: what ``$(gcloud config get project)`` gives. Raises PageError.
    """
    fields: list[str] = []
    current: list[str] = []
    begun = False
    for text, splits, begins in _values(word, variables, project):
        if not splits:
            current.append(text)
            begun = begun or begins
            continue
        pieces = text.split()
        if begun and text[:1].isspace():
            fields.append("".join(current))
            current, begun = [], False
        for position, piece in enumerate(pieces):
            if position:
                fields.append("".join(current))
                current = []
            current.append(piece)
            begun = True
        if pieces and text[-1:].isspace():
            fields.append("".join(current))
            current, begun = [], False
    if begun:
        fields.append("".join(current))
    plain = "".join(part.text for part in word.parts if part.kind == "text" and not part.quoted)
    if "{" in plain and _BRACES.search(plain):
        if plain.count("{") > _MOST_BRACES:
            _too_many(word)
        return [each for field in fields for each in _braces(field, word)]
    return fields


def _values(word: Word, variables: Variables, project: str) -> list[tuple[str, bool, bool]]:
    """Text of each part; whether spaces in it separate words; whether it makes a word even if it is empty."""
    found: list[tuple[str, bool, bool]] = []
    for part in word.parts:
        if part.kind == "text":
            found.append((part.text, False, True))
        elif part.kind == "variable":
            found.append((_value(part, word, variables), not part.quoted, part.quoted))
        elif part.kind == "sum":
            found.append((str(_sum(part.text, word, variables)), False, True))
        elif part.kind == "project" and project:
            found.append((project, False, True))
        else:
            raise PageError(
                f"{part.text} is not taken",
                line=word.line,
                cause="What it gives is known only where the page is run.",
                remedy="Write the value itself.",
            )
    return found


def _value(part: Part, word: Word, variables: Variables) -> str:
    value = variables.get(part.text)
    if isinstance(value, str) and (value or part.other is None):
        return value
    if part.other is not None and not isinstance(value, Unset):
        return part.other
    why = value.why if isinstance(value, Unset) else "The page does not set it."
    raise PageError(
        f"the variable {part.text} has no known value",
        line=word.line,
        cause=why,
        remedy=f"Set it in the page, {part.text}=..., or give it with --set {part.text}=VALUE.",
    )


def _sum(text: str, word: Word, variables: Variables) -> int:
    def filled(match: re.Match[str]) -> str:
        value = _value(Part("variable", match[1]), word, variables)
        if not re.fullmatch(r"-?\d{1,9}", value):
            raise PageError(f"{match[1]} is {value!r} and no number", line=word.line, remedy="Write the value itself.")
        return value

    plain = re.sub(r"\$?\{?([A-Za-z_][A-Za-z0-9_]*)\}?", filled, text)
    try:
        return _reckon(ast.parse(plain.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise PageError(
            f"$(({text})) is not taken",
            line=word.line,
            cause="Only sums, differences and products of integers are.",
            remedy="Write the value itself.",
        ) from None


def _reckon(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool) and abs(number) < 10**12:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_reckon(inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _reckon(left) + _reckon(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _reckon(left) - _reckon(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if abs(_reckon(left)) < 10**6 > abs(_reckon(right)):
            return _reckon(left) * _reckon(right)
        case _:
            raise ValueError


def _braces(text: str, word: Word) -> list[str]:
    """All words of ``a{1..3}`` and ``a{b,c}``; one level, as pages use it."""
    match = next((each for each in _BRACES.finditer(text) if "," in each[1] or _SEQUENCE.match(each[1])), None)
    if match is None:
        return [text]
    sequence = _SEQUENCE.match(match[1])
    if sequence:
        inner = [
            str(number) for number in _numbers(int(sequence[1]), int(sequence[2]), abs(int(sequence[3] or 1)), word)
        ]
    else:
        inner = match[1].split(",")
    rest = _braces(text[match.end() :], word)
    if len(inner) * len(rest) > _MOST:
        _too_many(word)
    return [text[: match.start()] + each + more for each in inner for more in rest]


def _numbers(first: int, last: int, step: int, word: Word) -> Sequence[int]:
    """The numbers from ``first`` to ``last``, both included, up or down."""
    numbers = range(first, last + 1, step or 1) if first <= last else range(first, last - 1, -(step or 1))
    if len(numbers) > _MOST:
        _too_many(word)
    return numbers


def sequence(arguments: Sequence[str], word: Word) -> list[str]:
    """What ``seq`` prints: LAST, FIRST LAST, or FIRST STEP LAST. Raises PageError."""
    if not 1 <= len(arguments) <= 3 or not all(re.fullmatch(r"-?\d{1,9}", each) for each in arguments):
        raise PageError(
            f"seq {' '.join(arguments)} is not taken", line=word.line, remedy="Write the numbers themselves."
        )
    numbers = [int(each) for each in arguments]
    first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[-1])
    if len(numbers) == 3:
        step = numbers[1]
    if step == 0 or ((step > 0) != (last >= first) and first != last):
        return []
    return [str(each) for each in _numbers(first, last, abs(step), word)]


def _too_many(word: Word) -> NoReturn:
    raise PageError(f"{word.literal} makes more than {_MOST} words", line=word.line, remedy="Say fewer.")

"""The text form of protocol buffers, read without a schema.

Everything the format allows: ``name: value``, messages in ``{}`` or ``<>`` with or without a colon, lists in ``[]``,
adjacent strings, comments, ``,`` and ``;`` between fields. Invariant: a text is read whole or a TextProtoError names
the line; no input makes it raise anything else or take more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<word>[A-Za-z_][A-Za-z0-9_./]*)
  | (?P<number>[0-9.](?:[eE][+-][0-9]|[A-Za-z0-9_.])*)
  | (?P<mark>[{}<>\[\]:,;-])
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_PLAIN: Final = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_DEEPEST: Final = 64
_CLOSING: Final = {"{": "}", "<": ">"}


class TextProtoError(ValueError):
    """What is wrong, and in which line."""


class Field(msgspec.Struct, frozen=True):
    """``name`` with a scalar as text, or with a message; ``quoted`` tells a string from an enum or a number."""

    name: str
    value: str | tuple[Field, ...]
    line: int
    quoted: bool = False


class _Token(msgspec.Struct, frozen=True):
    kind: Literal["string", "word", "number", "mark", "end"]
    text: str
    line: int


def parse(text: str) -> tuple[Field, ...]:
    """All fields of the text, in order. Raises TextProtoError."""
    reader = _Reader(list(_tokens(text)))
    fields = reader.fields(until="", depth=0)
    return tuple(fields)


def strings(message: tuple[Field, ...], name: str) -> list[str]:
    """The scalars of a field, in order."""
    return [field.value for field in message if field.name == name and isinstance(field.value, str)]


def messages(message: tuple[Field, ...], name: str) -> list[tuple[Field, ...]]:
    """The messages of a field, in order."""
    return [field.value for field in message if field.name == name and not isinstance(field.value, str)]


def _tokens(text: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise TextProtoError(f"line {line}: {text[at]!r} is not expected here")
        kind = match.lastgroup
        if kind in {"string", "word", "number", "mark"}:
            yield _Token(kind, match.group(), line)  # type: ignore[arg-type]
        line += match.group().count("\n")
        at = match.end()
    yield _Token("end", "", line)


class _Reader:
    """Walks over the tokens once."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        if token.kind != "end":
            self._at += 1
        return token

    def fields(self, *, until: str, depth: int) -> Iterator[Field]:
        if depth > _DEEPEST:
            raise TextProtoError(f"line {self._next.line}: messages are nested deeper than {_DEEPEST}")
        while True:
            token = self._take()
            if token.kind == "end" or token.text == until:
                if token.kind == "end" and until:
                    raise TextProtoError(f"line {token.line}: a message is not closed with {until}")
                return
            name = self._name(token)
            yield from self._values(name, depth=depth)
            if self._next.kind == "mark" and self._next.text in ",;":
                self._take()

    def _name(self, token: _Token) -> str:
        if token.kind == "word":
            return token.text
        if token.text == "[" and token.kind == "mark":  # the name of an extension
            word, closing = self._take(), self._take()
            if word.kind == "word" and closing.text == "]":
                return f"[{word.text}]"
        raise TextProtoError(f"line {token.line}: the name of a field is expected, not {token.text!r}")

    def _values(self, name: str, *, depth: int) -> Iterator[Field]:
        colon = self._next.text == ":" and self._next.kind == "mark"
        if colon:
            self._take()
        token = self._next
        if token.kind == "mark" and token.text in _CLOSING:
            yield self._message(name, depth=depth)
        elif colon and token.kind == "mark" and token.text == "[":
            yield from self._list(name, depth=depth)
        elif colon:
            yield self._scalar(name)
        else:
            raise TextProtoError(f"line {token.line}: {name} is followed by neither a colon nor a message")

    def _list(self, name: str, *, depth: int) -> Iterator[Field]:
        self._take()
        if self._next.text == "]":
            self._take()
            return
        while True:
            if self._next.kind == "mark" and self._next.text in _CLOSING:
                yield self._message(name, depth=depth)
            else:
                yield self._scalar(name)
            token = self._take()
            if token.kind == "mark" and token.text == "]":
                return
            if token.kind != "mark" or token.text != ",":
                raise TextProtoError(f"line {token.line}: the list of {name} goes on with a comma or ends with ]")

    def _message(self, name: str, *, depth: int) -> Field:
        opening = self._take()
        inner = tuple(self.fields(until=_CLOSING[opening.text], depth=depth + 1))
        return Field(name, inner, opening.line)

    def _scalar(self, name: str) -> Field:
        token = self._take()
        sign = ""
        if token.kind == "mark" and token.text == "-":
            sign, token = "-", self._take()
        if token.kind == "string" and not sign:
            parts = [_unquote(token.text)]
            while self._next.kind == "string":
                parts.append(_unquote(self._take().text))
            return Field(name, "".join(parts), token.line, quoted=True)
        if token.kind in {"word", "number"}:
            return Field(name, sign + token.text, token.line)
        raise TextProtoError(f"line {token.line}: {name} has no value")


def _unquote(text: str) -> str:
    return _ESCAPE.sub(_unescape, text[1:-1])


def _unescape(match: re.Match[str]) -> str:
    body = match.group(1)
    if body[0] == "x" and len(body) > 1:
        return chr(int(body[1:], 16))
    if body[0] in "uU" and len(body) > 1:
        code = int(body[1:], 16)
        return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"
    if body[0] in "01234567":
        return chr(int(body, 8) & 0xFF)
    return _PLAIN.get(body, body)

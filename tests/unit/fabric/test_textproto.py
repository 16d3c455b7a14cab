"""The text form of protocol buffers: all of its spellings, and no input that crashes the reader."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlace.fabric.textproto import Field, TextProtoError, messages, parse, strings

calm = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Nothing here depends on how fast the machine is."""


def shape(fields: tuple[Field, ...]) -> list[tuple[str, object]]:
    return [(f.name, f.value if isinstance(f.value, str) else shape(f.value)) for f in fields]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        ("# only a comment", []),
        ('a: "x"', [("a", "x")]),
        ("a: 'x'", [("a", "x")]),
        ("a: 1 b: -2.5e-3 c: TRUE_NAME d: true", [("a", "1"), ("b", "-2.5e-3"), ("c", "TRUE_NAME"), ("d", "true")]),
        ('a { b: "x" }', [("a", [("b", "x")])]),
        ('a: { b: "x" }', [("a", [("b", "x")])]),
        ("a < b: 1 >", [("a", [("b", "1")])]),
        ("a {} a {}", [("a", []), ("a", [])]),
        ("a: [1, 2, 3]", [("a", "1"), ("a", "2"), ("a", "3")]),
        ("a: []", []),
        ("a: [{b: 1}, {b: 2}]", [("a", [("b", "1")]), ("a", [("b", "2")])]),
        ('a: "x" "y"\n\'z\'', [("a", "xyz")]),
        ("a: 1, b: 2; c: 3", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("[pkg.ext/name]: 1", [("[pkg.ext/name]", "1")]),
        (r'a: "\n\x41\101é\"\\"', [("a", '\nAAé"\\')]),
        ("a: inf b: -nan c: 0x1F d: 1f", [("a", "inf"), ("b", "-nan"), ("c", "0x1F"), ("d", "1f")]),
        ('a: "#no comment" # a comment\nb: 2', [("a", "#no comment"), ("b", "2")]),
    ],
)
def test_every_spelling_is_read(text: str, wanted: list[tuple[str, object]]) -> None:
    assert shape(parse(text)) == wanted


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a", "line 1: a is followed by neither a colon nor a message"),
        ("a:", "line 1: a has no value"),
        ("\n\na: }", "line 3: a has no value"),
        ("a {", "line 1: a message is not closed with }"),
        ("a < b: 1 }", "line 1: the name of a field is expected, not '}'"),
        ("a: [1 2]", "line 1: the list of a goes on with a comma or ends with ]"),
        ("a: [1,", "line 1: a has no value"),
        ('a: "open', "line 1: '\"' is not expected here"),
        ("1: 2", "line 1: the name of a field is expected, not '1'"),
        ("a: -", "line 1: a has no value"),
        ("}", "line 1: the name of a field is expected"),
        ("a: 1\n@", "line 2: '@' is not expected here"),
        ("a" + "{a" * 70, "messages are nested deeper than 64"),
        ("[a: 1", "line 1: the name of a field is expected, not '['"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, says: str) -> None:
    with pytest.raises(TextProtoError) as caught:
        parse(text)
    assert says in str(caught.value)


@calm
@given(st.text(alphabet="ab:{}<>[]\"'\\,;#-1.\n \x00é", max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(TextProtoError):
        assert isinstance(parse(text), tuple)


SCALARS = st.text(max_size=20)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
TREES = st.recursive(
    st.lists(st.tuples(NAMES, SCALARS), max_size=3),
    lambda inner: st.lists(st.tuples(NAMES, st.one_of(SCALARS, inner)), max_size=3),
    max_leaves=12,
)


def written(tree: object) -> str:
    if isinstance(tree, str):
        return '"' + "".join(f"\\U{ord(c):08x}" if not c.isascii() or c in '"\\\n' else c for c in tree) + '"'
    assert isinstance(tree, list)
    parts = [f"{n}: {written(v)}" if isinstance(v, str) else f"{n} {{ {written(v)} }}" for n, v in tree]
    return "\n".join(parts)


@calm
@given(TREES)
def test_what_is_written_is_read_back(tree: list[tuple[str, object]]) -> None:
    def plain(value: object) -> object:
        return value if isinstance(value, str) else [(name, plain(inner)) for name, inner in value]  # type: ignore[attr-defined]

    assert shape(parse(written(tree))) == plain(tree)


def test_scalars_and_messages_of_a_field_are_told_apart() -> None:
    message = parse("a: 1 a { b: 2 } a: 3")
    assert strings(message, "a") == ["1", "3"]
    assert [shape(each) for each in messages(message, "a")] == [[("b", "2")]]

"""Pages of shell: which commands stand in them, and what is refused because only a shell could tell."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.gke.gcloud.interpreting import invocations
from interlace.gke.gcloud.page import read_page
from interlace.gke.gcloud.refusal import PageError

PROJECT = "training-1"


def commands(text: str, **known: str) -> list[str]:
    """The gcloud commands of a page without ``gcloud``. Raises the first refusal."""
    found = invocations(read_page(text), known=known, project=PROJECT)
    for each in found:
        if each.refusal is not None:
            raise each.refusal
    return [" ".join(each.words) for each in found]


def notes(text: str) -> list[tuple[str, int]]:
    return [(note.kind, note.line) for note in read_page(text).notes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gcloud a b", ["a b"]),
        ("  gcloud a \\\n   b \\\n c\n", ["a b c"]),
        ("gcloud a --x=y\\\nz", ["a --x=yz"]),
        ("$ gcloud a\n```\ngcloud b\n```", ["a", "b"]),
        ("gcloud a # not b", ["a"]),
        ("gcloud a b#c", ["a b#c"]),
        ("# gcloud a\n#gcloud b", []),
        ("gcloud a\r\ngcloud b\r\n", ["a", "b"]),
        ("gcloud a; gcloud b && gcloud c & gcloud d", ["a", "b", "c", "d"]),
        ("gcloud a > log 2>&1 && gcloud b &> /dev/null", ["a", "b"]),
        ("gcloud a --num-nodes 2 > log", ["a --num-nodes 2"]),
        ("gcloud a || true; gcloud b || echo no", ["a", "b"]),
        ("gcloud a | tee log | grep x", ["a"]),
        ("time gcloud a\nsudo gcloud b\nX=1 Y='2 3' gcloud c", ["a", "b", "c"]),
        ("gcloud a '--b=c d' \"e f\" g\\ h", ["a --b=c d e f g h"]),
        ("gcloud a 'b\nc'", ["a b\nc"]),
        ("It's no use to call gcloud here, 'quoted or not.\ngcloud a", ["a"]),
        ("gcloud CLI is a program. Update it.\ngcloud a", ["a"]),
        ('NCCL_ALGO=Ring,Tree\n"LD_LIBRARY_PATH=\\"x\\"",\ngcloud a', ["a"]),
        ("kubectl apply -f - <<EOF\ngcloud a\nEOF\ngcloud b", ["b"]),
        ("cat >run.sh <<-'END'\n\tgcloud a\n\tEND\ngcloud b", ["b"]),
        ("kubectl get pods \\\n  -n gcloud a\ngcloud b", ["b"]),
        ("cd /tmp && gcloud a", ["a"]),
    ],
)
def test_the_commands_of_a_page_are_found(text: str, expected: list[str]) -> None:
    assert commands(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=x\ngcloud $A ${A}y \"$A z\" '$A'", ["x xy x z $A"]),
        ('export A=x B="y z"\ngcloud $A $B', ["x y z"]),
        ("A=$B\ngcloud ${C:-d} ${E-f}", ["d f"]),
        ("A=1; A=2\ngcloud $A", ["2"]),
        ("F='--a=b --c'\ngcloud x $F \"$F\"", ["x --a=b --c --a=b --c"]),
        ('E=\ngcloud a $E b "$E"', ["a b "]),
        ("P=$(gcloud config get-value project)\ngcloud a $P", [f"a {PROJECT}"]),
        ("P=`gcloud config get project`\ngcloud a --p=$P", [f"a --p={PROJECT}"]),
        ("N=3\ngcloud a 10.$((N + 1)).$((2*N-1)).0", ["a 10.4.5.0"]),
        ("gcloud a{1..3} {b,c}d", ["a1 a2 a3 bd cd"]),
        ("gcloud a '{1..3}' {}", ["a {1..3} {}"]),
        ("gcloud a \\\n  --x=$ --y=a$", ["a --x=$ --y=a$"]),
    ],
)
def test_variables_of_the_page_are_filled_in(text: str, expected: list[str]) -> None:
    assert commands(text) == expected


def test_a_variable_from_outside_wins_over_the_page() -> None:
    assert commands("A=x\ngcloud $A", A="y") == ["y"]


@pytest.mark.parametrize(
    "head",
    [
        "for N in 1 2 3; do",
        "for N in 1 2 3\ndo",
        "for N in $(seq 3); do",
        "for N in $(seq 1 $LAST)\n  do",
        "for N in {1..3}; do",
        "for ((N=1; N<=3; N++)); do",
        "for (( N = 1; N < 4; ++N ))\ndo",
        "L='1 2 3'\nfor N in $L; do",
    ],
)
def test_loops_over_what_the_page_says_are_unrolled(head: str) -> None:
    text = f"LAST=3\n{head}\n  echo $N\n  gcloud net-$N --x\n  sleep 1\ndone\ngcloud end"
    assert commands(text) == ["net-1 --x", "net-2 --x", "net-3 --x", "end"]


def test_a_loop_may_stand_in_one_line_and_in_another_loop() -> None:
    text = "for A in x y; do for B in 1 2; do gcloud $A-$B; gcloud z; done; done; gcloud end"
    assert commands(text) == ["x-1", "z", "x-2", "z", "y-1", "z", "y-2", "z", "end"]


def test_seq_counts_in_steps_and_down() -> None:
    assert commands("for N in $(seq 1 2 5) $(seq 3 -1 2) $(seq 2 1); do gcloud $N; done") == ["1", "3", "5", "3", "2"]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("gcloud a\n  --no-b\n", [("stray-flag", 2)]),
        ("gcloud a \\\n\n--b", [("trailing-backslash", 1), ("stray-flag", 3)]),
        ("gcloud a \\\n```\ntext", [("trailing-backslash", 1)]),
        ("gcloud a \\", [("trailing-backslash", 1)]),
        ("gcloud a \\\ngcloud b", [("swallowed-command", 1)]),
        ("gcloud a \\ \n --b", [("space-after-backslash", 1)]),
        ("[--b \\\n c", [("stray-flag", 1)]),
        ("if ! gcloud x describe y; then\n gcloud x create y\nfi", [("unless-there", 1)]),
    ],
)
def test_what_is_odd_about_line_ends_is_noted(text: str, kinds: list[tuple[str, int]]) -> None:
    assert notes(text) == kinds


def test_what_is_made_unless_it_is_there_is_read() -> None:
    assert commands("if ! gcloud x describe y >/dev/null 2>&1; then\n gcloud x create y\nfi\ngcloud z") == [
        "x create y",
        "z",
    ]
    assert commands("gcloud x describe y || gcloud x create y; gcloud z") == ["x describe y", "x create y", "z"]


@pytest.mark.parametrize(
    "construct",
    [
        'if [ -n "$X" ]; then\n  gcloud x create y\nfi',
        "f() {\n  gcloud x create y\n}",
        "case a in\n  b) true\n  gcloud x create y\nesac",
    ],
)
def test_a_command_within_a_condition_says_so(construct: str) -> None:
    (found,) = invocations(read_page(construct), known={}, project="")
    assert found.inside


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("gcloud $X", "X"),
        ("X=$(date)\ngcloud a $X", "date"),
        ("gcloud $(date)", "date"),
        ("gcloud `date`", "date"),
        ("X=(a b)\ngcloud ${X[0]}", "X"),
        ("if [ -n x ]; then\n  X=1\nfi\ngcloud $X", "X"),
        ("for A in {1..99}; do for B in {1..99}; do echo; done; done; gcloud a", "4096"),
        ("gcloud ${X%-a}", "X%-a"),
        ("gcloud $1", "$1"),
        ("gcloud $((2**9))", "2**9"),
        ("gcloud $((X))", "X"),
        ("gcloud 'a", "quote"),
        ('gcloud "a', "quote"),
        ("gcloud ${a", "${"),
        ("gcloud $(a", "$("),
        ("gcloud $((a", "$(("),
        ("gcloud <<EOF\na\nEOF", "<<"),
        ("gcloud a < file", "<"),
        ("gcloud (a)", "("),
        ("gcloud create <NAME>", "NAME"),
        ("gcloud a \u201cb\u201d", "\u201c"),
        ("gcloud a\u00a0b", "\\xa0"),
        ("gcloud a || gcloud b create", "||"),
        ("gcloud a | xargs gcloud b", "|"),
        ("if gcloud a create b; then\n true\nfi", "condition"),
        ("[ -z $A ] && gcloud a create b", "condition"),
        ("for N in 1 2; do\ngcloud a", "no end"),
        ("for N in 1 2; do\nbreak\ndone", "break"),
        ("for N in {1..99999}; do\ngcloud a\ndone", "99999"),
        ("for N in $(seq 1 999999); do\ngcloud a\ndone", "4096"),
        ("for ((N=0; N<X; N++)); do\ngcloud a\ndone", "N<X"),
        ("cat <<EOF\nno end", "EOF"),
    ],
)
def test_what_only_a_shell_could_tell_is_refused_by_name(text: str, word: str) -> None:
    with pytest.raises(PageError) as caught:
        commands(text)
    assert word in str(caught.value)
    assert caught.value.line >= 1


PIECES = st.sampled_from(
    ["gcloud", "compute networks create n", "--a=b", " ", "\n", "\\\n", "\\", "'", '"', "$", "${", "}", "$((", "))",
     "$(", ")", "`", "for N in", "1 2", "; do", "\ndone", "do", ";", "&&", "||", "|", "<<EOF", "\nEOF\n", "<", ">", "#",
     "N", "X=", "(", "if ! ", "; then", "fi", "{1..3}", "{", "[--x", "]", "seq 1 3", "\u201c", "\t", "\r\n", "```"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join), st.lists(PIECES, max_size=25).map(" ".join)
    )
)
def test_no_text_makes_the_reader_raise_anything_but_its_own_error(text: str) -> None:
    with suppress(PageError):
        assert all(each.line >= 1 for each in invocations(read_page(text), known={"N": "1"}, project=PROJECT))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00"), max_size=12), max_size=5)
)
def test_a_quoted_word_comes_out_as_it_went_in(words: list[str]) -> None:
    quoted = ["'" + word.replace("'", "'\\''") + "'" for word in words]
    (found,) = invocations(read_page(" ".join(["gcloud", "a", *quoted])), known={}, project="")
    assert list(found.words) == ["a", *words]

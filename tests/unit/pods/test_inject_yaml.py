"""YAML that is changed in place: what is not asked for stays, byte for byte."""

from __future__ import annotations

import copy
import sys
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.pods import yamltext
from interlace.pods.yamledit import edit
from interlace.pods.yamlnode import YamlError, parse

POD = """\
# the job of the year
apiVersion: v1
kind: Pod   # not a Job
metadata:
  name: 'one'
spec:
  # what runs
  containers:
    - name: main   # the work
      image: "docker.io/library/busybox:1.37"
      args: [a, 'b']   # flow
      env:
        - {name: A, value: "1"}
        # a remark that belongs to nobody
      command:
        - sh
        - -c
        - |
          echo hi

          echo ho

    # the second
    - name: other
      image: x
      emptyDir:
  restartPolicy: Never
"""


def value(text: str) -> Any:
    root = parse(text)
    assert root is not None
    return root.value()


def lines_put_in(before: str, after: str) -> list[str]:
    """Lines of ``after`` that are new; fails if one of ``before`` is gone or has moved."""
    rest = iter(after.splitlines())
    new: list[str] = []
    for line in before.splitlines():
        for other in rest:
            if other == line:
                break
            new.append(other)
        else:
            raise AssertionError(f"{line!r} is gone")
    return [*new, *rest]


def test_new_keys_and_entries_are_put_in_and_nothing_else_changes() -> None:
    new = value(POD)
    new["metadata"]["annotations"] = {"a/b": "one\ntwo\n"}
    main = new["spec"]["containers"][0]
    main["env"].append({"name": "B", "value": "2"})
    main["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
    new["spec"]["initContainers"] = [{"name": "first", "image": "z"}]
    new["spec"]["containers"].insert(0, {"name": "zero"})
    text, lost = edit(POD, new)
    assert not lost
    assert value(text) == new
    assert lines_put_in(POD, text) == [
        "  annotations:",
        "    a/b: |",
        "      one",
        "      two",
        "    - name: zero",
        "        - name: B",
        '          value: "2"',
        "      volumeMounts:",
        "        - name: shm",
        "          mountPath: /dev/shm",
        "  initContainers:",
        "    - name: first",
        "      image: z",
    ]


def test_values_are_exchanged_in_place_with_their_quotes() -> None:
    new = value(POD)
    new["metadata"]["name"] = "it's"
    new["spec"]["containers"][0]["image"] = "z"
    new["spec"]["containers"][0]["args"] = ["/bin/sh", "a", "b", "c"]
    new["spec"]["containers"][0]["command"] = ["x", *new["spec"]["containers"][0]["command"]]
    new["spec"]["containers"][1]["emptyDir"] = {}
    text, lost = edit(POD, new)
    assert not lost
    assert value(text) == new
    assert "name: 'it''s'\n" in text
    assert 'image: "z"\n' in text
    assert 'args: ["/bin/sh", a, \'b\', "c"]   # flow\n' in text
    assert "      command:\n        - x\n        - sh\n" in text
    assert "      emptyDir: {}\n" in text
    assert text.count("#") == POD.count("#")


def test_an_empty_value_gets_its_lines_below_and_its_remark_stays() -> None:
    text, lost = edit(
        "a:\n  env: []  # none yet\n  b: null # later\nc: 1\n", {"a": {"env": ["x"], "b": {"d": 1}}, "c": 1}
    )
    assert (text, lost) == ("a:\n  env:  # none yet\n  - x\n  b: # later\n    d: 1\nc: 1\n", False)


def test_what_aliases_share_is_changed_where_it_is_asked_for_alone() -> None:
    before = "one: &env\n- a: 1\ntwo: *env\nthree: {<<: &m {x: 1}}\nfour:\n  <<: *m\n  y: 2\n"
    new = value(before)
    new["two"] = [{"a": 1}, {"b": 2}]
    new["four"]["x"] = 5
    text, lost = edit(before, new)
    assert not lost
    assert value(text) == new
    assert text.startswith("one: &env\n- a: 1\ntwo:\n- a: 1\n- b: 2\nthree: {<<: &m {x: 1}}\n")


def test_what_is_shared_is_written_out_where_only_some_of_its_users_change() -> None:
    before = "a: &x  # shared\n- v: 1\nb: *x\nc: &y {k: 1}\nd:\n  <<: *y\n  own: 2 # mine\ne:\n- *y\n- f\n"
    new = value(before)
    new["a"] = [{"v": 1}, {"v": 2}]
    text, lost = edit(before, new)
    assert not lost
    assert value(text) == new
    assert text == (
        "a: &x  # shared\n- v: 1\n- v: 2\nb:\n- v: 1\nc: &y {k: 1}\nd:\n  k: 1\n  own: 2 # mine\ne:\n- k: 1\n- f\n"
    )


def test_what_stands_before_a_document_that_is_written_anew_stays() -> None:
    head = "%YAML 1.1\n# one\n--- # two\n\n# three\n"
    text, lost = edit(head + "[a: 1, ? b : 2]\n", ["c"])
    assert (text, lost) == (f"{head}- c\n", True)
    assert edit("# one\n\n- - 1 # two\n", [[0, 1]]) == ("# one\n\n- - 0\n  - 1\n", True)


def test_line_ends_of_windows_stay() -> None:
    before = POD.replace("\n", "\r\n")
    new = value(before)
    new["metadata"]["labels"] = {"a": "b"}
    new["spec"]["containers"][1]["emptyDir"] = {"medium": "Memory"}
    text, lost = edit(before, new)
    assert not lost
    assert value(text) == new
    assert text.count("\n") == text.count("\r\n")


def test_a_document_that_says_it_already_is_given_back() -> None:
    assert edit(POD, value(POD)) == (POD, False)


def test_a_text_without_a_last_newline_is_changed_too() -> None:
    text, _ = edit("a:\n- b: |-\n    hi", {"a": [{"b": "hi", "c": 1}]})
    assert value(text) == {"a": [{"b": "hi", "c": 1}]}


def test_a_shape_that_takes_no_lines_is_written_anew_and_said_so() -> None:
    text, lost = edit("a: # stays\n- - 1 # goes\nb: 1\n", {"a": [[0, 1]], "b": 1})
    assert lost
    assert value(text) == {"a": [[0, 1]], "b": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "twice"),
        ("a: &a [*a]\n", "inside of what it stands for"),
        ("a: *b\n", "stands for nothing"),
        ("a: !Ref x\n", "no tag"),
        ("? [a]\n: b\n", "plain word"),
        ("[" * 100, "nested"),
        ("a: b: c\n", "not allowed"),
        ("a: 1\n---\nb: 1\n", "second document"),
        ("a:\n\t- b\n", "cannot start"),
        ("<<: 5\n", "merged"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, said: str) -> None:
    with pytest.raises(YamlError, match=said):
        parse(text)


def test_a_text_that_grows_by_its_aliases_is_refused_before_it_has_grown() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    with pytest.raises(YamlError, match="written out"):
        parse(bomb)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("yes", True), ("off", False), ("~", None), ("", None), ("0660", 432), ("0o17", 15), ("0x1F", 31), ("-5", -5),
        ("1_000", 1000), ("1.5", 1.5), ("1e3", 1000.0), ("08", 8.0), ("2024-01-01", "2024-01-01"), ("1:30", "1:30"),
        ("v1", "v1"), ("+1", 1), (".inf", float("inf")),
    ],
)  # fmt: skip
def test_scalars_mean_what_kubernetes_reads(text: str, meant: Any) -> None:
    assert value(f"a: {text}\n") == {"a": meant}


WORDS = st.text(alphabet=st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    [
        "yes",
        "null",
        "1",
        "",
        "- a",
        "a: b",
        "#x",
        " a",
        "a ",
        "x\ny\n",
        "x\n\n",
        "\n",
        "a\n b",
        "{",
        "é\u2028",
        "0x1",
        "a\tb",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(WORDS, VALUES, min_size=1, max_size=4)


@given(MAPPINGS, st.sampled_from([0, 2]))
@settings(max_examples=80, deadline=None)
def test_what_is_rendered_reads_back(mapping: dict[str, Any], dash: int) -> None:
    text = "\n".join([*yamltext.block(mapping, column=0, dash=dash), ""])
    assert value(text) == mapping
    assert yaml.safe_load(text).keys() is not None


def _grow(draw: st.DrawFn, old: Any) -> Any:
    """The same with something new in it."""
    if isinstance(old, dict):
        grown = {key: _grow(draw, each) if draw(st.booleans()) else each for key, each in old.items()}
        return {**grown, **draw(st.dictionaries(WORDS, VALUES, max_size=2))}
    if isinstance(old, list):
        grown_list = [_grow(draw, each) if draw(st.booleans()) else each for each in old]
        return draw(st.lists(VALUES, max_size=1)) + grown_list + draw(st.lists(VALUES, max_size=1))
    return draw(VALUES) if draw(st.booleans()) else old


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, Any]:
    old = draw(MAPPINGS)
    style = draw(st.sampled_from([None, True, False]))
    text = yaml.safe_dump(old, default_flow_style=style, sort_keys=False, allow_unicode=draw(st.booleans()))
    return text, _grow(draw, copy.deepcopy(old))


@given(pairs())
@settings(max_examples=80, deadline=None)
def test_whatever_is_asked_for_is_what_the_text_says_afterwards(pair: tuple[str, Any]) -> None:
    text, new = pair
    changed, _ = edit(text, new)
    assert value(changed) == new
    assert edit(changed, new) == (changed, False)


def test_twice_as_many_keys_take_twice_the_steps() -> None:
    def steps(keys: int) -> int:
        taken = 0

        def count(*_: object) -> None:
            nonlocal taken
            taken += 1

        text = "".join(f"k{number}: 1\n" for number in range(keys))
        sys.setprofile(count)
        try:
            root = parse(text)
        finally:
            sys.setprofile(None)
        assert root is not None
        assert root.get(f"k{keys - 1}") is not None
        return taken

    assert steps(1000) < 2.2 * steps(500)

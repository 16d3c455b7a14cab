"""The three kinds of patch, by their standards."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.apiserver.errors import ApiFault
from interlace.sim.apiserver.patching import json_patch, merge_patch, strategic_patch
from interlace.sim.apiserver.shapes import builtin

POD = builtin("v1", "Pod")

values = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_does_as_rfc_7386_says(target: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(target, patch) == expected


@given(objects, objects)
def test_a_patch_never_changes_its_target_and_applies_twice_as_once(target: Any, patch: Any) -> None:
    before = copy.deepcopy(target)
    once = merge_patch(target, patch)
    assert target == before
    assert merge_patch(once, patch) == once


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/a/1", "value": "x"}], {"a": ["1", "x", "2"], "b/c": {"~": 1}}),
        ([{"op": "add", "path": "/a/-", "value": "x"}], {"a": ["1", "2", "x"], "b/c": {"~": 1}}),
        ([{"op": "remove", "path": "/a/0"}], {"a": ["2"], "b/c": {"~": 1}}),
        ([{"op": "replace", "path": "/b~1c/~0", "value": 2}], {"a": ["1", "2"], "b/c": {"~": 2}}),
        ([{"op": "move", "from": "/b~1c/~0", "path": "/d"}], {"a": ["1", "2"], "b/c": {}, "d": 1}),
        ([{"op": "copy", "from": "/a", "path": "/d"}], {"a": ["1", "2"], "b/c": {"~": 1}, "d": ["1", "2"]}),
        ([{"op": "test", "path": "/a/0", "value": "1"}, {"op": "remove", "path": "/a"}], {"b/c": {"~": 1}}),
        ([{"op": "test", "path": "/none", "value": None}], {"a": ["1", "2"], "b/c": {"~": 1}}),
    ],
)
def test_json_patch_does_as_rfc_6902_says(operations: Any, expected: Any) -> None:
    target = {"a": ["1", "2"], "b/c": {"~": 1}}
    assert json_patch(target, operations) == expected
    assert target == {"a": ["1", "2"], "b/c": {"~": 1}}


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "remove", "path": "/none"}], 422),
        ([{"op": "add", "path": "/none/deep", "value": 1}], 422),
        ([{"op": "add", "path": "/a/9", "value": 1}], 422),
        ([{"op": "test", "path": "/a", "value": 1}], 422),
        ([{"op": "remove", "path": "/a/x"}], 422),
        ([{"op": "dance", "path": "/a"}], 400),
        ([{"op": "add", "path": "a"}], 400),
        ([{"op": "move", "path": "/a"}], 400),
        (["remove"], 400),
        ({"op": "remove", "path": "/a"}, 400),
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused(operations: Any, code: int) -> None:
    with pytest.raises(ApiFault) as caught:
        json_patch({"a": ["1"]}, operations)
    assert caught.value.code == code


def containers(*names: str) -> list[dict[str, Any]]:
    """Containers of these names."""
    return [{"name": name} for name in names]


def pod(*names: str) -> dict[str, Any]:
    """A pod of these containers."""
    return {"spec": {"containers": containers(*names)}}


def strategic(target: Any, patch: Any) -> Any:
    """The names of the containers afterwards."""
    return [item["name"] for item in strategic_patch(target, patch, POD)["spec"]["containers"]]


def test_strategic_merge_finds_items_by_key_and_puts_new_ones_first() -> None:
    assert strategic(pod("a", "b"), pod("c")) == ["c", "a", "b"]
    changed = strategic_patch(pod("a"), {"spec": {"containers": [{"name": "a", "image": "x"}]}}, POD)
    assert changed == {"spec": {"containers": [{"name": "a", "image": "x"}]}}


def test_strategic_merge_follows_directives() -> None:
    delete = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    assert strategic(pod("a", "b"), delete) == ["b"]
    replace = {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}
    assert strategic(pod("a", "b"), replace) == ["z"]
    order = {"spec": {"$setElementOrder/containers": containers("b", "a")}}
    assert strategic(pod("a", "b"), order) == ["b", "a"]
    primitive = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}}
    assert strategic_patch({"metadata": {"finalizers": ["x", "y"]}}, primitive, POD) == {
        "metadata": {"finalizers": ["y"]}
    }
    whole = {"spec": {"$patch": "replace", "nodeName": "n"}}
    assert strategic_patch(pod("a"), whole, POD) == {"spec": {"nodeName": "n"}}
    retain = {"spec": {"$retainKeys": ["nodeName"], "nodeName": "n"}}
    assert strategic_patch(pod("a"), retain, POD) == {"spec": {"nodeName": "n"}}


def test_strategic_merge_needs_keys_and_known_directives() -> None:
    with pytest.raises(ApiFault) as caught:
        strategic_patch(pod("a"), {"spec": {"containers": [{"image": "x"}]}}, POD)
    assert str(caught.value) == "map: map[image:x] does not contain declared merge key: name"
    with pytest.raises(ApiFault) as caught:
        strategic_patch(pod("a"), {"spec": {"$patch": "dance"}}, POD)
    assert caught.value.code == 400

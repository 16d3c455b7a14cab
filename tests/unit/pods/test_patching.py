"""JSON patches: what was asked for, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlace.pods.patching import difference
from interlace.sim.apiserver.patching import json_patch

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.just(1.0), st.sampled_from(["", "a", "b"]))
KEYS = st.sampled_from(["name", "a", "b/c", "d~e", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def exactly(value: Any) -> Any:
    """A form in which 1, 1.0 and true differ."""
    if isinstance(value, dict):
        return {key: exactly(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [exactly(inner) for inner in value]
    return (type(value).__name__, value)


@given(OBJECTS, OBJECTS)
@settings(max_examples=300, deadline=None)
def test_a_patch_leads_from_one_value_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy(old)
    patched = json_patch(old, list(difference(old, new)))
    assert exactly(patched) == exactly(new)
    assert exactly(old) == exactly(before)


@given(OBJECTS)
@settings(max_examples=50, deadline=None)
def test_equal_values_need_no_patch(value: dict[str, Any]) -> None:
    assert difference(value, copy.deepcopy(value)) == ()


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (named("main"), [*named("side"), *named("main")], ["add /l/0"]),
        (named("a", "b"), named("a", "b", "c"), ["add /l/2"]),
        (named("a", "b"), [{"name": "a", "x": 1}, {"name": "b"}], ["add /l/0/x"]),
        (named("a", "b"), [{"name": "side"}, {"name": "a", "x": 1}, {"name": "b"}], ["add /l/0", "add /l/1/x"]),
        (named("a", "b", "c"), named("a", "c"), ["remove /l/1"]),
        (["x"], ["x", "y"], ["add /l/1"]),
    ],
)
def test_elements_that_stay_are_not_written_again(old: list[Any], new: list[Any], paths: list[str]) -> None:
    found = difference({"l": old}, {"l": new})
    assert [f"{operation['op']} {operation['path']}" for operation in found] == paths

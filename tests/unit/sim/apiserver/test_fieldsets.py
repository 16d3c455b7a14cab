"""Sets of fields obey the laws of sets, and values and sets agree with each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.apiserver import fieldsets
from interlace.sim.apiserver.fieldsets import MEMBER
from interlace.sim.apiserver.shapes import Shape, builtin, from_schema

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "integer"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {"type": "array", "items": {"type": "integer"}},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "rows": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "value": {"type": "integer"}},
                    },
                },
            },
        }
    },
}
SHAPE: Shape = from_schema(SCHEMA)

names = st.sampled_from(["x", "y", "z"])
rows = st.lists(names, unique=True, max_size=3).flatmap(
    lambda chosen: st.tuples(*(st.fixed_dictionaries({"name": st.just(n), "value": st.integers(0, 3)}) for n in chosen))
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "a": st.sampled_from(["1", "2"]),
        "b": st.integers(0, 2),
        "labels": st.dictionaries(names, st.sampled_from(["1", "2"]), max_size=3),
        "whole": st.lists(st.integers(0, 2), max_size=2),
        "set": st.lists(names, unique=True, max_size=3),
        "rows": rows.map(list),
    },
)
objects = specs.map(lambda spec: {"spec": spec})
trees = objects.map(lambda obj: fieldsets.fields_of(obj, SHAPE))


@given(trees)
def test_rendering_and_parsing_are_inverse(tree: dict[str, Any]) -> None:
    assert fieldsets.parse(fieldsets.render(tree)) == tree


@given(trees, trees, trees)
def test_sets_behave_as_sets(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    assert fieldsets.union(a, a) == a
    assert fieldsets.union(a, b) == fieldsets.union(b, a)
    assert fieldsets.difference(a, a) == {}
    assert fieldsets.intersection(a, b) == fieldsets.intersection(b, a)
    both = fieldsets.union(fieldsets.difference(a, b), fieldsets.intersection(a, b))
    assert both == a
    assert fieldsets.difference(fieldsets.union(a, b), c) == fieldsets.union(
        fieldsets.difference(a, c), fieldsets.difference(b, c)
    )
    assert fieldsets.without(a, a) == {}


@given(objects, objects)
def test_comparing_tells_what_came_went_and_changed(old: dict[str, Any], new: dict[str, Any]) -> None:
    removed, modified, added = fieldsets.compare(old, new, SHAPE)
    back = fieldsets.compare(new, old, SHAPE)
    assert (removed, modified, added) == (back[2], back[1], back[0])
    assert fieldsets.intersection(removed, added) == {}
    assert fieldsets.compare(old, old, SHAPE) == ({}, {}, {})


@given(objects, objects)
def test_merging_keeps_what_is_there_and_takes_what_is_stated(live: dict[str, Any], config: dict[str, Any]) -> None:
    merged = fieldsets.merge(live, config, SHAPE)
    assert fieldsets.merge(merged, config, SHAPE) == merged
    stated = fieldsets.fields_of(config, SHAPE)
    _, modified, added = fieldsets.compare(merged, fieldsets.merge(merged, config, SHAPE), SHAPE)
    assert not fieldsets.intersection(stated, fieldsets.union(modified, added))
    assert fieldsets.difference(fieldsets.fields_of(live, SHAPE), fieldsets.fields_of(merged, SHAPE)) == {} or (
        # an empty map or list that was filled is no member any more
        merged != live
    )


@given(objects)
def test_removing_everything_leaves_nothing(obj: dict[str, Any]) -> None:
    everything = fieldsets.name_fields(fieldsets.fields_of(obj, SHAPE), SHAPE)
    left = fieldsets.remove(obj, everything, SHAPE)
    assert left is None or left == {"spec": {}} or fieldsets.fields_of(left, SHAPE) == {}


def test_list_items_are_called_by_their_keys() -> None:
    tree = fieldsets.fields_of({"spec": {"rows": [{"name": "x", "value": 1}], "set": ["a"], "whole": [1]}}, SHAPE)
    assert fieldsets.render(tree) == {
        "f:spec": {
            "f:rows": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:value": {}}},
            "f:set": {'v:"a"': {}},
            "f:whole": {},
        }
    }
    assert fieldsets.paths(tree) == [
        '.spec.rows[name="x"]',
        '.spec.rows[name="x"].name',
        '.spec.rows[name="x"].value',
        '.spec.set[="a"]',
        ".spec.whole",
    ]


def test_an_absent_key_takes_its_default() -> None:
    ports = builtin("v1", "Pod").child("spec").child("containers")
    assert ports.of is not None
    step = fieldsets.step_of({"containerPort": 80}, ports.of.child("ports"))
    assert step == 'k:{"containerPort":80,"protocol":"TCP"}'


def test_an_item_without_any_key_is_an_error() -> None:
    with pytest.raises(ValueError, match="omits key field 'name'"):
        fieldsets.fields_of({"spec": {"rows": [{"value": 1}]}}, SHAPE)


def test_a_row_stated_twice_is_found() -> None:
    twice = {"spec": {"rows": [{"name": "x"}, {"name": "x"}]}}
    assert fieldsets.repeated(twice, SHAPE) == '.spec.rows: duplicate entries for key [name="x"]'
    assert fieldsets.repeated({"spec": {"rows": [{"name": "x"}, {"name": "y"}]}}, SHAPE) == ""


def test_lists_that_merge_keep_the_order_of_both() -> None:
    def merged(live: str, config: str) -> str:
        result = fieldsets.merge({"spec": {"set": list(live)}}, {"spec": {"set": list(config)}}, SHAPE)
        return "".join(result["spec"]["set"])

    assert merged("ab", "c") == "abc"
    assert merged("abc", "cb") == "acb"
    assert merged("abc", "abc") == "abc"
    assert merged("", "ba") == "ba"


def test_the_member_mark_is_no_field_name() -> None:
    assert fieldsets.parse({"f:a": {}, "f:b": {".": {}, "f:c": {}}}) == {
        "f:a": {MEMBER: True},
        "f:b": {MEMBER: True, "f:c": {MEMBER: True}},
    }

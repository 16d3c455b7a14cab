"""Custom objects are defaulted, pruned and judged as apiextensions does it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.api.crd import crds
from interlace.sim.apiserver.schema import CrdSchema

DOMAIN = CrdSchema(crds()[0], "v1beta1")


def crd(schema: dict[str, Any], **version: Any) -> CrdSchema:
    return CrdSchema(
        {
            "spec": {
                "group": "example.com",
                "names": {"kind": "Thing"},
                "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}} | version],
            }
        },
        "v1",
    )


def thing(**properties: Any) -> CrdSchema:
    return crd({"type": "object", "properties": properties})


def domain(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "d"},
        "spec": {"channel": {"resourceClaimTemplate": {"name": "t"}}} | spec,
    }


def texts(schema: CrdSchema, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(cause) for cause in schema.validate(obj, old)]


def test_a_bare_domain_gets_its_defaults_and_is_valid() -> None:
    obj = domain()
    DOMAIN.default(obj)
    assert obj["spec"] == {
        "channel": {"resourceClaimTemplate": {"name": "t"}, "allocationMode": "Single"},
        "numNodes": 0,
    }
    assert "status" not in obj
    assert not DOMAIN.validate(obj)


def test_a_null_gives_way_to_the_default_or_to_nothing() -> None:
    obj = domain(numNodes=None, channel={"resourceClaimTemplate": {"name": "t"}, "allocationMode": None})
    obj["status"] = None
    DOMAIN.default(obj)
    assert obj["spec"]["numNodes"] == 0
    assert obj["spec"]["channel"]["allocationMode"] == "Single"
    assert "status" not in obj


def test_unknown_fields_are_dropped_and_named_but_not_those_of_metadata() -> None:
    obj = domain(extra=1)
    obj["spec"]["channel"]["resourceClaimTemplate"]["namespace"] = "x"
    obj["status"] = {"status": "Ready", "nodes": [{"name": "n", "gpu": 4}]}
    obj["metadata"]["unheard"] = "of"
    obj["surprise"] = {}
    assert DOMAIN.prune(obj) == [
        "spec.channel.resourceClaimTemplate.namespace",
        "spec.extra",
        "status.nodes[0].gpu",
        "surprise",
    ]
    assert obj["metadata"]["unheard"] == "of"
    assert "extra" not in obj["spec"]


def test_the_spec_of_a_domain_cannot_change() -> None:
    old, new = domain(), domain(numNodes=3)
    for obj in (old, new):
        DOMAIN.default(obj)
    (cause,) = DOMAIN.validate(new, old)
    assert (cause.field, cause.message, cause.reason) == (
        "spec",
        "Invalid value: A computeDomain.spec is immutable",
        "FieldValueInvalid",
    )
    assert not DOMAIN.validate(new)
    assert not DOMAIN.validate(copy.deepcopy(old), old)


NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"spec": None}, ["spec: Required value", NOT_CHECKED]),
        ({"channel": None}, ["spec.channel: Required value", NOT_CHECKED]),
        (
            {"channel": {"resourceClaimTemplate": {}}},
            ["spec.channel.resourceClaimTemplate.name: Required value", NOT_CHECKED],
        ),
        (
            {"channel": {"resourceClaimTemplate": {"name": "t"}, "allocationMode": "Some"}},
            [
                'spec.channel.allocationMode: Unsupported value: "Some": supported values: "All", "Single"',
                NOT_CHECKED,
            ],
        ),
        (
            {"numNodes": -1},
            ["spec.numNodes: Invalid value: -1: spec.numNodes in body should be greater than or equal to 0"],
        ),
        (
            {"numNodes": "3"},
            [
                'spec.numNodes: Invalid value: "string": spec.numNodes in body must be of type integer: "string"',
                NOT_CHECKED,
            ],
        ),
        (
            {"channel": []},
            ['spec.channel: Invalid value: "array": spec.channel in body must be of type object: "array"', NOT_CHECKED],
        ),
    ],
)
def test_a_bad_spec_is_explained_in_the_words_of_the_server(change: dict[str, Any], expected: list[str]) -> None:
    obj = domain(**{k: v for k, v in change.items() if k != "spec"})
    if "spec" in change:
        obj["spec"] = change["spec"]
    DOMAIN.default(obj)
    assert texts(DOMAIN, obj) == expected


def test_a_node_may_be_listed_once_and_is_named_when_it_is_not() -> None:
    obj = domain()
    node = {"name": "n", "ipAddress": "", "cliqueID": ""}
    obj["status"] = {"status": "Ready", "nodes": [node, dict(node), dict(node)]}
    DOMAIN.default(obj)
    assert texts(DOMAIN, obj) == ['status.nodes[1]: Duplicate value: {"name":"n"}']


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "string", "maxLength": 2}, "abc", "f: Too long: may not be more than 2 bytes"),
        ({"type": "string", "minLength": 2}, "a", 'f: Invalid value: "a": f in body should be at least 2 chars long'),
        ({"type": "string", "pattern": "^a+$"}, "b", "f: Invalid value: \"b\": f in body should match '^a+$'"),
        (
            {"type": "string", "format": "date-time"},
            "yesterday",
            'f: Invalid value: "yesterday": f in body must be of type date-time: "yesterday"',
        ),
        ({"type": "number", "maximum": 2}, 2.5, "f: Invalid value: 2.5: f in body should be less than or equal to 2"),
        (
            {"type": "integer", "maximum": 2, "exclusiveMaximum": True},
            2,
            "f: Invalid value: 2: f in body should be less than 2",
        ),
        (
            {"type": "integer", "minimum": 2, "exclusiveMinimum": True},
            2,
            "f: Invalid value: 2: f in body should be greater than 2",
        ),
        ({"type": "integer", "multipleOf": 5}, 7, "f: Invalid value: 7: f in body should be a multiple of 5"),
        ({"type": "array", "minItems": 1}, [], "f: Invalid value: 0: f in body should have at least 1 items"),
        ({"type": "array", "maxItems": 1}, [1, 2], "f: Too many: 2: must have at most 1 item"),
        (
            {"type": "object", "minProperties": 1},
            {},
            "f: Invalid value: 0: f in body should have at least 1 properties",
        ),
        ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}, "f: Too many: 2: must have at most 1 item"),
        ({"type": "integer", "enum": [1, 2]}, 3, 'f: Unsupported value: 3: supported values: "1", "2"'),
        ({"type": "integer"}, True, 'f: Invalid value: "boolean": f in body must be of type integer: "boolean"'),
        (
            {"x-kubernetes-int-or-string": True},
            1.5,
            'f: Invalid value: "number": f in body must be of type integer,string: "number"',
        ),
        (
            {"allOf": [{"minimum": 3}]},
            1,
            '<nil>: Invalid value: "": "f" must validate all the schemas (allOf). None validated',
        ),
        (
            {"anyOf": [{"minimum": 3}, {"maximum": 0}]},
            1,
            '<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)',
        ),
        (
            {"oneOf": [{"minimum": 3}, {"maximum": 0}]},
            1,
            '<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). Found none valid',
        ),
        ({"not": {"minimum": 1}}, 1, '<nil>: Invalid value: "": "f" must not validate the schema (not)'),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            ["a", "a"],
            'f[1]: Duplicate value: "a"',
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            ["a"],
            'f[0]: Invalid value: "a": must be an object for an array of list-type map',
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"a": 1},
            'f.a: Invalid value: "integer": f.a in body must be of type string: "integer"',
        ),
    ],
)
def test_each_constraint_has_its_message(schema: dict[str, Any], value: Any, expected: str) -> None:
    assert expected in texts(thing(f=schema), {"f": value})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 3.0),
        ({"type": "number"}, 3),
        ({"type": "string", "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({"x-kubernetes-int-or-string": True}, 3),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05Z"),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05.123456+02:00"),
        ({"type": "string", "format": "unheard-of"}, "x"),
        ({"oneOf": [{"minimum": 3}, {"maximum": 1}]}, 1),
        ({"type": "array", "items": {"type": "string"}}, ["a", "a"]),
    ],
)
def test_what_fits_is_not_complained_about(schema: dict[str, Any], value: Any) -> None:
    assert not texts(thing(f=schema), {"f": value})


def test_fields_are_kept_where_the_schema_says_so_and_checked_where_it_knows_them() -> None:
    schema = thing(
        f={
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
        },
        embedded={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}},
        table={"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
    )
    obj: dict[str, Any] = {
        "f": {"any": {"thing": 1}, "known": {"a": "x", "b": 1}},
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}},
        "table": {"row": {"a": "x", "b": 1}},
    }
    assert schema.prune(obj) == ["embedded.spec", "f.known.b", "table.row.b"]
    assert obj["f"]["any"] == {"thing": 1}
    assert obj["embedded"]["metadata"] == {"name": "x"}


def test_defaults_reach_into_lists_maps_and_other_defaults() -> None:
    row = {"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 7}}}
    schema = thing(
        rows={"type": "array", "items": row},
        table={"type": "object", "additionalProperties": row},
        whole={"type": "object", "default": {"rows": [{}]}, "properties": {"rows": {"type": "array", "items": row}}},
    )
    obj: dict[str, Any] = {"rows": [{}, None, {"n": 1}], "table": {"a": {}, "b": {"n": 2}}}
    schema.default(obj)
    assert obj == {
        "rows": [{"n": 7}, {"n": 7}, {"n": 1}],
        "table": {"a": {"n": 7}, "b": {"n": 2}},
        "whole": {"rows": [{"n": 7}]},
    }


def test_a_default_is_a_copy() -> None:
    schema = thing(f={"type": "object", "default": {"a": []}, "x-kubernetes-preserve-unknown-fields": True})
    first: dict[str, Any] = {}
    schema.default(first)
    first["f"]["a"].append(1)
    second: dict[str, Any] = {}
    schema.default(second)
    assert second == {"f": {"a": []}}


def test_rules_run_where_they_stand_and_compare_rows_by_key() -> None:
    schema = thing(
        rows={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n", "message": "may not shrink"}],
                "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
            },
        }
    )
    old = {"rows": [{"name": "a", "n": 5}, {"name": "b", "n": 5}]}
    new = {"rows": [{"name": "c", "n": 1}, {"name": "b", "n": 6}, {"name": "a", "n": 4}]}
    assert texts(schema, new, old) == ["rows[2]: Invalid value: may not shrink"]
    assert not texts(schema, new)


def test_an_atomic_list_has_no_old_rows() -> None:
    schema = thing(
        rows={"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}
    )
    assert not texts(schema, {"rows": [2]}, {"rows": [1]})


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"rule": "self > 3"}, ("f", "Invalid value: 1: failed rule: self > 3", "FieldValueInvalid")),
        (
            {"rule": "self > 3", "message": "bigger", "reason": "FieldValueForbidden"},
            ("f", "Forbidden: bigger", "FieldValueForbidden"),
        ),
        (
            {"rule": "self > 3", "message": "bigger", "reason": "FieldValueRequired"},
            ("f", "Required value: bigger", "FieldValueRequired"),
        ),
        (
            {"rule": "self > 3", "reason": "FieldValueDuplicate"},
            ("f", "Duplicate value: 1", "FieldValueDuplicate"),
        ),
        (
            {"rule": "self.missing == 1", "message": "m"},
            (
                "f",
                'Invalid value: "integer": Applying SELECT to non-message type evaluating rule: m',
                "FieldValueInvalid",
            ),
        ),
        (
            {"rule": "self < 'x'"},
            (
                "f",
                (
                    "Invalid value: \"integer\": 'no such overload': call arguments did not match a supported "
                    "operator, function or macro signature for rule: self < 'x'"
                ),
                "FieldValueInvalid",
            ),
        ),
    ],
)
def test_a_broken_rule_is_reported_with_its_reason(rule: dict[str, Any], expected: tuple[str, str, str]) -> None:
    (cause,) = thing(f={"type": "integer", "x-kubernetes-validations": [rule]}).validate({"f": 1})
    assert (cause.field, cause.message, cause.reason) == expected


def test_a_missing_key_is_named() -> None:
    rule = {"rule": "self.min <= self.max"}
    schema = crd({"type": "object", "x-kubernetes-validations": [rule]})
    assert texts(schema, {"min": 1}) == [
        '<nil>: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max'
    ]


def test_a_kind_without_columns_shows_its_age() -> None:
    assert [c["name"] for c in thing().printer_columns] == ["Age"]
    columns = [{"name": "Status", "type": "string", "jsonPath": ".status"}]
    assert crd({"type": "object"}, additionalPrinterColumns=columns).printer_columns == columns
    assert DOMAIN.printer_columns[0]["name"] == "Status"


def test_the_openapi_component_names_the_kind_and_leaves_the_schema_alone() -> None:
    component = DOMAIN.openapi()
    assert component["x-kubernetes-group-version-kind"] == [
        {"group": "resource.nvidia.com", "kind": "ComputeDomain", "version": "v1beta1"}
    ]
    assert component["properties"]["spec"]["properties"]["numNodes"]["minimum"] == 0
    assert component["properties"]["metadata"]["allOf"][0]["$ref"].endswith("meta.v1.ObjectMeta")
    component["properties"]["spec"].clear()
    assert DOMAIN.openapi()["properties"]["spec"]["type"] == "object"


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "default": "d"},
            {"type": "integer", "default": 0, "nullable": True},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda properties, keep: (
                {"type": "object", "properties": properties}
                | ({"x-kubernetes-preserve-unknown-fields": True} if keep else {})
            ),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.booleans(),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda extra: {"type": "object", "additionalProperties": extra}, inner),
        st.builds(
            lambda properties: {"type": "object", "default": {}, "properties": properties},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(-5, 5), st.sampled_from(["", "x"]), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
ROOTS = st.builds(
    lambda properties: {"type": "object", "properties": properties},
    st.dictionaries(st.sampled_from("abc"), SCHEMAS, max_size=3),
)


@given(ROOTS, OBJECTS)
def test_pruning_and_defaulting_twice_changes_nothing_more(schema: dict[str, Any], obj: dict[str, Any]) -> None:
    judged = crd(schema)
    judged.prune(obj)
    judged.default(obj)
    once = copy.deepcopy(obj)
    assert judged.prune(obj) == []
    judged.default(obj)
    assert obj == once


@given(ROOTS, OBJECTS)
def test_pruning_removes_just_what_it_names(schema: dict[str, Any], obj: dict[str, Any]) -> None:
    before = copy.deepcopy(obj)
    dropped = crd(schema).prune(obj)
    assert (obj == before) == (not dropped)


@given(ROOTS, OBJECTS)
def test_judging_never_fails_and_never_changes_the_object(schema: dict[str, Any], obj: dict[str, Any]) -> None:
    before = copy.deepcopy(obj)
    found = crd(schema).validate(obj)
    assert obj == before
    assert all(cause.message and cause.reason for cause in found)

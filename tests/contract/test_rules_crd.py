"""Custom objects are defaulted, pruned and refused in the same words by both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlace.api.crd import crds
from interlace.sim.plane import Plane
from tests.contract.wire import MERGE, Reply, Wire
from tests.contract.wire import admin as as_admin
from tests.waiting import eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DOMAINS = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains"
THINGS = "/apis/rules.example.com/v1/namespaces/default/things"

ROW = {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer", "default": 7}}}
FIELDS: dict[str, dict[str, Any]] = {
    "short": {"type": "string", "maxLength": 2},
    "long": {"type": "string", "minLength": 2},
    "shape": {"type": "string", "pattern": "^a+$"},
    "when": {"type": "string", "format": "date-time"},
    "low": {"type": "number", "maximum": 2},
    "below": {"type": "integer", "maximum": 2, "exclusiveMaximum": True},
    "above": {"type": "integer", "minimum": 2, "exclusiveMinimum": True},
    "fives": {"type": "integer", "multipleOf": 5},
    "some": {"type": "array", "minItems": 1, "items": {"type": "integer"}},
    "few": {"type": "array", "maxItems": 1, "items": {"type": "integer"}},
    "full": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
    "lean": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "integer"}},
    "one": {"type": "integer", "enum": [1, 2]},
    "either": {"x-kubernetes-int-or-string": True},
    "all": {"type": "integer", "allOf": [{"minimum": 3}]},
    "any": {"type": "integer", "anyOf": [{"minimum": 3}, {"maximum": 0}]},
    "only": {"type": "integer", "oneOf": [{"minimum": 3}, {"maximum": 0}]},
    "unlike": {"type": "integer", "not": {"minimum": 1}},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "rows": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": ROW | {"required": ["name"]},
    },
    "table": {"type": "object", "additionalProperties": ROW},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": ROW}},
    "kept": {"type": "string", "nullable": True, "default": "d"},
    "given": {"type": "object", "default": {"n": 1}, "properties": {"n": {"type": "integer"}}},
    "rule": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]},
    "told": {
        "type": "string",
        "maxLength": 9,
        "x-kubernetes-validations": [
            {"rule": "self != 'no'", "messageExpression": "'got ' + self", "reason": "FieldValueForbidden"}
        ],
    },
    "grow": {
        "type": "array",
        "maxItems": 9,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": ROW
        | {
            "required": ["name"],
            "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n", "message": "may not shrink"}],
        },
    },
    "pair": {
        "type": "object",
        "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.min <= self.max"}],
    },
}
THING_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.rules.example.com"},
    "spec": {
        "group": "rules.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": FIELDS}},
                    }
                },
            }
        ],
    },
}


def causes(reply: Reply) -> list[str]:
    """``field: message`` of each cause of a 422."""
    assert (reply.code, reply.reason) == (422, "Invalid"), reply
    return [f"{c['field']}: {c['message']}" for c in reply.body["details"]["causes"]]


def stored(reply: Reply) -> dict[str, Any]:
    """The object as it was accepted."""
    assert reply.code in {200, 201}, reply
    found: dict[str, Any] = reply.body
    return found


def domain(name: str, **spec: Any) -> dict[str, Any]:
    found = {"channel": {"resourceClaimTemplate": {"name": "t"}}} | spec
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name},
        "spec": {k: v for k, v in found.items() if v is not None},
    }


def thing(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "rules.example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(plane: Plane) -> AsyncIterator[Wire]:
    async with as_admin(plane) as wire:
        for crd in (*crds(), THING_CRD):
            assert (await wire("POST", CRDS, crd)).code == 201

        async def served() -> bool:
            first = await wire("POST", DOMAINS, domain("dry"), dryRun="All")
            second = await wire("POST", THINGS, thing("dry"), dryRun="All")
            return first.code == second.code == 201

        await eventually(served, within=20, what="serving the custom kinds")
        yield wire


async def test_a_domain_is_stored_with_its_defaults(admin: Wire) -> None:
    obj = stored(await admin("POST", DOMAINS, domain("defaults")))
    assert obj["spec"] == {
        "channel": {"allocationMode": "Single", "resourceClaimTemplate": {"name": "t"}},
        "numNodes": 0,
    }
    assert "status" not in obj
    assert obj["metadata"]["generation"] == 1


async def test_unknown_fields_are_dropped_or_refused_as_asked(admin: Wire) -> None:
    obj = domain("pruned", extra={"a": 1})
    obj["spec"]["channel"]["surprise"] = True
    refused = await admin("POST", DOMAINS, obj, fieldValidation="Strict")
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.message == (
        'ComputeDomain in version "v1beta1" cannot be handled as a ComputeDomain: strict decoding error: '
        'unknown field "spec.channel.surprise", unknown field "spec.extra"'
    )
    kept = stored(await admin("POST", DOMAINS, obj, fieldValidation="Ignore"))
    assert set(kept["spec"]) == {"channel", "numNodes"}
    assert set(kept["spec"]["channel"]) == {"allocationMode", "resourceClaimTemplate"}


NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
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
            [
                'spec.channel: Invalid value: "array": spec.channel in body must be of type object: "array"',
                NOT_CHECKED,
            ],
        ),
    ],
)
async def test_a_bad_domain_is_refused(admin: Wire, spec: dict[str, Any], expected: list[str]) -> None:
    reply = await admin("POST", DOMAINS, domain("bad", **spec))
    assert causes(reply) == expected
    summary = expected[0] if len(expected) == 1 else f"[{', '.join(expected)}]"
    assert reply.message == f'ComputeDomain.resource.nvidia.com "bad" is invalid: {summary}'


async def test_a_domain_needs_a_spec(admin: Wire) -> None:
    obj = domain("bare")
    del obj["spec"]
    assert causes(await admin("POST", DOMAINS, obj)) == ["spec: Required value", NOT_CHECKED]


async def test_the_spec_of_a_domain_cannot_change_but_may_be_repeated(admin: Wire) -> None:
    stored(await admin("POST", DOMAINS, domain("fixed")))
    reply = await admin("PATCH", f"{DOMAINS}/fixed", {"spec": {"numNodes": 4}}, media=MERGE)
    assert causes(reply) == ["spec: Invalid value: A computeDomain.spec is immutable"]
    assert reply.message == (
        'ComputeDomain.resource.nvidia.com "fixed" is invalid: spec: Invalid value: A computeDomain.spec is immutable'
    )
    stored(await admin("PATCH", f"{DOMAINS}/fixed", {"spec": {"numNodes": 0}}, media=MERGE))


async def test_a_node_is_listed_once_in_the_status(admin: Wire) -> None:
    stored(await admin("POST", DOMAINS, domain("nodes")))
    node = {"name": "n", "ipAddress": "10.0.0.1", "cliqueID": "c", "index": 0}
    body = {"status": {"status": "Ready", "nodes": [node, node]}}
    reply = await admin("PATCH", f"{DOMAINS}/nodes/status", body, media=MERGE)
    assert causes(reply) == ['status.nodes[1]: Duplicate value: {"name":"n"}']
    body = {"status": {"status": "Ready", "nodes": [node]}}
    kept = stored(await admin("PATCH", f"{DOMAINS}/nodes/status", body, media=MERGE))
    assert kept["status"]["nodes"] == [node | {"status": "NotReady"}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"short": "abc"}, ["spec.short: Too long: may not be more than 2 bytes"]),
        ({"long": "a"}, ['spec.long: Invalid value: "a": spec.long in body should be at least 2 chars long']),
        ({"shape": "b"}, ["spec.shape: Invalid value: \"b\": spec.shape in body should match '^a+$'"]),
        (
            {"when": "yesterday"},
            ['spec.when: Invalid value: "yesterday": spec.when in body must be of type date-time: "yesterday"'],
        ),
        ({"low": 2.5}, ["spec.low: Invalid value: 2.5: spec.low in body should be less than or equal to 2"]),
        ({"below": 2}, ["spec.below: Invalid value: 2: spec.below in body should be less than 2"]),
        ({"above": 2}, ["spec.above: Invalid value: 2: spec.above in body should be greater than 2"]),
        ({"fives": 7}, ["spec.fives: Invalid value: 7: spec.fives in body should be a multiple of 5"]),
        ({"some": []}, ["spec.some: Invalid value: 0: spec.some in body should have at least 1 items"]),
        ({"few": [1, 2]}, ["spec.few: Too many: 2: must have at most 1 item"]),
        ({"full": {}}, ["spec.full: Invalid value: 0: spec.full in body should have at least 1 properties"]),
        ({"lean": {"a": 1, "b": 2}}, ["spec.lean: Too many: 2: must have at most 1 item"]),
        ({"one": 3}, ['spec.one: Unsupported value: 3: supported values: "1", "2"']),
        (
            {"one": True},
            [
                'spec.one: Invalid value: "boolean": spec.one in body must be of type integer: "boolean"',
                'spec.one: Unsupported value: true: supported values: "1", "2"',
            ],
        ),
        (
            {"either": 1.5},
            ['spec.either: Invalid value: "number": spec.either in body must be of type integer,string: "number"'],
        ),
        (
            {"all": 1},
            [
                "spec.all: Invalid value: 1: spec.all in body should be greater than or equal to 3",
                '<nil>: Invalid value: "": "spec.all" must validate all the schemas (allOf). None validated',
            ],
        ),
        (
            {"any": 1},
            [
                '<nil>: Invalid value: "": "spec.any" must validate at least one schema (anyOf)',
                "spec.any: Invalid value: 1: spec.any in body should be greater than or equal to 3",
            ],
        ),
        (
            {"only": 1},
            [
                (
                    '<nil>: Invalid value: "": "spec.only" must validate one and only one schema (oneOf). '
                    "Found none valid"
                ),
                "spec.only: Invalid value: 1: spec.only in body should be greater than or equal to 3",
            ],
        ),
        ({"unlike": 1}, ['<nil>: Invalid value: "": "spec.unlike" must not validate the schema (not)']),
        ({"set": ["a", "b", "a"]}, ['spec.set[2]: Duplicate value: "a"']),
        ({"rows": [{"name": "a"}, {"name": "a"}]}, ['spec.rows[1]: Duplicate value: {"name":"a"}']),
        ({"rows": [{"n": 1}]}, ["spec.rows[0].name: Required value"]),
        (
            {"table": {"a": {"n": "x"}}},
            ['spec.table.a.n: Invalid value: "string": spec.table.a.n in body must be of type integer: "string"'],
        ),
        ({"rule": 1}, ["spec.rule: Invalid value: 1: failed rule: self > 3"]),
        ({"told": "no"}, ["spec.told: Forbidden: got no"]),
        (
            {"pair": {"min": 1}},
            ['spec.pair: Invalid value: "object": no such key: max evaluating rule: self.min <= self.max'],
        ),
        ({"pair": {"min": 2, "max": 1}}, ["spec.pair: Invalid value: failed rule: self.min <= self.max"]),
    ],
)
async def test_each_constraint_has_its_words(admin: Wire, spec: dict[str, Any], expected: list[str]) -> None:
    found = causes(await admin("POST", THINGS, thing("bad", **spec)))
    assert [cause for cause in found if cause != NOT_CHECKED] == expected


async def test_defaults_and_pruning_reach_everywhere(admin: Wire) -> None:
    spec = {
        "rows": [{"name": "a"}, {"name": "b", "n": 1, "x": 1}],
        "table": {"a": {}, "b": {"x": 1}},
        "free": {"any": {"thing": [1]}, "known": {"x": 1}},
        "kept": None,
        "given": None,
        "short": None,
        "either": 5,
    }
    obj = stored(await admin("POST", THINGS, thing("deep", **spec)))
    assert obj["spec"] == {
        "rows": [{"name": "a", "n": 7}, {"name": "b", "n": 1}],
        "table": {"a": {"n": 7}, "b": {"n": 7}},
        "free": {"any": {"thing": [1]}, "known": {"n": 7}},
        "kept": None,
        "given": {"n": 1},
        "either": 5,
    }


async def test_rows_are_compared_with_the_rows_of_the_same_key(admin: Wire) -> None:
    first, second, third = {"name": "a", "n": 5}, {"name": "b", "n": 5}, {"name": "c", "n": 1}
    stored(await admin("POST", THINGS, thing("grow", grow=[first, second])))
    rows = [third, second | {"n": 6}, first | {"n": 4}]
    reply = await admin("PATCH", f"{THINGS}/grow", {"spec": {"grow": rows}}, media=MERGE)
    assert causes(reply) == ["spec.grow[2]: Invalid value: may not shrink"]
    rows[2] = first
    stored(await admin("PATCH", f"{THINGS}/grow", {"spec": {"grow": rows}}, media=MERGE))

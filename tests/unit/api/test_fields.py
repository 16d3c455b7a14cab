"""Our partial structs against the full ones that are generated from Kubernetes: no field is made up.

Every field that we declare must exist upstream with a type that ours can hold: whatever value the upstream
type allows on the wire decodes into ours.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType, NoneType, UnionType
from typing import Any

import msgspec
import pytest

from interlace.api import core, meta, resource

UPSTREAM = {
    core: [
        "lightkube.models.core_v1",
        "lightkube.models.apps_v1",
        "lightkube.models.coordination_v1",
        "lightkube.models.meta_v1",
    ],
    meta: ["lightkube.models.meta_v1"],
    resource: ["lightkube.models.resource_v1", "lightkube.models.meta_v1"],
}
OURS_ALONE = {"Struct", "Resource", "Object", "PartialObjectMetadata"}
"""Our base classes, and a kind that upstream has as an answer format only."""

OTHERWISE = {"DeviceConfiguration": "DeviceAllocationConfiguration"}
"""Ours stands for the one in an allocation and for the one in a claim, which has the same fields without source."""


def structs() -> list[type[msgspec.Struct]]:
    """Every wire struct that we define in these modules."""
    return [
        each
        for module in UPSTREAM
        for _, each in inspect.getmembers(module, inspect.isclass)
        if each.__module__ == module.__name__ and issubclass(each, msgspec.Struct) and each.__name__ not in OURS_ALONE
    ]


@dataclass(frozen=True)
class Theirs:
    """A field of an upstream model."""

    type: Any
    required: bool


@pytest.fixture(scope="module", autouse=True)
def _models_alone() -> Iterator[None]:
    """The models import base classes of a client that we do not install; the standard library's do as well."""
    schema = ModuleType("lightkube.core.schema")
    schema.__dict__.update(dataclass=dataclasses.dataclass, field=dataclasses.field, DictMixin=object)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "lightkube.core", ModuleType("lightkube.core"))
        patch.setitem(sys.modules, "lightkube.core.schema", schema)
        yield


def upstream(ours: type[msgspec.Struct]) -> dict[str, Theirs]:
    """The fields of the full model of the same name, by their names on the wire."""
    for name in UPSTREAM[sys.modules[ours.__module__]]:
        full = getattr(importlib.import_module(name), OTHERWISE.get(ours.__name__, ours.__name__), None)
        if full is not None:
            hints = typing.get_type_hints(full)
            return {
                field.metadata.get("json", field.name): Theirs(
                    hints[field.name],
                    field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
                )
                for field in dataclasses.fields(full)
            }
    raise AssertionError(f"{ours.__name__} does not exist upstream")


def arms(kind: Any) -> set[Any]:
    """The members of a union, without None."""
    if typing.get_origin(kind) in (typing.Union, UnionType):
        return {arm for each in typing.get_args(kind) for arm in arms(each)}
    if typing.get_origin(kind) is typing.Annotated:
        return arms(typing.get_args(kind)[0])
    return set() if kind is NoneType else {kind}


def shape(kind: Any) -> str:
    """The JSON type that a Python type stands for."""
    origin = typing.get_origin(kind) or kind
    if kind in (Any, msgspec.Raw):
        return "any"
    if origin is typing.Literal:
        return "string"
    if origin in (list, dict):
        return "array" if origin is list else "object"
    if isinstance(origin, type):
        if issubclass(origin, bool):
            return "boolean"
        if issubclass(origin, str) or origin.__name__ == "datetime":
            return "string"
        if issubclass(origin, int | float):
            return "number"
    return "object"


def compatible(ours: Any, theirs: Any) -> bool:
    """Whether what ``theirs`` puts on the wire fits ``ours``."""
    our_arms, their_arms = arms(ours), arms(theirs)
    if {shape(arm) for arm in our_arms} == {"any"} or not their_arms or Any in their_arms:
        return True
    for their_arm in their_arms:
        same = [arm for arm in our_arms if shape(arm) == shape(their_arm)]
        if not same:
            return False
        ours_inside, theirs_inside = typing.get_args(same[0]), typing.get_args(their_arm)
        if typing.get_origin(their_arm) in (list, dict) and ours_inside and theirs_inside:
            return compatible(ours_inside[-1], theirs_inside[-1])
    return True


@pytest.mark.parametrize("ours", structs(), ids=lambda each: each.__name__)
def test_every_field_exists_upstream_with_a_type_that_ours_can_hold(ours: type[msgspec.Struct]) -> None:
    theirs = upstream(ours)
    problems = []
    for field in msgspec.structs.fields(ours):
        other = theirs.get(field.encode_name)
        if other is None:
            problems.append(f"{field.encode_name}: not upstream")
        elif not compatible(field.type, other.type):
            problems.append(f"{field.encode_name}: {field.type} cannot hold {other.type}")
    assert problems == []


@pytest.mark.parametrize("ours", structs(), ids=lambda each: each.__name__)
def test_what_upstream_may_leave_out_may_be_missing_in_ours(ours: type[msgspec.Struct]) -> None:
    required = {name for name, field in upstream(ours).items() if field.required}
    ours_required = {field.encode_name for field in msgspec.structs.fields(ours) if field.required}
    assert ours_required <= required


def test_the_comparison_sees_a_wrong_type_and_a_made_up_field() -> None:
    assert not compatible(int, str | None)
    assert not compatible(list[int], list[str] | None)
    assert not compatible(dict[str, int], dict[str, str] | None)
    assert compatible(str | None, str | None)
    assert "nodeName" in upstream(core.PodSpec)
    assert "hostname" not in upstream(core.Node)
    assert upstream(meta.Condition)["type"].required

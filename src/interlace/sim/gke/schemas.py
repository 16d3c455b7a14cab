"""What the API documents of Google say about bodies, and checking JSON against it.

The schemas are the closure of the discovery documents (container 20261027, compute 20261106) that this project uses.
They are JSON Schema with two marks: ``readOnly`` and ``x-output-only``, properties that the server alone writes.

Invariant: nothing here knows a kind of resource; another revision of the documents needs no other code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

Json = dict[str, Any]

_NAMES: Final = {bool: "boolean", str: "string", dict: "object", list: "array", int: "integer", float: "number"}


class Problem(msgspec.Struct, frozen=True):
    """``where`` is a path such as ``cluster.nodePools[0].config``; ``reason`` one of unknown, type, value, missing."""

    where: str
    reason: str
    value: str
    text: str


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of methods. ``name`` is the id without the service: ``networks.insert``."""

    name: str
    verb: str
    path: str
    request: str | None
    response: str | None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One API in one version."""

    api: str
    version: str
    definitions: Mapping[str, Json]
    methods: tuple[Method, ...]

    def problems(self, value: Any, name: str) -> Iterator[Problem]:
        """What is wrong with ``value`` as a ``name``, output-only properties included."""
        return self._problems(value, {"$ref": name}, "")

    def without_output(self, value: Any, name: str) -> Any:
        """``value`` without what the server alone writes: what is left of a request body."""
        return self._pruned(value, {"$ref": name}, output=False)

    def with_names(self, value: Any, name: str) -> Any:
        """``value`` with the names of enum values that came as numbers, taken as positions in the document."""
        return self._mapped(value, {"$ref": name}, _name)

    def in_utc(self, value: Any, name: str) -> Any:
        """``value`` with its times as Google writes them, whatever zone they came in."""
        return self._mapped(value, {"$ref": name}, _utc)

    def _mapped(self, value: Any, schema: Json, leaf: Callable[[Any, Json], Any]) -> Any:
        schema = self._resolved(schema)
        if isinstance(value, list):
            return [self._mapped(each, schema.get("items", {}), leaf) for each in value]
        if isinstance(value, dict):
            properties, extra = schema.get("properties", {}), schema.get("additionalProperties")
            other = extra if isinstance(extra, dict) else {}
            return {key: self._mapped(each, properties.get(key, other), leaf) for key, each in value.items()}
        return leaf(value, schema)

    def known(self, value: Any, name: str) -> Any:
        """``value`` without properties that this version does not have: what it shows of an object made in another."""
        return self._pruned(value, {"$ref": name}, output=True)

    def _resolved(self, schema: Json) -> Json:
        name = schema.get("$ref")
        return schema if name is None else self.definitions[name.rpartition("/")[2]]

    def _pruned(self, value: Any, schema: Json, *, output: bool) -> Any:
        schema = self._resolved(schema)
        if isinstance(value, list):
            return [self._pruned(each, schema.get("items", {}), output=output) for each in value]
        if not isinstance(value, dict):
            return value
        properties = schema.get("properties")
        if properties is None:
            extra = schema.get("additionalProperties")
            inner = extra if isinstance(extra, dict) else {}
            return {key: self._pruned(each, inner, output=output) for key, each in value.items()}
        kept = {}
        for key, each in value.items():
            inner = properties.get(key)
            if inner is None:
                if not output:  # an unknown key stays, to be found by the check
                    kept[key] = each
            elif output or not _output_only(inner):
                kept[key] = self._pruned(each, inner, output=output)
        return kept

    def _problems(self, value: Any, schema: Json, where: str) -> Iterator[Problem]:
        schema = self._resolved(schema)
        kind = schema.get("type")
        if kind is not None and not _is(value, kind):
            found = _NAMES.get(type(value), "null")
            yield Problem(where, "type", _shown(value), f"must be of type {kind}, not {found}")
            return
        if isinstance(value, dict):
            yield from self._object(value, schema, where)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                yield from self._problems(each, schema.get("items", {}), f"{where}[{index}]")
        else:
            yield from _scalar(value, schema, where)

    def _object(self, value: Json, schema: Json, where: str) -> Iterator[Problem]:
        properties: Mapping[str, Json] = schema.get("properties", {})
        extra = schema.get("additionalProperties", True)
        for key, each in value.items():
            inner = f"{where}.{key}" if where else key
            if key in properties:
                yield from self._problems(each, properties[key], inner)
            elif extra is False:
                yield Problem(where, "unknown", key, "no such field")
            elif isinstance(extra, dict):
                yield from self._problems(each, extra, inner)


def required(document: Document, method: Method) -> tuple[str, ...]:
    """Properties that the documents require in the body of ``method``."""
    if method.request is None:
        return ()
    full = f"{document.api}.{method.name}"
    properties = document.definitions[method.request].get("x-required-for", {})
    return tuple(properties.get(full, ()))


@cache
def document(api: str, version: str) -> Document:
    """The document of an API version. compute beta has its own resource policies only; the rest is that of v1.

    Raises LookupError for an API without a document.
    """
    try:
        raw = _raw(f"{api}.{version}")
    except FileNotFoundError:
        raise LookupError(f"there is no document of {api} {version}") from None
    base = document(api, "v1") if api == "compute" and version != "v1" else None
    definitions = {**(base.definitions if base else {}), **raw["$defs"]}
    methods = {method.name: method for method in (base.methods if base else ())}
    for name, row in raw["methods"].items():
        methods[name] = Method(
            name=name,
            verb=row["httpMethod"],
            path=row["path"],
            request=row.get("request"),
            response=row.get("response"),
        )
    return Document(api=api, version=version, definitions=definitions, methods=tuple(methods.values()))


def _raw(name: str) -> Json:
    file = resources.files("interlace.sim.gke") / "data" / f"{name}.json"
    found: Json = json.loads(file.read_text(encoding="utf-8"))
    return found


def _output_only(schema: Json) -> bool:
    return bool(schema.get("readOnly") or schema.get("x-output-only"))


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return _NAMES.get(type(value)) == kind


def _scalar(value: Any, schema: Json, where: str) -> Iterator[Problem]:
    shown = _shown(value)
    pattern, choices = schema.get("pattern"), schema.get("enum")
    if pattern is not None and not re.search(pattern, value):
        yield Problem(
            where, "value", shown, f"Must be a match of regex '{pattern.removeprefix('^').removesuffix('$')}'"
        )
    if schema.get("x-format") == "google-datetime" and not _is_time(value):
        yield Problem(where, "value", shown, "must be a time such as 2026-12-01T00:00:00Z")
    if choices is not None and value not in choices:
        yield Problem(where, "value", shown, f"must be one of {', '.join(choices)}")
    if "minimum" in schema and not schema["minimum"] <= value <= schema["maximum"]:
        yield Problem(where, "value", shown, f"must be from {schema['minimum']} to {schema['maximum']}")


def _name(value: Any, schema: Json) -> Any:
    choices = schema.get("enum")
    number = isinstance(value, int) and not isinstance(value, bool)
    return choices[value] if choices and number and 0 <= value < len(choices) else value


def _utc(value: Any, schema: Json) -> Any:
    if schema.get("x-format") != "google-datetime" or not isinstance(value, str):
        return value
    return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)

"""Judges answers of the simulation by documents that it did not make: the recorded schemas and Google's own documents.

Independent of the validator that the simulation uses on requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from googleapiclient import discovery_cache

DATA = Path("tests/data/gke")
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def judge(service: str, version: str, method: str, body: Any) -> list[str]:
    """What is wrong with a good answer of ``method`` (``networks.insert``); by every document that knows the method."""
    found = []
    judged = False
    version = "v1beta1" if version == "v1alpha1" else version  # of v1alpha1 there is no document
    for definitions, response in _documents(service, version, method):
        judged = True
        found += list(problems(body, {"$ref": response}, definitions, ""))
    if not judged and service in {"compute", "container"}:
        found.append(f"no document knows {service} {version} {method}")
    return found


def problems(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any], where: str) -> Iterator[str]:
    """What is wrong with ``value``, by a JSON schema or a schema of a discovery document."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    kind = schema.get("type")
    if kind == "any":
        return
    if kind in _TYPES and not isinstance(value, _TYPES[kind]):
        yield f"{where}: {value!r} is not of type {kind}"
        return
    if kind in {"integer", "number"} and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield f"{where}: {value!r} is not of type {kind}"
        return
    if isinstance(value, dict):
        named, extra = schema.get("properties", {}), schema.get("additionalProperties")
        for key, each in value.items():
            if key in named:
                yield from problems(each, named[key], definitions, f"{where}.{key}")
            elif isinstance(extra, dict):
                yield from problems(each, extra, definitions, f"{where}.{key}")
            elif key != "@type":
                yield f"{where}.{key}: unknown"
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from problems(each, schema["items"], definitions, f"{where}[{index}]")
    else:
        if value not in schema.get("enum", [value]):
            yield f"{where}: {value!r} is none of {schema['enum']}"
        if "pattern" in schema and not re.search(f"^(?:{schema['pattern']})$", value):
            yield f"{where}: {value!r} does not match {schema['pattern']}"


@cache
def _documents(service: str, version: str, method: str) -> tuple[tuple[Mapping[str, Any], str], ...]:
    return tuple(_found(service, version, method))


def _found(service: str, version: str, method: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    recorded = DATA / "schemas" / f"{service}.{version}.json"
    if recorded.exists():
        raw = _read(str(recorded))
        row = raw["methods"].get(method) or _nested(raw["methods"], method)
        if row is not None and row["response"] in raw["$defs"]:
            yield raw["$defs"], row["response"]
    google = Path(discovery_cache.__file__).parent / "documents" / f"{service}.{version}.json"
    if google.exists():
        raw = _read(str(google))
        for found in _methods(raw):
            if found["id"].endswith(f".{method}"):
                yield raw["schemas"], found["response"]["$ref"]
                return


def _nested(methods: Mapping[str, Any], method: str) -> Any:
    return next((row for name, row in methods.items() if name.endswith(f".{method}")), None)


def _methods(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from node.get("methods", {}).values()
    for inner in node.get("resources", {}).values():
        yield from _methods(inner)


@cache
def _read(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def shape(value: Any) -> Any:
    """Keys of a document without its values: lists by the shape of their members."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value).__name__


def recorded(name: str) -> Any:
    """A hand-made response of ``tests/data/gke/server``."""
    return _read(str(DATA / "server" / f"{name}.json"))

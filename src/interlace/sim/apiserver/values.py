"""Validation of a JSON value against a structural schema, without rules.

A pure walk; findings come in the order of the schema. Invariant: the texts are those that
kube-openapi makes, including its habit of naming the place ``in body``.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from interlace.sim.apiserver.cause import Cause, duplicate, invalid, not_supported, required, too_long, too_many
from interlace.sim.apiserver.cause import type_invalid as wrong_type

_JSON_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def json_type(value: Any) -> str:
    """The JSON schema name of a value's type."""
    return next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "null")


def schema_findings(value: Any, schema: Mapping[str, Any], path: str = "") -> list[Cause]:
    """Findings on types, enumerations, limits, patterns and required fields."""
    return list(_walk(value, schema, path))


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _walk(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    actual, wanted = json_type(value), _types(schema)
    if value is None:
        if wanted and not schema.get("nullable"):
            yield _type_finding(path, wanted, actual)
        if not schema.get("nullable"):
            yield from _enumeration(value, schema, path)
        return
    whole = isinstance(value, float) and value.is_integer() and "integer" in wanted
    if wanted and actual not in wanted and not whole and not (actual == "integer" and "number" in wanted):
        yield _type_finding(path, wanted, actual)
    yield from _combinations(value, schema, path)
    match value:
        case str():
            yield from _string(value, schema, path)
        case bool():
            pass
        case int() | float():
            yield from _number(value, schema, path)
        case list():
            yield from _list(value, schema, path)
        case dict():
            pass
    yield from _enumeration(value, schema, path)
    if isinstance(value, dict):
        yield from _object(value, schema, path)


def _type_finding(path: str, wanted: tuple[str, ...], actual: str) -> Cause:
    return wrong_type(path, actual, f'{path} in body must be of type {",".join(wanted)}: "{actual}"')


def _enumeration(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    allowed = schema.get("enum")
    if allowed is not None and not any(json_type(a) == json_type(value) and a == value for a in allowed):
        yield not_supported(path, value, [a if isinstance(a, str) else json.dumps(a) for a in allowed])


def _string(value: str, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if (limit := schema.get("maxLength")) is not None and len(value) > limit:
        yield too_long(path, limit)
    if (limit := schema.get("minLength")) is not None and len(value) < limit:
        yield invalid(path, value, f"{path} in body should be at least {limit} chars long")
    if (pattern := schema.get("pattern")) and not re.search(pattern, value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")
    form = schema.get("format")
    if form in _FORMATS and not _parses(_FORMATS[form], value):
        yield wrong_type(path, value, f'{path} in body must be of type {form}: "{value}"')


def _number(value: float, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if (limit := schema.get("maximum")) is not None:
        if schema.get("exclusiveMaximum"):
            if value >= limit:
                yield invalid(path, value, f"{path} in body should be less than {limit}")
        elif value > limit:
            yield invalid(path, value, f"{path} in body should be less than or equal to {limit}")
    if (limit := schema.get("minimum")) is not None:
        if schema.get("exclusiveMinimum"):
            if value <= limit:
                yield invalid(path, value, f"{path} in body should be greater than {limit}")
        elif value < limit:
            yield invalid(path, value, f"{path} in body should be greater than or equal to {limit}")
    if (factor := schema.get("multipleOf")) is not None and value % factor:
        yield invalid(path, value, f"{path} in body should be a multiple of {factor}")


def _list(value: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    items = schema.get("items", {})
    for index, item in enumerate(value):
        yield from _walk(item, items, f"{path}[{index}]")
    size = len(value)
    if (limit := schema.get("minItems")) is not None and size < limit:
        yield invalid(path, size, f"{path} in body should have at least {limit} items")
    if (limit := schema.get("maxItems")) is not None and size > limit:
        yield too_many(path, size, limit)


def _object(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if (limit := schema.get("minProperties")) is not None and len(value) < limit:
        yield invalid(path, len(value), f"{path} in body should have at least {limit} properties")
    if (limit := schema.get("maxProperties")) is not None and len(value) > limit:
        yield too_many(path, len(value), limit)
    properties = schema.get("properties", {})
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        for key, item in value.items():
            if key not in properties:
                yield from _walk(item, extra, _join(path, key))
    for key, child in properties.items():
        if key in value:
            yield from _walk(value[key], child, _join(path, key))
    for key in schema.get("required", ()):
        if key not in value:
            yield required(_join(path, key))


def _combinations(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Schemas combined; a failure as a whole bears no path, as on the server."""
    if options := schema.get("anyOf"):
        branches = [schema_findings(value, o, path) for o in options]
        if all(branches):
            yield invalid("", "", f'"{path}" must validate at least one schema (anyOf)')
            yield from min(branches, key=len)
    if options := schema.get("oneOf"):
        branches = [schema_findings(value, o, path) for o in options]
        hits = sum(not b for b in branches)
        if hits != 1:
            found = f"Found {hits} valid alternatives" if hits else "Found none valid"
            yield invalid("", "", f'"{path}" must validate one and only one schema (oneOf). {found}')
            yield from () if hits else min(branches, key=len)
    if options := schema.get("allOf"):
        branches = [schema_findings(value, o, path) for o in options]
        for branch in branches:
            yield from branch
        if any(branches):
            none = ". None validated" if all(branches) else ""
            yield invalid("", "", f'"{path}" must validate all the schemas (allOf){none}')
    if (forbidden := schema.get("not")) is not None and not schema_findings(value, forbidden, path):
        yield invalid("", "", f'"{path}" must not validate the schema (not)')


def _timestamp(text: str) -> None:
    if not re.match(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}", text):
        raise ValueError(text)
    dt.datetime.fromisoformat(text.upper())


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_FORMATS: Final[dict[str, Callable[[str], object]]] = {
    "date-time": _timestamp,
    "date": dt.date.fromisoformat,
    "uuid": uuid.UUID,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
}


def list_findings(value: Any, schema: Mapping[str, Any], path: str = "") -> list[Cause]:
    """Entries of list sets and list maps that occur more than once; each is named once."""
    if isinstance(value, list):
        found = _repeated(value, schema, path)
        for index, item in enumerate(value):
            found += list_findings(item, schema.get("items", {}), f"{path}[{index}]")
        return found
    if not isinstance(value, dict):
        return []
    found = []
    properties, extra = schema.get("properties", {}), schema.get("additionalProperties")
    for key, item in value.items():
        if key in properties:
            found += list_findings(item, properties[key], _join(path, key))
        elif isinstance(extra, dict):
            found += list_findings(item, extra, f"{path}[{key}]")
    return found


def _repeated(value: list[Any], schema: Mapping[str, Any], path: str) -> list[Cause]:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in {"map", "set"}:
        return []
    if kind == "map":
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
        fields = schema.get("x-kubernetes-list-map-keys", ())
        keys = [{f: item[f] for f in fields if f in item} if item else {} for item in value]
    else:
        keys = value
    found: list[Cause] = []
    seen: dict[str, int] = {}
    for index, key in enumerate(keys):
        text = json.dumps(key, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            found.append(duplicate(f"{path}[{index}]", key))
    return found

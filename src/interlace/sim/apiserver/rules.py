"""The CEL rules of a structural schema, found once and evaluated on every write.

Invariant: a rule that reads ``oldSelf`` runs only where the old object has a value in the same
place: by name in objects, by key in list maps, never in atomic or set lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from interlace.sim.apiserver.cause import OMIT, Cause, duplicate, forbidden, invalid, required
from interlace.sim.apiserver.cel import CelError, Rule


class RuleSet:
    """All rules of a schema. False if there are none."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raises ``CelError`` if a rule does not compile."""
        self._rules: dict[int, list[Rule]] = {}
        self._schema = schema
        self._collect(schema)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def findings(self, obj: Any, old: Any = None) -> list[Cause]:
        """Rules that do not hold, outer ones first."""
        return list(self._walk(obj, old, self._schema, ""))

    def _collect(self, schema: Mapping[str, Any]) -> None:
        if rules := schema.get("x-kubernetes-validations"):
            self._rules[id(schema)] = [Rule(r) for r in rules]
        children = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
        for child in children:
            if isinstance(child, dict):
                self._collect(child)

    def _walk(self, value: Any, old: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
        if value is None:
            return
        for rule in self._rules.get(id(schema), ()):
            if rule.uses_old and old is None and not rule.optional_old:
                continue
            if (cause := _check(rule, value, old, schema, path)) is not None:
                yield cause
        if isinstance(value, dict):
            before = old if isinstance(old, dict) and schema.get("x-kubernetes-map-type") != "atomic" else {}
            properties, extra = schema.get("properties", {}), schema.get("additionalProperties")
            for key, item in value.items():
                if key in properties:
                    yield from self._walk(item, before.get(key), properties[key], f"{path}.{key}" if path else key)
                elif isinstance(extra, dict):
                    yield from self._walk(item, before.get(key), extra, f"{path}[{key}]")
        elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
            earlier = _by_key(old, schema)
            for index, item in enumerate(value):
                key = _key(item, schema)
                yield from self._walk(item, earlier.get(key) if key else None, items, f"{path}[{index}]")


def _key(item: Any, schema: Mapping[str, Any]) -> str | None:
    """What identifies an entry of a list map; None in other lists."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(item, dict):
        return None
    return json.dumps([item.get(f) for f in schema.get("x-kubernetes-list-map-keys", ())])


def _by_key(old: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(old, list):
        return {}
    return {key: item for item in old if (key := _key(item, schema)) is not None}


def _check(rule: Rule, value: Any, old: Any, schema: Mapping[str, Any], path: str) -> Cause | None:
    kind = schema.get("type", "")
    try:
        if rule.holds(value, old):
            return None
    except CelError as error:
        if str(error).startswith("no such overload"):
            detail = (
                f"'{error}': call arguments did not match a supported operator, "
                f"function or macro signature for rule: {rule.text}"
            )
        else:
            detail = f"{error} evaluating rule: {rule.text}"
        return invalid(path, kind, detail)
    shown = OMIT if kind in {"object", "array"} else value
    where = f"{path}{rule.field_path}" if path else rule.field_path.lstrip(".")
    detail = rule.message(value, old)
    match rule.reason:
        case "FieldValueForbidden":
            return forbidden(where, detail)
        case "FieldValueRequired":
            return required(where, detail)
        case "FieldValueDuplicate":
            return duplicate(where, shown)
        case _:
            return invalid(where, shown, detail)

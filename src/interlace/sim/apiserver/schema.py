"""What a CustomResourceDefinition demands of its objects: defaults, pruning, validation, columns.

Structural schemas only, walked as dicts. Invariants: ``default`` and ``prune`` are idempotent and
the only functions that change an object; the texts of findings are those of apiextensions and
kube-openapi 1.36.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import msgspec

from interlace.sim.apiserver.cause import Cause as Cause  # noqa: PLC0414 - callers take it from here
from interlace.sim.apiserver.cause import invalid
from interlace.sim.apiserver.rules import RuleSet
from interlace.sim.apiserver.values import list_findings, schema_findings

_META: Final = frozenset({"apiVersion", "kind", "metadata"})
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_ROOT: Final = "<nil>"
"""How the server names the object as a whole."""
_NOT_CHECKED: Final = invalid(
    _ROOT,
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_AGE: Final = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "CreationTimestamp is a timestamp representing the server time when this object was created.",
}
_OBJECT_META: Final = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class CrdSchema:
    """One version of a CustomResourceDefinition."""

    def __init__(self, crd: dict[str, Any], version: str) -> None:
        """Raises ``KeyError`` if the CRD has no such version and ``CelError`` if a rule does not compile."""
        spec = crd["spec"]
        entry = {v["name"]: v for v in spec["versions"]}[version]
        self._group: str = spec["group"]
        self._kind: str = spec["names"]["kind"]
        self._version = version
        self._schema: dict[str, Any] = entry.get("schema", {}).get("openAPIV3Schema", {})
        self._keep_all = bool(spec.get("preserveUnknownFields"))
        self._rules = RuleSet(self._schema)
        self.printer_columns: list[dict[str, Any]] = list(entry.get("additionalPrinterColumns") or [_AGE])
        """As in the CRD; the creation time where it names none."""

    def default(self, obj: dict[str, Any]) -> None:
        """Drop nulls that may not be null and have no default, then fill in defaults, in place."""
        _drop_nulls(obj, self._schema)
        _default(obj, self._schema)

    def prune(self, obj: dict[str, Any]) -> list[str]:
        """Remove unknown fields in place; returns their paths, sorted."""
        if self._keep_all:
            return []
        dropped: list[str] = []
        _prune(obj, self._schema | {"x-kubernetes-embedded-resource": True}, "", dropped.append)
        return sorted(dropped)

    def validate(self, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[Cause]:
        """Everything that is wrong with a defaulted and pruned object; ``old`` is given on updates."""
        found = schema_findings(obj, self._schema)
        found += list_findings(obj, self._schema) if old is None or not list_findings(old, self._schema) else []
        if self._rules:
            blocked = any(c.reason in _BLOCKING for c in found)
            found += [_NOT_CHECKED] if blocked else self._rules.findings(obj, old)
        return [c if c.field else msgspec.structs.replace(c, field=_ROOT) for c in found]

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI v3 component of the kind."""
        component = copy.deepcopy(self._schema)
        properties = component.setdefault("properties", {})
        properties["apiVersion"] = {"type": "string"} | properties.get("apiVersion", {})
        properties["kind"] = {"type": "string"} | properties.get("kind", {})
        properties["metadata"] = {
            "description": "Standard object's metadata.",
            "allOf": [{"$ref": _OBJECT_META}],
            "default": {},
        }
        component["type"] = "object"
        component["x-kubernetes-group-version-kind"] = [
            {"group": self._group, "kind": self._kind, "version": self._version}
        ]
        return component


def _is_stray_null(value: Any, schema: dict[str, Any] | None) -> bool:
    return value is None and schema is not None and not schema.get("nullable")


def _child(schema: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Schema of a property, named or additional; None where the schema says nothing."""
    if (named := schema.get("properties", {}).get(key)) is not None:
        return dict(named)
    extra = schema.get("additionalProperties")
    return extra if isinstance(extra, dict) else None


def _drop_nulls(value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for key in list(value):
            child = _child(schema, key)
            if child is None:
                continue
            if _is_stray_null(value[key], child) and child.get("default") is None:
                del value[key]
            else:
                _drop_nulls(value[key], child)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item, schema.get("items", {}))


def _default(value: Any, schema: dict[str, Any]) -> None:
    if isinstance(value, dict):
        for key, child in schema.get("properties", {}).items():
            if child.get("default") is not None and (key not in value or _is_stray_null(value[key], child)):
                value[key] = copy.deepcopy(child["default"])
        for key in value:
            child = _child(schema, key)
            if child is None:
                continue
            if _is_stray_null(value[key], child):
                value[key] = copy.deepcopy(child.get("default"))
            _default(value[key], child)
    elif isinstance(value, list):
        items = schema.get("items", {})
        for index, item in enumerate(value):
            if _is_stray_null(item, items):
                value[index] = copy.deepcopy(items.get("default"))
            _default(value[index], items)


def _prune(value: Any, schema: dict[str, Any] | None, path: str, drop: Callable[[str], None]) -> None:
    if isinstance(value, list):
        # Inside a list that keeps unknown fields the items keep theirs; otherwise their schema decides.
        items = (schema or {}).get("items")
        if items is None and schema is not None and schema.get("x-kubernetes-preserve-unknown-fields"):
            return
        for index, item in enumerate(value):
            _prune(item, items, f"{path}[{index}]", drop)
        return
    if not isinstance(value, dict):
        return
    schema = schema or {}
    keep = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    extra = schema.get("additionalProperties")
    for key in list(value):
        if embedded and key in _META:
            continue
        where = f"{path}.{key}" if path else key
        if (child := _child(schema, key)) is not None:
            _prune(value[key], child, where, drop)
        elif not keep and not extra:
            del value[key]
            if key not in _META or path:
                drop(where)

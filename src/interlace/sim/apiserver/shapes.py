"""The shape of a kind: which fields it has and how its lists and maps merge.

One tree of :class:`Shape` serves server-side apply, strategic merge, the removal of unknown fields and OpenAPI.
Built-in kinds come from ``builtin.json`` (see ``typegen``), custom ones from the schema in their definition.

Invariant: a shape is never changed once it is reachable from :func:`builtin` or :func:`from_schema`.
"""

from __future__ import annotations

import copy
import functools
from importlib import resources
from typing import Any, final

import msgspec

Numbers = dict[str, Any]
"""Name of the field under a number, or the numbers of a struct that JSON writes into its parent."""
LEAVES = frozenset(
    {"string", "integer", "bytes", "int32", "int64", "number", "boolean", "time", "quantity", "intorstring", "any"}
)


@final
class Shape:
    """One node: a leaf, a ``struct`` (named fields), a ``map`` (any keys) or a ``list``."""

    __slots__ = (
        "always",
        "atomic",
        "default",
        "fields",
        "form",
        "keys",
        "merge_key",
        "name",
        "numbers",
        "of",
        "open",
        "pointers",
        "required",
        "set",
    )

    def __init__(self, form: str, *, name: str = "") -> None:
        self.form = form
        self.name = name
        """Name of the type in OpenAPI; empty for inline ones."""
        self.fields: dict[str, Shape] = {}
        self.of: Shape | None = None
        """Shape of the items of a list or the values of a map."""
        self.atomic = False
        """Owned and replaced as a whole."""
        self.set = False
        """A list of distinct scalars that merges by value."""
        self.keys: tuple[str, ...] = ()
        """Fields that identify an item of a list that merges by key."""
        self.merge_key: str | None = None
        """Key of strategic merge; an empty string merges by value, None replaces."""
        self.numbers: Numbers = {}
        """Field numbers of the binary encoding."""
        self.pointers: frozenset[str] = frozenset()
        """Scalar fields that may be set and empty; others count as absent when empty in the binary encoding."""
        self.open = False
        """A struct that keeps fields it does not name."""
        self.required: tuple[str, ...] = ()
        self.always: frozenset[str] = frozenset()
        """Fields that a typed encoder writes even when they are empty."""
        self.default: Any = None
        """Default of the schema, used for keys that an item leaves out."""

    def child(self, key: str) -> Shape:
        """Shape of the value under ``key`` of a struct or map."""
        found = self.fields.get(key)
        if found is not None:
            return found
        return self.of or ANY


ANY = Shape("any")
"""Whatever a schema leaves open: owned field by field."""
RAW = Shape("any")
"""A raw extension of a built-in kind: owned as a whole."""
RAW.atomic = True
_DEFAULT_KEYS = {"protocol": "TCP"}


@functools.cache
def _table() -> tuple[dict[str, dict[str, str]], dict[str, Shape]]:
    text = resources.files(__package__).joinpath("builtin.json").read_bytes()
    data = msgspec.json.decode(text)
    named: dict[str, Shape] = {name: Shape("struct", name=name) for name in data["types"]}

    def build(spec: Any) -> Shape:
        if isinstance(spec, str):
            return named[spec[1:]] if spec.startswith("#") else _leaf(spec)
        if "map" in spec:
            shape = Shape("map")
            shape.atomic = spec["map"] == "atomic"
            shape.of = build(spec["of"])
            return shape
        shape = Shape("list")
        shape.of = build(spec["of"])
        shape.atomic = spec["list"] == "atomic"
        shape.set = spec["list"] == "set"
        shape.keys = tuple(spec.get("keys", ()))
        shape.merge_key = spec.get("merge")
        return shape

    for name, entry in data["types"].items():
        shape = named[name]
        shape.fields = {field: build(spec) for field, spec in entry["fields"].items()}
        shape.required = tuple(entry.get("required", ()))
        shape.atomic = entry.get("atomic", False)
        shape.always = frozenset(entry.get("always", ()))
        shape.numbers = entry.get("numbers", {})
        shape.pointers = frozenset(entry.get("pointers", ()))
    for field, default in _DEFAULT_KEYS.items():
        for owner in ("api.core.v1.ContainerPort", "api.core.v1.ServicePort"):
            keyed = Shape("string")
            keyed.default = default
            named[owner].fields[field] = keyed
    return data["kinds"], named


@functools.cache
def _leaf(form: str) -> Shape:
    return RAW if form == "any" else Shape(form)


def builtin(api_version: str, kind: str) -> Shape:
    """Shape of a built-in kind. Raises KeyError for one that is not in the table."""
    kinds, named = _table()
    return named[kinds[api_version][kind]]


def delete_options() -> Shape:
    """Shape of ``DeleteOptions``."""
    return _table()[1]["meta.v1.DeleteOptions"]


def object_meta() -> Shape:
    """Shape of ``metadata``."""
    return _table()[1]["meta.v1.ObjectMeta"]


def from_schema(schema: dict[str, Any]) -> Shape:
    """Shape of a custom resource from the ``openAPIV3Schema`` of one version."""
    shape = _schema(schema)
    shape.form = "struct"
    shape.fields = {"apiVersion": _leaf("string"), "kind": _leaf("string"), **shape.fields, "metadata": object_meta()}
    return shape


def _schema(schema: dict[str, Any]) -> Shape:
    if schema.get("x-kubernetes-int-or-string"):
        return _leaf("intorstring")
    open_ = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    match schema.get("type"):
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            shape = Shape("map")
            shape.of = _schema(schema["additionalProperties"])
        case "object" if schema.get("additionalProperties") is True:
            shape = Shape("map")
            shape.of = ANY
        case "object":
            shape = Shape("struct")
            shape.fields = {key: _schema(item) for key, item in schema.get("properties", {}).items()}
            shape.required = tuple(schema.get("required", ()))
            shape.open = open_ or bool(schema.get("x-kubernetes-embedded-resource"))
            if schema.get("x-kubernetes-embedded-resource"):
                for key in ("apiVersion", "kind"):
                    shape.fields.setdefault(key, _leaf("string"))
                shape.fields["metadata"] = object_meta()
        case "array":
            shape = Shape("list")
            shape.of = _schema(schema["items"])
            kind = schema.get("x-kubernetes-list-type", "atomic")
            shape.atomic = kind == "atomic"
            shape.set = kind == "set"
            shape.keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
        case ("string" | "integer" | "number" | "boolean") as form:
            shape = Shape(form)
            shape.default = schema.get("default")
        case _:
            return ANY
    if schema.get("x-kubernetes-map-type") == "atomic":
        shape.atomic = True
    return shape


def drop_unknown(obj: Any, shape: Shape, path: str = "") -> list[str]:
    """Remove in place the fields that the shape does not have; the paths of those removed."""
    dropped: list[str] = []
    if shape.form == "struct" and isinstance(obj, dict) and not shape.open:
        for key in list(obj):
            where = f"{path}.{key}" if path else key
            field = shape.fields.get(key)
            if field is None:
                del obj[key]
                dropped.append(where)
            elif field.form not in LEAVES:
                dropped += drop_unknown(obj[key], field, where)
    elif shape.form == "map" and isinstance(obj, dict) and shape.of and shape.of.form not in LEAVES:
        for key, value in obj.items():
            dropped += drop_unknown(value, shape.of, f"{path}.{key}")
    elif shape.form == "list" and isinstance(obj, list) and shape.of and shape.of.form not in LEAVES:
        for index, value in enumerate(obj):
            dropped += drop_unknown(value, shape.of, f"{path}[{index}]")
    return dropped


_ZERO: dict[str, Any] = {
    "string": "",
    "integer": 0,
    "int32": 0,
    "int64": 0,
    "number": 0,
    "boolean": False,
    "struct": {},
}


def drop_nulls(obj: Any, shape: Shape) -> None:
    """Remove in place the fields whose value is null, as decoding into typed objects does.

    A null in a list becomes the zero value of its type, where that has a form in JSON.
    """
    if isinstance(obj, dict):
        for key in list(obj):
            child = shape.child(key)
            if obj[key] is None and child.form != "any":
                del obj[key]
            elif child.form not in LEAVES:
                drop_nulls(obj[key], child)
    elif isinstance(obj, list) and shape.of is not None:
        if shape.of.form in _ZERO and None in obj:
            obj[:] = [copy.copy(_ZERO[shape.of.form]) if item is None else item for item in obj]
        if shape.of.form not in LEAVES:
            for item in obj:
                drop_nulls(item, shape.of)


_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "time": (str,),
    "bytes": (str,),
    "integer": (int,),
    "int32": (int,),
    "int64": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "quantity": (str, int, float),
    "intorstring": (str, int),
    "struct": (dict,),
    "map": (dict,),
    "list": (list,),
}
_GO = {"boolean": "bool", "time": "Time", "map": "map"}


def mistyped(obj: Any, shape: Shape, path: str, owner: str) -> str | None:
    """The first value that a typed decoder would refuse, in words, or None.

    ``path`` is that of ``obj``, ``owner`` the type of the struct that it is a field of.
    """
    if obj is None or shape.form == "any":
        return None
    allowed = _PYTHON[shape.form]
    if not isinstance(obj, allowed) or (isinstance(obj, bool) and shape.form != "boolean"):
        found = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(obj), "number")
        wanted = _GO.get(shape.form, shape.name.rpartition(".")[2] or shape.form)
        where = f"{owner}.{path}" if path else owner
        return f"json: cannot unmarshal {found} into Go struct field {where} of type {wanted}"
    if isinstance(obj, dict):
        inside = shape.name.rpartition(".")[2] or owner
        for key, value in obj.items():
            where = path if shape.form == "map" else f"{path}.{key}".lstrip(".")
            if wrong := mistyped(value, shape.child(key), where, inside):
                return wrong
    elif isinstance(obj, list) and shape.of is not None:
        for value in obj:
            if wrong := mistyped(value, shape.of, path, owner):
                return wrong
    return None

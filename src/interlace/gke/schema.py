"""The cluster file as a JSON Schema and as a list of its keys, both from the structs that read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import inspect

from interlace.gke.cluster import FabricCluster

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


class KeyInFile(msgspec.Struct, frozen=True, kw_only=True):
    """One key: ``path`` as people write it (``spec.pools[].nodes``), what may stand there, what it means."""

    path: str
    kind: str
    needed: bool
    default: str
    about: str


def schema() -> dict[str, Any]:
    """For editors and for other programs."""
    found = msgspec.json.schema(FabricCluster)
    return {"$schema": DRAFT, "title": "FabricCluster", **found}


def keys() -> Iterator[KeyInFile]:
    """All keys, in the order of the file."""
    yield from _keys(inspect.type_info(FabricCluster), "")


def _keys(kind: inspect.Type, at: str) -> Iterator[KeyInFile]:
    if not isinstance(kind, inspect.StructType):
        raise TypeError(f"{at} is no struct")
    for field in kind.fields:
        path = f"{at}.{field.encode_name}" if at else field.encode_name
        inner, about = _opened(field.type)
        many = isinstance(inner, inspect.VarTupleType)
        item = _opened(inner.item_type)[0] if isinstance(inner, inspect.VarTupleType) else inner
        yield KeyInFile(
            path=f"{path}[]" if many else path,
            kind=_word(item),
            needed=field.required,
            default=_default(field),
            about=about or _doc(item),
        )
        if isinstance(item, inspect.StructType):
            yield from _keys(item, f"{path}[]" if many else path)


def _opened(kind: inspect.Type) -> tuple[inspect.Type, str]:
    """The type itself, and its description."""
    about = ""
    while True:
        if isinstance(kind, inspect.Metadata):
            about = about or (kind.extra_json_schema or {}).get("description", "")
            kind = kind.type
        elif isinstance(kind, inspect.UnionType):
            kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
        else:
            return kind, about


def _doc(kind: inspect.Type) -> str:
    """First line of a struct's own text."""
    if not isinstance(kind, inspect.StructType):
        return ""
    return (kind.cls.__doc__ or "").partition("\n")[0]


def _word(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.LiteralType):
        return ", ".join(f"`{each}`" for each in kind.values)
    if isinstance(kind, inspect.IntType):
        return f"{kind.ge} to {kind.le}" if kind.ge is not None else "number"
    words = {inspect.StrType: "text", inspect.BoolType: "true or false", inspect.DictType: "names to texts"}
    return words.get(type(kind), "")


def _default(field: inspect.Field) -> str:
    value = field.default
    if value is msgspec.NODEFAULT or value is None or value in ("", (), {}) or isinstance(value, msgspec.Struct):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)

"""CustomResourceDefinitions of our kinds, generated from their structs.

The structs in ``api.computedomain`` are the only place where a field, its type, its default and
its bounds are stated. What a struct cannot say (list maps, CEL rules, requiredness that differs
from Python's) stands in the ``msgspec.Meta`` of the field.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import inspect

from interlace.api.computedomain import GROUP, REQUIRED, WITHOUT_DEFAULT, ComputeDomain, ComputeDomainClique
from interlace.api.meta import Object

_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def crds() -> list[dict[str, Any]]:
    """``apiextensions.k8s.io/v1`` definitions of ComputeDomain and ComputeDomainClique, ready to apply."""
    return [
        _crd(
            ComputeDomain,
            status=True,
            columns=[
                _column("Status", ".status.status"),
                _column("Nodes", ".status.readyNodes", description="Nodes that are ready, of all nodes."),
                _column("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
                _column("Template", ".spec.channel.resourceClaimTemplate.name", priority=1),
                _column("Connected", '.status.conditions[?(@.type=="PeersConnected")].status', priority=1),
                _AGE,
            ],
        ),
        _crd(
            ComputeDomainClique,
            status=False,
            columns=[
                _column("Namespace", r".metadata.annotations.interlace\.dev/domain-namespace"),
                _column("Domain", r".metadata.annotations.interlace\.dev/domain-name"),
                _AGE,
            ],
        ),
    ]


def _crd(kind: type[Object], *, status: bool, columns: list[dict[str, Any]]) -> dict[str, Any]:
    resource = kind.resource
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": _root(kind)},
    }
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _column(name: str, path: str, *, priority: int = 0, description: str = "") -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": "string", "jsonPath": path}
    if description:
        column["description"] = description
    if priority:
        column["priority"] = priority
    return column


def _root(kind: type[Object]) -> dict[str, Any]:
    """Schema of a whole object; the API server owns ``apiVersion``, ``kind`` and ``metadata``."""
    info = inspect.type_info(kind)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{kind.__name__} is no msgspec.Struct: describe the kind by one")
    schema = _struct(info, skip=frozenset({"metadata"}))
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **schema["properties"],
    }
    return schema


def _struct(info: inspect.StructType, *, skip: frozenset[str] = frozenset()) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in info.fields:
        if field.name in skip:
            continue
        properties[field.encode_name] = schema = _type(field.type)
        mark = field.type.extra if isinstance(field.type, inspect.Metadata) else None
        if field.required or mark == REQUIRED:
            required.append(field.encode_name)
        if isinstance(field.default, str | int) and field.default != "" and mark != WITHOUT_DEFAULT:
            schema["default"] = field.default
    schema = {"type": "object", "description": (info.cls.__doc__ or "").strip(), "properties": properties}
    if required:
        schema["required"] = sorted(required)
    return schema


def _type(info: inspect.Type) -> dict[str, Any]:
    match info:
        case inspect.Metadata():
            return {**_type(info.type), **(info.extra_json_schema or {})}
        case inspect.UnionType():
            (inner,) = (part for part in info.types if not isinstance(part, inspect.NoneType))
            return _type(inner)
        case inspect.StructType():
            return _struct(info)
        case inspect.ListType():
            return {"type": "array", "items": _type(info.item_type)}
        case inspect.LiteralType():
            return {"type": "string", "enum": list(info.values)}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            low = {} if info.ge is None else {"minimum": info.ge}
            return {"type": "integer"} | low | ({} if info.le is None else {"maximum": info.le})
        case inspect.StrType():
            return {"type": "string"}
    raise TypeError(f"no CRD schema for {type(info).__name__}: give api.crd a rule for it")

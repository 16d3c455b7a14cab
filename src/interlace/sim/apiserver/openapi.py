"""OpenAPI v3 documents, as far as kubectl reads them: schemas for ``explain``, and operations that say that the
server validates fields and takes server-side apply.

Built-in kinds have no descriptions here; custom ones have those of their definitions.

Invariant: every reference in a document points into the same document.
"""

from __future__ import annotations

import hashlib
from typing import Any

from interlace.sim.apiserver.kinds import Kind, Kinds
from interlace.sim.apiserver.objects import Json
from interlace.sim.apiserver.shapes import Shape, object_meta

_PREFIX = "#/components/schemas/"
SWAGGER_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_TITLE = "Kubernetes (simulated by interlace)"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def component_name(shape: Shape) -> str:
    """Full name of a built-in type."""
    if shape.name.startswith("meta."):
        return "io.k8s.apimachinery.pkg.apis." + shape.name
    return "io.k8s." + shape.name


def index(kinds: Kinds, version: str) -> Json:
    """``/openapi/v3``."""
    paths: dict[str, Json] = {}
    for group, versions in kinds.versions().items():
        for name in versions:
            path = f"apis/{group}/{name}" if group else f"api/{name}"
            digest = hashlib.sha256(f"{version}/{kinds.revision}/{path}".encode()).hexdigest()
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest.upper()}"}
    return {"paths": paths}


def document(kinds: Kinds, group: str, version: str, release: str) -> Json | None:
    """The document of a group and version; None if it is not served."""
    served = [kind for kind in kinds if kind.group == group and kind.version == version]
    if not served:
        return None
    schemas: dict[str, Json] = {}
    paths: dict[str, Json] = {}
    _add(object_meta(), schemas)
    for kind in sorted(served, key=lambda item: item.plural):
        if kind.schema is not None:
            reversed_group = ".".join(reversed(group.split(".")))
            schemas[f"{reversed_group}.{version}.{kind.kind}"] = kind.schema.openapi()
        else:
            name = _add(kind.shape, schemas)
            schemas[name]["x-kubernetes-group-version-kind"] = [_gvk(kind)]
        paths.update(_paths(kind))
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": release},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _gvk(kind: Kind) -> Json:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _paths(kind: Kind) -> dict[str, Json]:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scope = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"{root}{scope}/{kind.plural}"
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in _PARAMETERS
    ]

    def operation(action: str, content: tuple[str, ...] = ()) -> Json:
        out: Json = {
            "responses": {"200": {"description": "OK"}},
            "parameters": parameters,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": _gvk(kind),
        }
        if content:
            out["requestBody"] = {"content": {media: {"schema": {"type": "object"}} for media in content}}
        return out

    # Strategic merge is left out of the patches: kubectl then uses the list keys that it was built with.
    patches = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
    out: dict[str, Json] = {collection: {"post": operation("post", ("application/json",))}}
    if "patch" in kind.verbs:
        out[collection + "/{name}"] = {
            "get": operation("get"),
            "put": operation("put", ("application/json",)),
            "patch": operation("patch", patches),
            "delete": operation("delete"),
        }
    return out


def _add(shape: Shape, schemas: dict[str, Json]) -> str:
    name = component_name(shape)
    if name not in schemas:
        schemas[name] = {"type": "object"}
        properties = {field: _property(child, schemas) for field, child in sorted(shape.fields.items())}
        schemas[name] = {"type": "object", "properties": properties}
        if shape.required:
            schemas[name]["required"] = list(shape.required)
        if shape.atomic:
            schemas[name]["x-kubernetes-map-type"] = "atomic"
    return name


def _property(shape: Shape, schemas: dict[str, Json]) -> Json:
    if shape.form == "struct":
        return {"allOf": [{"$ref": _PREFIX + _add(shape, schemas)}]} if shape.name else {"type": "object"}
    of: Any = _property(shape.of, schemas) if shape.of is not None else {}
    match shape.form:
        case "list":
            out: Json = {"type": "array", "items": of}
            if shape.keys:
                out |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(shape.keys)}
            else:
                out["x-kubernetes-list-type"] = "set" if shape.set else "atomic"
            if shape.merge_key is not None:
                out["x-kubernetes-patch-strategy"] = "merge"
                if shape.merge_key:
                    out["x-kubernetes-patch-merge-key"] = shape.merge_key
            return out
        case "map":
            return {"type": "object", "additionalProperties": of}
        case "time":
            return {"type": "string", "format": "date-time"}
        case "intorstring" | "quantity":
            return {"oneOf": [{"type": "string"}, {"type": "number"}]}
        case "any":
            return {"type": "object"}
        case "int32" | "int64" as form:
            return {"type": "integer", "format": form}
        case "bytes":
            return {"type": "string", "format": "byte"}
        case form:
            return {"type": form}


def swagger(release: str) -> Json:
    """``/openapi/v2``: only what tells a client that there is nothing to read here."""
    return {
        "swagger": "2.0",
        "info": {"title": _TITLE, "version": release},
        "paths": {},
        "definitions": {},
    }


def swagger_protobuf(release: str) -> bytes:
    """The same in the binary form that kubectl asks for: ``Document{swagger, info{title, version}}``."""

    def text(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    info = text(1, _TITLE.encode()) + text(2, release.encode())
    return text(1, b"2.0") + text(2, info)

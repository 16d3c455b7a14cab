"""Makes ``builtin.json``: the shape of the built-in kinds, from the OpenAPI documents that Kubernetes publishes.

Apply, strategic merge, pruning of unknown fields and ``kubectl explain`` all need to know which fields a kind has
and how its lists are keyed. Those facts are taken from ``api/openapi-spec`` of one Kubernetes release and
nothing else of it, field numbers from its ``generated.proto`` files. To renew the file:
``python -m interlace.sim.apiserver.typegen <api/openapi-spec> v1.36.3 <generated.proto> ...``.

Invariant: every type that is named in the file is described in the file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

KINDS = {
    "v1": [
        "Binding", "ConfigMap", "Event", "Namespace", "Node", "Pod", "Secret", "Service", "ServiceAccount",
    ],
    "apps/v1": ["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
    "admissionregistration.k8s.io/v1": ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    "apiextensions.k8s.io/v1": ["CustomResourceDefinition"],
    "authentication.k8s.io/v1": ["SelfSubjectReview", "TokenRequest", "TokenReview"],
    "authorization.k8s.io/v1": ["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SubjectAccessReview"],
    "autoscaling/v1": ["Scale"],
    "batch/v1": ["Job"],
    "coordination.k8s.io/v1": ["Lease"],
    "events.k8s.io/v1": ["Event"],
    "networking.k8s.io/v1": ["NetworkPolicy"],
    "policy/v1": ["Eviction", "PodDisruptionBudget"],
    "rbac.authorization.k8s.io/v1": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    "resource.k8s.io/v1": ["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"],
    "scheduling.k8s.io/v1": ["PriorityClass"],
}  # fmt: skip
_LEAVES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "time",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intorstring",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}


_SCALARS = ("string", "bytes", "integer", "int32", "int64", "boolean", "number")


def _short(ref: str) -> str:
    return ref.removeprefix("#/definitions/").removeprefix("io.k8s.").replace("apimachinery.pkg.apis.", "")


def _describe(schema: dict[str, Any], seen: set[str]) -> Any:
    if ref := schema.get("$ref"):
        name = ref.removeprefix("#/definitions/")
        if name in _LEAVES:
            return _LEAVES[name]
        seen.add(name)
        return "#" + _short(name)
    match schema.get("type"):
        case "array":
            strategy = schema.get("x-kubernetes-patch-strategy", "").split(",")
            merge_key = schema.get("x-kubernetes-patch-merge-key")
            kind = schema.get("x-kubernetes-list-type")
            keys = schema.get("x-kubernetes-list-map-keys", [])
            if kind is None:
                merges = "merge" in strategy
                kind = "atomic" if not merges else ("map" if merge_key else "set")
                keys = [merge_key] if kind == "map" else []
            out: dict[str, Any] = {"list": kind, "of": _describe(schema["items"], seen)}
            if keys:
                out["keys"] = keys
            if "merge" in strategy:
                out["merge"] = merge_key or ""
            return out
        case "object" if "additionalProperties" in schema:
            atomic = schema.get("x-kubernetes-map-type") == "atomic"
            return {"map": "atomic" if atomic else "granular", "of": _describe(schema["additionalProperties"], seen)}
        case "object" | None:
            return "any"
        case "string" if schema.get("format") == "byte":
            return "bytes"
        case "integer":
            return schema.get("format", "int64")
        case other:
            return {"string": "string", "number": "number", "boolean": "boolean"}[other]


Protos = dict[str, dict[str, tuple[int, str]]]
"""Fields of each message: name to number and type."""

_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(?:optional|repeated)?\s*(map<[^>]+>|[\w.]+) (\w+) = (\d+);", re.MULTILINE)


_STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_POINTER = re.compile(r'^\s*\w+\s+\*\w+\s+`json:"(\w+)', re.MULTILINE)


def parse_protos(texts: list[tuple[str, str]]) -> tuple[Protos, dict[str, list[str]]]:
    """The messages of ``generated.proto`` files, and the fields that ``types.go`` beside them makes pointers.

    The binary encoding writes other fields even when they are empty, JSON does not. Names are those that types have
    here.
    """
    out: Protos = {}
    pointers: dict[str, list[str]] = {}
    for text, go in texts:
        package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
        if package is None:
            continue
        for name, body in _MESSAGE.findall(text):
            out[_proto_name(f"{package[1]}.{name}")] = {
                field: (int(number), kind if "." in kind or not kind[0].isupper() else f"{package[1]}.{kind}")
                for kind, field, number in _FIELD.findall(body)
            }
        for name, body in _STRUCT.findall(go):
            pointers[_proto_name(f"{package[1]}.{name}")] = _POINTER.findall(body)
    return out, pointers


def _proto_name(name: str) -> str:
    name = name.lstrip(".").removeprefix("k8s.io.").replace("apiextensions_apiserver", "apiextensions-apiserver")
    return name.replace("apimachinery.pkg.apis.", "")


def _numbers(name: str, fields: Iterable[str], protos: Protos) -> dict[str, Any]:
    """Name of each numbered field; a message that JSON does not name is inlined."""
    out: dict[str, Any] = {}
    for field, (number, kind) in protos.get(name, {}).items():
        if field in fields:
            out[str(number)] = field
        elif _proto_name(kind) in protos:
            out[str(number)] = _numbers(_proto_name(kind), fields, protos)
    return out


def build(
    swagger: dict[str, Any], v3: dict[str, Any], protos: Protos, pointers: dict[str, list[str]], version: str
) -> dict[str, Any]:
    """The content of ``builtin.json`` for a parsed OpenAPI v2 document, the schemas of the v3 documents and messages.

    ``always`` lists the fields that an encoder writes even when they are empty: structs by value and required lists.
    """
    definitions = swagger["definitions"]
    kinds: dict[str, dict[str, str]] = {}
    queue: list[str] = []
    for name, definition in definitions.items():
        for gvk in definition.get("x-kubernetes-group-version-kind", []):
            api = f"{gvk['group']}/{gvk['version']}".lstrip("/")
            if gvk["kind"] in KINDS.get(api, ()):
                kinds.setdefault(api, {})[gvk["kind"]] = _short(name)
                queue.append(name)
    types: dict[str, Any] = {}
    while queue:
        name = queue.pop()
        if _short(name) in types:
            continue
        definition = definitions[name]
        seen: set[str] = set()
        entry: dict[str, Any] = {
            "fields": {field: _describe(schema, seen) for field, schema in definition.get("properties", {}).items()}
        }
        if required := definition.get("required"):
            entry["required"] = required
        if definition.get("x-kubernetes-map-type") == "atomic":
            entry["atomic"] = True
        always = [
            field
            for field, schema in v3.get(name, {}).get("properties", {}).items()
            if (schema.get("default") == {} and "allOf" in schema)
            or (field in definition.get("required", ()) and schema.get("type") in ("array", "object"))
        ]
        if always:
            entry["always"] = always
        if numbers := _numbers(_short(name), entry["fields"], protos):
            entry["numbers"] = numbers
            scalars = [field for field in pointers.get(_short(name), ()) if entry["fields"].get(field) in _SCALARS]
            if scalars:
                entry["pointers"] = scalars
        types[_short(name)] = entry
        queue.extend(seen)
    return {"version": version, "kinds": kinds, "types": dict(sorted(types.items()))}


def main(argv: list[str]) -> None:
    """Write the table beside this module."""
    folder, version = Path(argv[0]), argv[1]
    sources = [Path(path) for path in argv[2:]]
    texts = [
        (path.read_text(encoding="utf-8"), path.with_name("types.go").read_text(encoding="utf-8")) for path in sources
    ]
    protos, pointers = parse_protos(texts)
    v3: dict[str, Any] = {}
    for path in sorted((folder / "v3").glob("*_openapi.json")):
        v3.update(json.loads(path.read_text(encoding="utf-8")).get("components", {}).get("schemas", {}))
    table = build(json.loads((folder / "swagger.json").read_text(encoding="utf-8")), v3, protos, pointers, version)
    rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in table["types"].items())
    text = (
        f'{{"version": {json.dumps(table["version"])},\n'
        f' "kinds": {json.dumps(table["kinds"], sort_keys=True)},\n'
        f' "types": {{\n{rows}\n }}}}\n'
    )
    Path(__file__).with_name("builtin.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

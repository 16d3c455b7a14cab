"""Makes ``builtin.json``: the shape of the built-in kinds, from the OpenAPI documents that Kubernetes publishes.

Apply, strategic merge, pruning of unknown fields and ``kubectl explain`` all need to know which fields a kind has
and how its lists are keyed. Those facts are taken from ``api/openapi-spec`` of one Kubernetes release and
nothing else of it. Run ``python -m interlace.sim.apiserver.typegen <api/openapi-spec> v1.36.3`` to renew the file.

Invariant: every type that is named in the file is described in the file.
"""

from __future__ import annotations

import json
import sys
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
        case "integer":
            return schema.get("format", "int64")
        case other:
            return {"string": "string", "number": "number", "boolean": "boolean"}[other]


def build(swagger: dict[str, Any], v3: dict[str, Any], version: str) -> dict[str, Any]:
    """The content of ``builtin.json`` for a parsed OpenAPI v2 document and the schemas of the v3 documents.

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
        types[_short(name)] = entry
        queue.extend(seen)
    return {"version": version, "kinds": kinds, "types": dict(sorted(types.items()))}


def main(argv: list[str]) -> None:
    """Write the table beside this module."""
    folder, version = Path(argv[0]), argv[1]
    v3: dict[str, Any] = {}
    for path in sorted((folder / "v3").glob("*_openapi.json")):
        v3.update(json.loads(path.read_text(encoding="utf-8")).get("components", {}).get("schemas", {}))
    table = build(json.loads((folder / "swagger.json").read_text(encoding="utf-8")), v3, version)
    rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in table["types"].items())
    text = (
        f'{{"version": {json.dumps(table["version"])},\n'
        f' "kinds": {json.dumps(table["kinds"], sort_keys=True)},\n'
        f' "types": {{\n{rows}\n }}}}\n'
    )
    Path(__file__).with_name("builtin.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

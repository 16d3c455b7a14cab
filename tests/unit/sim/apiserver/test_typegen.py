"""The table of types is made from published documents alone, and describes every type that it names."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from interlace.sim.apiserver.kinds import Kinds
from interlace.sim.apiserver.shapes import LEAVES, Shape, builtin
from interlace.sim.apiserver.typegen import KINDS, build, parse_protos

PROTO = """
package k8s.io.api.core.v1;
// A comment = 9;
message ConfigMap {
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
  map<string, string> data = 2;
  optional Source source = 3;
  optional bool immutable = 4;
}

message Source {
  optional string path = 1;
}
"""
GO = """
type ConfigMap struct {
	metav1.TypeMeta `json:",inline"`
	Immutable *bool `json:"immutable,omitempty" protobuf:"varint,4,opt,name=immutable"`
	Path string `json:"path"`
}
"""
SWAGGER: dict[str, Any] = {
    "definitions": {
        "io.k8s.api.core.v1.ConfigMap": {
            "properties": {
                "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
                "data": {"type": "object", "additionalProperties": {"type": "string"}},
                "immutable": {"type": "boolean"},
                "path": {"type": "string"},
                "items": {
                    "type": "array",
                    "items": {"type": "string", "format": "byte"},
                    "x-kubernetes-patch-strategy": "merge",
                },
            },
            "required": ["path"],
            "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMap"}],
        },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"properties": {"name": {"type": "string"}}},
    }
}


def test_facts_of_a_type_come_from_all_three_sources() -> None:
    protos, pointers = parse_protos([(PROTO, GO)])
    v3 = {
        "io.k8s.api.core.v1.ConfigMap": {
            "properties": {"metadata": {"allOf": [{"$ref": "x"}], "default": {}}},
        }
    }
    table = build(SWAGGER, v3, protos, pointers, "v1.0.0")
    assert table["kinds"] == {"v1": {"ConfigMap": "api.core.v1.ConfigMap"}}
    assert table["types"]["api.core.v1.ConfigMap"] == {
        "fields": {
            "metadata": "#meta.v1.ObjectMeta",
            "data": {"map": "granular", "of": "string"},
            "immutable": "boolean",
            "path": "string",
            "items": {"list": "set", "of": "bytes", "merge": ""},
        },
        "required": ["path"],
        "always": ["metadata"],
        "numbers": {"1": "metadata", "2": "data", "3": {"1": "path"}, "4": "immutable"},
        "pointers": ["immutable"],
    }
    assert "meta.v1.ObjectMeta" in table["types"]


def test_every_type_that_is_named_is_described() -> None:
    table = json.loads(resources.files("interlace.sim.apiserver").joinpath("builtin.json").read_bytes())
    text = json.dumps(table["types"])
    named = {part.split('"')[0] for part in text.split('"#')[1:]}
    assert named <= table["types"].keys()


def test_every_kind_has_a_shape_with_metadata() -> None:
    for api_version, kinds in KINDS.items():
        for kind in kinds:
            shape: Shape = builtin(api_version, kind)
            assert "apiVersion" in shape.fields
            assert shape.form not in LEAVES
    for served in Kinds():
        assert "metadata" in served.shape.fields, served.plural

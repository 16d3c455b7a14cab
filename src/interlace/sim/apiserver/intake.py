"""From what a client sent to an object that can be stored: decoding, unknown fields, defaults, validation.

The order is that of the real server: decode, drop what the kind does not have, fill in defaults, then check.

Invariant: functions here know one object and its old state, never the store.
"""

from __future__ import annotations

from typing import Any

from interlace.sim.apiserver import cause, errors, resources, shapes, validation
from interlace.sim.apiserver.calls import Call
from interlace.sim.apiserver.cause import Cause
from interlace.sim.apiserver.defaults import apply_defaults
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.lifecycle import name_causes
from interlace.sim.apiserver.objects import Json, clone, get, name_of

_DEVICES = "resource.k8s.io"


def parse(call: Call) -> Json:
    """The object in the body of a POST or PUT. Raises ApiFault 400."""
    body = call.json()
    kind = call.kind
    if not isinstance(body, dict):
        raise errors.bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            "json: cannot unmarshal into Go value"
        )
    if kind.custom and not body.get("kind"):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): Object 'Kind' is missing in "
            f"'{call.body.decode(errors='replace')[:200]}'"
        )
    body.setdefault("apiVersion", kind.api_version)
    body.setdefault("kind", kind.kind)
    if body["kind"] != kind.kind and kind.custom:
        wrong = cause.invalid("kind", body["kind"], f"must be {kind.kind}")
        raise errors.invalid(kind.group, str(body["kind"]), name_of(body), [wrong])
    if body["kind"] != kind.kind:
        raise errors.bad_request(
            f'{body["kind"]} in version "{str(body["apiVersion"]).rpartition("/")[2]}" cannot be handled as a '
            f"{kind.kind}: converting ({body['apiVersion']}.{body['kind']}) to "
            f"({kind.group.split('.')[0] or 'core'}.{kind.kind}): unknown conversion"
        )
    if body["apiVersion"] != kind.api_version and not kind.custom:
        version = str(body["apiVersion"])
        raise errors.bad_request(
            f'{kind.kind} in version "{version.rpartition("/")[2]}" cannot be handled as a {kind.kind}: no kind '
            f'"{kind.kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if body["apiVersion"] != kind.api_version:
        raise errors.bad_request(
            f"the API version in the data ({body['apiVersion']}) does not match the expected API version "
            f"({kind.api_version})"
        )
    settle(body, call, what=f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: ')
    return body


def settle(obj: Json, call: Call, *, what: str) -> None:
    """Bring an object into its typed form, in place: unknown fields and nulls go, wrong types are refused.

    Raises ApiFault 400 for a wrong type, and for unknown fields where the client asked for strictness.
    """
    kind = call.kind
    if not isinstance(obj.get("metadata"), dict):
        if obj.get("metadata") is not None:
            raise errors.bad_request(f"{what}json: cannot unmarshal into Go struct field metadata of type ObjectMeta")
        obj["metadata"] = {}
    dropped = unknown_fields(obj, kind)
    if dropped and call.field_validation != "Ignore":
        listed = [f'unknown field "{path}"' for path in dropped]
        if call.field_validation == "Strict":
            raise errors.bad_request(f"{what}strict decoding error: {', '.join(listed)}")
        call.warnings.extend(listed)
    if kind.custom:
        shapes.drop_nulls(obj["metadata"], shapes.object_meta())
        wrong = shapes.mistyped(obj["metadata"], shapes.object_meta(), "metadata", kind.kind)
    else:
        shapes.drop_nulls(obj, kind.shape)
        wrong = shapes.mistyped(obj, kind.shape, "", kind.kind)
    if wrong:
        raise errors.bad_request(what + wrong)


def unknown_fields(obj: Json, kind: Kind) -> list[str]:
    """Drop, in place, what the kind does not have; their paths."""
    if kind.schema is None:
        return shapes.drop_unknown(obj, kind.shape)
    dropped = shapes.drop_unknown(obj["metadata"], shapes.object_meta(), "metadata")
    return sorted([*dropped, *kind.schema.prune(obj)])


def fill(obj: Json, kind: Kind) -> None:
    """Defaults, in place."""
    if kind.schema is not None:
        kind.schema.default(obj)
    else:
        apply_defaults(obj, kind)


def place(obj: Json, call: Call) -> None:
    """Set the namespace of the request, in place. Raises ApiFault 400 if the object says another."""
    meta = obj["metadata"]
    namespace = call.target.namespace
    if not call.kind.namespaced:
        if meta.get("namespace"):
            raise errors.bad_request("namespace provided for a cluster-scoped object")
        meta.pop("namespace", None)
        return
    if not namespace:
        raise errors.bad_request("an empty namespace may not be set during creation")
    if meta.get("namespace", namespace) not in ("", namespace):
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    meta["namespace"] = namespace


def check(new: Json, old: Json | None, kind: Kind, *, subresource: str = "") -> None:
    """Raises ApiFault 422 with everything that is wrong with ``new``."""
    found: list[Cause] = validation.metadata_causes(new, old) * 2  # the real server looks at metadata twice
    if old is None:
        found += name_causes(kind, name_of(new))
    elif new["metadata"].get("namespace") != old["metadata"].get("namespace"):
        found.append(Cause("metadata.namespace", "Invalid value: field is immutable", "FieldValueInvalid"))
    if kind.schema is not None:
        found += kind.schema.validate(new, old)
    elif subresource in ("", "scale"):
        if kind.group == _DEVICES:
            found += resources.validate_resource(kind.kind, new, old)
        elif old is None:
            found += validation.create_causes(new, kind)
        else:
            found += validation.update_causes(new, old, kind)
    if found:
        raise errors.invalid(kind.group, kind.kind, name_of(new), found)


def undeclared(config: Any, kind: Kind) -> list[str]:
    """Fields of an apply configuration that the kind does not have; ``config`` stays as it is."""
    return unknown_fields(clone(config), kind)


def meta_version(obj: Json) -> str:
    """``metadata.resourceVersion``; "0" counts as none."""
    version = get(obj, "metadata", "resourceVersion") or ""
    return "" if version == "0" else str(version)

"""Kinds of ``resource.k8s.io``: validation of what users and drivers write.

The rules of Kubernetes 1.36 for the fields that our components, the scheduler and DRA drivers use.
Invariant: the spec of a claim and of a template never changes, opaque parameters compared by bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from interlace.sim.apiserver.cause import (
    Cause,
    InOrder,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from interlace.sim.apiserver.cel import CelError, Selector
from interlace.sim.apiserver.cel_library import is_semver
from interlace.sim.apiserver.formats import (
    class_name,
    driver_name,
    label_name,
    object_name,
    pool_name,
    qualified_name,
    subdomain_errors,
)
from interlace.sim.apiserver.quantity import is_quantity
from interlace.sim.apiserver.raw import raw_bytes, same

_IMMUTABLE: Final = "field is immutable"
_MAX_REQUESTS: Final = 32
_MAX_CONFIGS: Final = 32
_MAX_SELECTORS: Final = 32
_MAX_ALTERNATIVES: Final = 8
_MAX_EXPRESSION: Final = 10 * 1024
_MAX_PARAMETERS: Final = 10 * 1024
_MAX_DEVICES: Final = 128
_MAX_DEVICES_ADVANCED: Final = 64
_MAX_ATTRIBUTES: Final = 32
_MAX_TEXT: Final = 64
_FIELDS: Final = {
    "int": "IntValue",
    "bool": "BoolValue",
    "string": "StringValue",
    "version": "VersionValue",
    "ints": "IntValues",
    "bools": "BoolValues",
    "strings": "StringValues",
    "versions": "VersionValues",
}
"""Fields of an attribute, and what the server calls them where it shows one."""
_ONE_OF_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def validate_resource(kind: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    """Findings on a defaulted object; none for kinds of other groups. ``old`` is given on updates."""
    found = list(object_name(obj["metadata"].get("name", ""))) if old is None else []
    spec, before = obj.get("spec") or {}, None if old is None else old.get("spec") or {}
    match kind:
        case "ResourceClaim" | "ResourceClaimTemplate" if before is not None:
            found += [] if same(spec, before) else [invalid("spec", spec, _IMMUTABLE)]
        case "ResourceClaim":
            found += _claim_spec(spec, "spec")
        case "ResourceClaimTemplate":
            found += _claim_spec(spec.get("spec") or {}, "spec.spec")
        case "DeviceClass":
            found += _selectors(spec.get("selectors") or (), "spec.selectors")
            found += _configs(spec.get("config") or (), "spec.config", None)
        case "ResourceSlice":
            found += _slice_spec(spec, before)
        case _:
            return []
    return found


def raw_findings(value: Any, path: str, limit: int) -> Iterator[Cause]:
    """A raw field: a JSON object of at most ``limit`` bytes."""
    if value is None:
        yield required(path)
    elif len(raw_bytes(value)) > limit:
        yield too_long(path, limit)
    elif not isinstance(value, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")


RequestNames = Mapping[str, frozenset[str]]
"""Names of the requests of a claim, each with those of its alternatives."""


def request_names(spec: Mapping[str, Any]) -> RequestNames:
    """What ``requests`` of configurations, constraints and results may refer to."""
    return {
        request.get("name", ""): frozenset(s.get("name", "") for s in request.get("firstAvailable") or ())
        for request in (spec.get("devices") or {}).get("requests") or ()
    }


def _claim_spec(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    devices, path = spec.get("devices") or {}, f"{path}.devices"
    requests = devices.get("requests") or ()
    yield from _too_many(requests, f"{path}.requests", _MAX_REQUESTS)
    for index, request in enumerate(requests):
        yield from _request(request, f"{path}.requests[{index}]")
    yield from _unique(requests, "name", f"{path}.requests")
    names = request_names(spec)
    for index, constraint in enumerate(devices.get("constraints") or ()):
        where = f"{path}.constraints[{index}]"
        yield from _references(constraint.get("requests") or (), f"{where}.requests", names)
        attribute = constraint.get("matchAttribute") or constraint.get("distinctAttribute")
        field = "distinctAttribute" if constraint.get("distinctAttribute") else "matchAttribute"
        if not attribute:
            detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
            yield required(where, detail)
        else:
            yield from qualified_name(attribute, f"{where}.{field}")
            if "/" not in attribute:
                detail = "a fully qualified name must be a domain and a name separated by a slash"
                yield invalid(f"{where}.{field}", attribute, detail)
    yield from _configs(devices.get("config") or (), f"{path}.config", names)


def _request(request: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from label_name(request.get("name", ""), f"{path}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or ()
    if exactly is None and not alternatives:
        yield required(path, _ONE_OF_REQUEST)
    elif exactly is not None and alternatives:
        yield invalid(path, None, f"{_ONE_OF_REQUEST}, but multiple fields are set")
    elif exactly is not None:
        yield from _device_request(exactly, f"{path}.exactly")
    else:
        where = f"{path}.firstAvailable"
        yield from _too_many(alternatives, where, _MAX_ALTERNATIVES)
        for index, part in enumerate(alternatives):
            yield from label_name(part.get("name", ""), f"{where}[{index}].name")
            yield from _device_request(part, f"{where}[{index}]")
        yield from _unique(alternatives, "name", where)


def _device_request(request: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from class_name(request.get("deviceClassName", ""), f"{path}.deviceClassName")
    yield from _selectors(request.get("selectors") or (), f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All":
        if count:
            yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count <= 0:
            yield invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield not_supported(f"{path}.allocationMode", mode, ["All", "ExactCount"])


def _selectors(selectors: Iterable[Mapping[str, Any]], path: str) -> Iterator[Cause]:
    listed = list(selectors)
    yield from _too_many(listed, path, _MAX_SELECTORS)
    for index, selector in enumerate(listed):
        where = f"{path}[{index}].cel"
        if not selector.get("cel"):
            yield required(where)
            continue
        expression = selector["cel"].get("expression", "")
        if len(expression) > _MAX_EXPRESSION:
            yield too_long(f"{where}.expression", _MAX_EXPRESSION)
            continue
        try:
            Selector(expression)
        except CelError as error:
            yield invalid(f"{where}.expression", expression, str(error))


def _configs(
    configs: Iterable[Mapping[str, Any]], path: str, names: RequestNames | None, limit: int = _MAX_CONFIGS
) -> Iterator[Cause]:
    listed = list(configs)
    yield from _too_many(listed, path, limit)
    for index, config in enumerate(listed):
        where = f"{path}[{index}]"
        if names is not None:
            yield from _references(config.get("requests") or (), f"{where}.requests", names)
        opaque = config.get("opaque")
        if opaque is None:
            yield required(f"{where}.opaque")
        else:
            yield from driver_name(opaque.get("driver", ""), f"{where}.opaque.driver")
            yield from raw_findings(opaque.get("parameters"), f"{where}.opaque.parameters", _MAX_PARAMETERS)


def _references(references: Iterable[str], path: str, names: RequestNames) -> Iterator[Cause]:
    for index, name in enumerate(references):
        yield from _reference(name, f"{path}[{index}]", names)


def _reference(name: str, path: str, names: RequestNames) -> Iterator[Cause]:
    segments = name.split("/")
    if len(segments) <= 2:
        for segment in segments:
            yield from label_name(segment, path)
        known = segments[0] in names and (len(segments) == 1 or segments[1] in names[segments[0]])
        if known:
            return
    yield invalid(path, name, _NOT_A_REQUEST)


def allocation_findings(allocation: Mapping[str, Any], path: str, names: RequestNames) -> Iterator[Cause]:
    """A new ``status.allocation`` of a claim with these requests."""
    devices = allocation.get("devices") or {}
    results, path = devices.get("results") or (), f"{path}.devices"
    yield from _too_many(results, f"{path}.results", _MAX_REQUESTS)
    for index, result in enumerate(results):
        where = f"{path}.results[{index}]"
        yield from _reference(result.get("request", ""), f"{where}.request", names)
        yield from driver_name(result.get("driver", ""), f"{where}.driver")
        yield from pool_name(result.get("pool", ""), f"{where}.pool")
        yield from label_name(result.get("device", ""), f"{where}.device")
    configs = devices.get("config") or ()
    for index, config in enumerate(configs):
        source, where = config.get("source", ""), f"{path}.config[{index}].source"
        if not source:
            yield required(where)
        elif source not in {"FromClaim", "FromClass"}:
            yield not_supported(where, source, ["FromClaim", "FromClass"])
    yield from _configs(configs, f"{path}.config", names, 2 * _MAX_CONFIGS)


def _slice_spec(spec: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[Cause]:
    pool = spec.get("pool") or {}
    yield from driver_name(spec.get("driver", ""), "spec.driver")
    yield from pool_name(pool.get("name", ""), "spec.pool.name")
    if (count := pool.get("resourceSliceCount", 0)) <= 0:
        yield invalid("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if (generation := pool.get("generation", 0)) < 0:
        yield invalid("spec.pool.generation", generation, "must be greater than or equal to zero")
    if before is not None:
        if pool.get("name") != (before.get("pool") or {}).get("name"):
            yield invalid("spec.pool.name", pool.get("name", ""), _IMMUTABLE)
        for field in ("driver", "nodeName"):
            if spec.get(field) != before.get(field):
                yield invalid(f"spec.{field}", spec.get(field, ""), _IMMUTABLE)
    yield from _slice_place(spec)
    devices = spec.get("devices") or ()
    advanced = any(d.get("taints") or d.get("consumesCounters") for d in devices)
    yield from _too_many(devices, "spec.devices", _MAX_DEVICES_ADVANCED if advanced else _MAX_DEVICES)
    for index, device in enumerate(devices):
        yield from _device(device, f"spec.devices[{index}]")
    yield from _unique(devices, "name", "spec.devices")


def _slice_place(spec: Mapping[str, Any]) -> Iterator[Cause]:
    """Exactly one way to say which nodes reach the devices."""
    chosen: list[str] = []
    if (node := spec.get("nodeName")) is not None:
        if node:
            chosen.append("`nodeName`")
            yield from (invalid("spec.nodeName", node, e) for e in subdomain_errors(node))
        else:
            yield invalid("spec.nodeName", node, "must be either unset or set to a non-empty string")
    if spec.get("nodeSelector") is not None:
        chosen.append("`nodeSelector`")
        terms = spec["nodeSelector"].get("nodeSelectorTerms") or []
        if len(terms) != 1:
            yield invalid("spec.nodeSelector.nodeSelectorTerms", terms, "must have exactly one node selector term")
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            chosen.append(f"`{field}`")
        elif spec.get(field) is not None:
            yield invalid(f"spec.{field}", False, "must be either unset or set to true")
    rule = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not chosen:
        yield required("spec", rule)
    elif len(chosen) > 1:
        yield invalid("spec", f"{{{', '.join(chosen)}}}", f"{rule}, but multiple fields are set")


def _device(device: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from label_name(device.get("name", ""), f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if (total := len(attributes) + len(capacity)) > _MAX_ATTRIBUTES:
        yield invalid(path, total, f"the total number of attributes and capacities must not exceed {_MAX_ATTRIBUTES}")
    for name, attribute in attributes.items():
        yield from qualified_name(name, f"{path}.attributes")
        yield from _attribute(attribute, f"{path}.attributes[{name}]")
    for name, amount in capacity.items():
        yield from qualified_name(name, f"{path}.capacity")
        if not is_quantity(amount.get("value")):
            yield invalid(f"{path}.capacity[{name}].value", amount.get("value", ""), "must be a quantity")
        elif amount.get("requestPolicy") and not device.get("allowMultipleAllocations"):
            yield forbidden(f"{path}.capacity[{name}].requestPolicy", "allowMultipleAllocations must be true")


def _attribute(attribute: Mapping[str, Any], path: str) -> Iterator[Cause]:
    present = [v for v in _FIELDS if attribute.get(v) is not None]
    for field in ("string", "version"):
        text = attribute.get(field)
        if text is None:
            continue
        if field == "version" and not is_semver(text):
            yield invalid(f"{path}.version", text, "must be a string compatible with semver.org spec 2.0.0")
        if len(text) > _MAX_TEXT:
            yield too_long(f"{path}.{field}", _MAX_TEXT)
    if len(present) != 1:
        shown = InOrder({_FIELDS[v]: attribute.get(v) for v in _FIELDS}) if present else ""
        yield invalid(path, shown, "exactly one value must be specified")


def _too_many(items: Any, path: str, limit: int) -> Iterator[Cause]:
    if len(items) > limit:
        yield too_many(path, len(items), limit)


def _unique(items: Iterable[Mapping[str, Any]], key: str, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(key, "")
        if value in seen:
            yield duplicate(f"{path}[{index}]", value)
        seen.add(value)

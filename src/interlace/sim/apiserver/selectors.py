"""Label and field selectors, with the fields that the real server can select each kind by.

Invariant: parsing never fails later: what :func:`parse_labels` and :func:`parse_fields` return can be evaluated on any
object.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from interlace.sim.apiserver import errors
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, get

Predicate = Callable[[Json], bool]

_SET = re.compile(r"^\s*(?P<key>[^\s=!<>()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)\s*$")
_BINARY = re.compile(r"^\s*(?P<key>[^\s=!<>()]+)\s*(?P<op>==|=|!=|<|>)\s*(?P<value>[^\s=!<>()]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<not>!?)\s*(?P<key>[^\s=!<>()]+)\s*$")


def _split(text: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    current = ""
    for char in text:
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
            continue
        depth += (char == "(") - (char == ")")
        current += char
    parts.append(current)
    return parts


def _requirement(text: str) -> Predicate:
    def labels(obj: Json) -> Json:
        return get(obj, "metadata", "labels") or {}

    if match := _SET.match(text):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        if match["op"] == "in":
            return lambda obj: labels(obj).get(key) in values
        return lambda obj: labels(obj).get(key) not in values
    if match := _BINARY.match(text):
        key, op, value = match["key"], match["op"], match["value"]
        if op in ("=", "=="):
            return lambda obj: labels(obj).get(key) == value
        if op == "!=":
            return lambda obj: labels(obj).get(key) != value
        if not value.lstrip("-").isdigit():
            raise ValueError(f"for 'Gt', 'Lt' operators, the value must be an integer, got {value!r}")
        bound = int(value)

        def compare(obj: Json) -> bool:
            found = labels(obj).get(key, "")
            if not found.lstrip("-").isdigit():
                return False
            return int(found) > bound if op == ">" else int(found) < bound

        return compare
    if match := _EXISTS.match(text):
        key = match["key"]
        if match["not"]:
            return lambda obj: key not in labels(obj)
        return lambda obj: key in labels(obj)
    raise ValueError(
        f"found {text.strip()!r}, expected: a requirement such as 'key', '!key', 'key=value', 'key in (a,b)'"
    )


def parse_labels(text: str) -> Predicate | None:
    """None if everything matches. Raises ApiFault 400."""
    if not text.strip():
        return None
    try:
        requirements = [_requirement(part) for part in _split(text)]
    except ValueError as error:
        raise errors.bad_request(f"unable to parse requirement: {error}") from error
    return lambda obj: all(requirement(obj) for requirement in requirements)


_Field = Callable[[Json], str]


def _path(*path: str, default: str = "") -> _Field:
    def read(obj: Json) -> str:
        value = get(obj, *path)
        if value is None:
            return default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read


def _involved(key: str) -> _Field:
    def read(obj: Json) -> str:
        about = obj.get("involvedObject") or obj.get("regarding") or {}
        return str(about.get(key, ""))

    return read


_EVENT_FIELDS: dict[str, _Field] = {
    **{
        f"involvedObject.{key}": _involved(key)
        for key in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
    "reason": _path("reason"),
    "reportingComponent": lambda obj: str(obj.get("reportingComponent") or get(obj, "source", "component") or ""),
    "source": lambda obj: str(get(obj, "source", "component") or obj.get("reportingComponent") or ""),
    "type": _path("type"),
}
_FIELDS: dict[str, dict[str, _Field]] = {
    "pods.": {
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.restartPolicy": _path("spec", "restartPolicy"),
        "spec.schedulerName": _path("spec", "schedulerName"),
        "spec.serviceAccountName": _path("spec", "serviceAccountName"),
        "spec.hostNetwork": _path("spec", "hostNetwork", default="false"),
        "status.phase": _path("status", "phase"),
        "status.podIP": _path("status", "podIP"),
        "status.nominatedNodeName": _path("status", "nominatedNodeName"),
    },
    "nodes.": {"spec.unschedulable": _path("spec", "unschedulable", default="false")},
    "namespaces.": {"status.phase": _path("status", "phase")},
    "secrets.": {"type": _path("type")},
    "services.": {"spec.clusterIP": _path("spec", "clusterIP"), "spec.type": _path("spec", "type")},
    "events.": _EVENT_FIELDS,
    "replicasets.apps": {"status.replicas": _path("status", "replicas", default="0")},
    "jobs.batch": {"status.successful": _path("status", "succeeded", default="0")},
    "resourceslices.resource.k8s.io": {
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.driver": _path("spec", "driver"),
    },
}


def _selectable(kind: Kind) -> dict[str, _Field]:
    fields: dict[str, _Field] = {"metadata.name": _path("metadata", "name")}
    if kind.namespaced or not kind.custom:
        fields["metadata.namespace"] = _path("metadata", "namespace")
    fields |= _FIELDS.get(kind.storage, {})
    if kind.definition is not None:
        version = next(v for v in kind.definition["spec"]["versions"] if v["name"] == kind.version)
        for item in version.get("selectableFields") or ():
            steps = item["jsonPath"].lstrip(".").split(".")
            fields[".".join(steps)] = _path(*steps)
    return fields


def parse_fields(text: str, kind: Kind) -> Predicate | None:
    """None if everything matches. Raises ApiFault 400 for a field that this kind cannot be selected by."""
    if not text.strip():
        return None
    known = _selectable(kind)
    tests: list[tuple[_Field, bool, str]] = []
    for part in text.split(","):
        negated = "!=" in part
        name, equals, value = part.partition("!=") if negated else part.replace("==", "=", 1).partition("=")
        name, value = name.strip(), value.strip()
        if not equals:
            raise errors.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        if name not in known:
            if kind.custom or kind.storage in _FIELDS:
                raise errors.bad_request(f"field label not supported: {name}")
            raise errors.bad_request(
                f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
        tests.append((known[name], negated, value))
    return lambda obj: all((read(obj) == value) != negated for read, negated, value in tests)


def by_label_selector(selector: Json | None) -> Predicate:
    """A ``metav1.LabelSelector``; None selects nothing, an empty one everything."""
    if selector is None:
        return lambda _obj: False
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []

    def test(obj: Json) -> bool:
        labels = get(obj, "metadata", "labels") or {}
        if any(labels.get(key) != value for key, value in wanted.items()):
            return False
        for item in expressions:
            found, values = labels.get(item["key"]), item.get("values") or ()
            good = {
                "In": found in values,
                "NotIn": found not in values,
                "Exists": item["key"] in labels,
                "DoesNotExist": item["key"] not in labels,
            }[item["operator"]]
            if not good:
                return False
        return True

    return test

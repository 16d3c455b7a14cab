"""The columns that ``kubectl get`` prints.

Custom kinds bring their own columns; for built-in kinds there are those that people look for, all others have name
and age, as on the real server.

Invariant: a row has as many cells as there are columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, get

_Cell = Callable[[Json], Any]
_STEP = re.compile(r"\.?(?P<key>(?:[^.\[\\]|\\.)+)|\[(?P<index>\*|\d+|\?\(.*?\))\]")
_FILTER = re.compile(r"\?\(@\.(?P<key>[^=]+?)\s*==\s*[\"'](?P<value>.*)[\"']\)")
_NONE = "<none>"


def age(timestamp: Any) -> str:
    """How long ago, as kubectl writes durations."""
    if not isinstance(timestamp, str):
        return "<unknown>"
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    return duration((datetime.now(UTC) - then).total_seconds())


def duration(seconds: float) -> str:
    """Two units at most, coarser as it grows."""
    left = int(seconds)
    if left < 0:
        return "0s" if left >= -2 else "<invalid>"
    if left < 120:
        return f"{left}s"
    minutes, hours, days = left // 60, left // 3600, left // 86400
    if minutes < 10:
        rest = left % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        rest = hours % 24
        return f"{days}d{rest}h" if rest else f"{days}d"
    if days < 730:
        return f"{days}d"
    years, rest = days // 365, days % 365
    return f"{years}y{rest}d" if rest and years < 8 else f"{years}y"


def json_path(obj: Any, path: str) -> list[Any]:
    """The values that a simple JSONPath of a printer column finds."""
    found: list[Any] = [obj]
    for match in _STEP.finditer(path):
        following: list[Any] = []
        for value in found:
            if (key := match["key"]) is not None:
                name = key.replace("\\.", ".")
                if isinstance(value, dict) and name in value:
                    following.append(value[name])
            elif isinstance(value, list):
                following += _select(value, match["index"])
        found = following
    return found


def _select(items: list[Any], index: str) -> Iterable[Any]:
    if index == "*":
        return items
    if index.isdigit():
        return items[int(index) : int(index) + 1]
    test = _FILTER.fullmatch(index)
    if test is None:
        return []
    return [item for item in items if isinstance(item, dict) and str(item.get(test["key"])) == test["value"]]


def _custom_cell(obj: Json, column: Json) -> Any:
    values = json_path(obj, column["jsonPath"])
    if not values or values[0] is None:
        return None
    if column["type"] == "date":
        return age(values[0])
    if column["type"] in ("integer", "number", "boolean"):
        return values[0] if isinstance(values[0], bool | int | float) else None
    shown = [value if isinstance(value, str) else _text(value) for value in values]
    return ",".join(shown)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_text(item) for item in value) + "]"
    return str(value)


def _pod_status(pod: Json) -> str:
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or "Unknown"
    for item in status.get("containerStatuses") or ():
        state = item.get("state") or {}
        if get(state, "waiting", "reason"):
            reason = state["waiting"]["reason"]
        elif get(state, "terminated", "reason"):
            reason = state["terminated"]["reason"]
    if pod["metadata"].get("deletionTimestamp"):
        reason = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _pod_ready(pod: Json) -> str:
    containers = get(pod, "spec", "containers") or []
    ready = [item for item in get(pod, "status", "containerStatuses") or () if item.get("ready")]
    return f"{len(ready)}/{len(containers)}"


def _pod_restarts(pod: Json) -> str:
    return str(sum(item.get("restartCount", 0) for item in get(pod, "status", "containerStatuses") or ()))


def _readiness_gates(pod: Json) -> str:
    gates = get(pod, "spec", "readinessGates") or []
    return f"0/{len(gates)}" if gates else _NONE


def _node_status(node: Json) -> str:
    ready = next((c for c in get(node, "status", "conditions") or () if c.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else ("Ready" if ready.get("status") == "True" else "NotReady")]
    if get(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = sorted(k.removeprefix(prefix) for k in get(node, "metadata", "labels") or {} if k.startswith(prefix))
    return ",".join(roles) or _NONE


def _node_address(kind: str) -> _Cell:
    def read(node: Json) -> str:
        for item in get(node, "status", "addresses") or ():
            if item.get("type") == kind:
                return str(item.get("address"))
        return _NONE

    return read


def _claim_state(claim: Json) -> str:
    words: list[str] = []
    if claim["metadata"].get("deletionTimestamp"):
        words.append("deleted")
    if get(claim, "status", "allocation"):
        words.append("allocated")
    if get(claim, "status", "reservedFor"):
        words.append("reserved")
    return ",".join(words) or "pending"


def _at(*path: str, default: Any = "") -> _Cell:
    def read(obj: Json) -> Any:
        value = get(obj, *path)
        return default if value in (None, "") else value

    return read


def _age(obj: Json) -> str:
    return age(obj["metadata"].get("creationTimestamp"))


def _ready_of(done: tuple[str, ...], wanted: tuple[str, ...]) -> _Cell:
    return lambda obj: f"{get(obj, *done) or 0}/{get(obj, *wanted) or 0}"


def _containers(key: str) -> _Cell:
    return lambda obj: ",".join(str(c.get(key)) for c in get(obj, "spec", "template", "spec", "containers") or ())


def _selector(obj: Json) -> str:
    labels = get(obj, "spec", "selector", "matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or _NONE


def _conditions(kind: str) -> _Cell:
    def read(obj: Json) -> str:
        return ",".join(c["type"] for c in get(obj, "status", "conditions") or () if c.get("status") == kind) or _NONE

    return read


def _job_status(job: Json) -> str:
    conditions = {c["type"] for c in get(job, "status", "conditions") or () if c.get("status") == "True"}
    for name in ("Complete", "Failed", "Suspended"):
        if name in conditions:
            return name
    return "Terminating" if job["metadata"].get("deletionTimestamp") else "Running"


def _event_object(event: Json) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _event_seen(event: Json) -> str:
    return age(get(event, "series", "lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime"))


def _event_first(event: Json) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"))


_Column = tuple[str, str, int, _Cell]
_NAME: _Column = ("Name", "string", 0, _at("metadata", "name"))
_AGE: _Column = ("Age", "string", 0, _age)
_COLUMNS: dict[str, tuple[_Column, ...]] = {
    "pods.": (
        _NAME,
        ("Ready", "string", 0, _pod_ready),
        ("Status", "string", 0, _pod_status),
        ("Restarts", "string", 0, _pod_restarts),
        _AGE,
        ("IP", "string", 1, _at("status", "podIP", default=_NONE)),
        ("Node", "string", 1, _at("spec", "nodeName", default=_NONE)),
        ("Nominated Node", "string", 1, _at("status", "nominatedNodeName", default=_NONE)),
        ("Readiness Gates", "string", 1, _readiness_gates),
    ),
    "nodes.": (
        _NAME,
        ("Status", "string", 0, _node_status),
        ("Roles", "string", 0, _node_roles),
        _AGE,
        ("Version", "string", 0, _at("status", "nodeInfo", "kubeletVersion")),
        ("Internal-IP", "string", 1, _node_address("InternalIP")),
        ("External-IP", "string", 1, _node_address("ExternalIP")),
        ("OS-Image", "string", 1, _at("status", "nodeInfo", "osImage", default="<unknown>")),
        ("Kernel-Version", "string", 1, _at("status", "nodeInfo", "kernelVersion", default="<unknown>")),
        ("Container-Runtime", "string", 1, _at("status", "nodeInfo", "containerRuntimeVersion", default="<unknown>")),
    ),
    "deployments.apps": (
        _NAME,
        ("Ready", "string", 0, _ready_of(("status", "readyReplicas"), ("spec", "replicas"))),
        ("Up-to-date", "integer", 0, _at("status", "updatedReplicas", default=0)),
        ("Available", "integer", 0, _at("status", "availableReplicas", default=0)),
        _AGE,
        ("Containers", "string", 1, _containers("name")),
        ("Images", "string", 1, _containers("image")),
        ("Selector", "string", 1, _selector),
    ),
    "replicasets.apps": (
        _NAME,
        ("Desired", "integer", 0, _at("spec", "replicas", default=0)),
        ("Current", "integer", 0, _at("status", "replicas", default=0)),
        ("Ready", "integer", 0, _at("status", "readyReplicas", default=0)),
        _AGE,
        ("Containers", "string", 1, _containers("name")),
        ("Images", "string", 1, _containers("image")),
        ("Selector", "string", 1, _selector),
    ),
    "daemonsets.apps": (
        _NAME,
        ("Desired", "integer", 0, _at("status", "desiredNumberScheduled", default=0)),
        ("Current", "integer", 0, _at("status", "currentNumberScheduled", default=0)),
        ("Ready", "integer", 0, _at("status", "numberReady", default=0)),
        ("Up-to-date", "integer", 0, _at("status", "updatedNumberScheduled", default=0)),
        ("Available", "integer", 0, _at("status", "numberAvailable", default=0)),
        _AGE,
        ("Containers", "string", 1, _containers("name")),
        ("Images", "string", 1, _containers("image")),
        ("Selector", "string", 1, _selector),
    ),
    "statefulsets.apps": (
        _NAME,
        ("Ready", "string", 0, _ready_of(("status", "readyReplicas"), ("spec", "replicas"))),
        _AGE,
        ("Containers", "string", 1, _containers("name")),
        ("Images", "string", 1, _containers("image")),
    ),
    "jobs.batch": (
        _NAME,
        ("Status", "string", 0, _job_status),
        ("Completions", "string", 0, _ready_of(("status", "succeeded"), ("spec", "completions"))),
        _AGE,
        ("Containers", "string", 1, _containers("name")),
        ("Images", "string", 1, _containers("image")),
        ("Selector", "string", 1, _selector),
    ),
    "namespaces.": (_NAME, ("Status", "string", 0, _at("status", "phase")), _AGE),
    "events.": (
        ("Last Seen", "string", 0, _event_seen),
        ("Type", "string", 0, _at("type")),
        ("Reason", "string", 0, _at("reason")),
        ("Object", "string", 0, _event_object),
        ("Subobject", "string", 1, _at("involvedObject", "fieldPath")),
        ("Source", "string", 1, _at("source", "component")),
        ("Message", "string", 0, _at("message")),
        ("First Seen", "string", 1, _event_first),
        ("Count", "integer", 1, _at("count", default=1)),
        ("Name", "string", 1, _at("metadata", "name")),
    ),
    "leases.coordination.k8s.io": (_NAME, ("Holder", "string", 0, _at("spec", "holderIdentity")), _AGE),
    "configmaps.": (
        _NAME,
        ("Data", "string", 0, lambda o: len(o.get("data") or {}) + len(o.get("binaryData") or {})),
        _AGE,
    ),
    "secrets.": (
        _NAME,
        ("Type", "string", 0, _at("type")),
        ("Data", "string", 0, lambda obj: len(obj.get("data") or {})),
        _AGE,
    ),
    "serviceaccounts.": (_NAME, ("Secrets", "string", 0, lambda obj: len(obj.get("secrets") or ())), _AGE),
    "resourceclaims.resource.k8s.io": (_NAME, ("State", "string", 0, _claim_state), _AGE),
    "resourceslices.resource.k8s.io": (
        _NAME,
        ("Node", "string", 0, _at("spec", "nodeName", default="<unset>")),
        ("Driver", "string", 0, _at("spec", "driver")),
        ("Pool", "string", 0, _at("spec", "pool", "name")),
        _AGE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (
        _NAME,
        ("Created At", "date", 0, _at("metadata", "creationTimestamp")),
    ),
    "clusterroles.rbac.authorization.k8s.io": (
        _NAME,
        ("Created At", "date", 0, _at("metadata", "creationTimestamp")),
    ),
    "roles.rbac.authorization.k8s.io": (_NAME, ("Created At", "date", 0, _at("metadata", "creationTimestamp"))),
    "priorityclasses.scheduling.k8s.io": (
        _NAME,
        ("Value", "integer", 0, _at("value", default=0)),
        ("Global-Default", "boolean", 0, _at("globalDefault", default=False)),
        _AGE,
        ("PreemptionPolicy", "string", 0, _at("preemptionPolicy")),
    ),
    "poddisruptionbudgets.policy": (
        _NAME,
        ("Min Available", "string", 0, lambda obj: str(get(obj, "spec", "minAvailable") or "N/A")),
        ("Max Unavailable", "string", 0, lambda obj: str(get(obj, "spec", "maxUnavailable") or "N/A")),
        ("Allowed Disruptions", "integer", 0, _at("status", "disruptionsAllowed", default=0)),
        _AGE,
    ),
}


def table(items: list[Json], kind: Kind) -> Json:
    """Column definitions and rows, without the objects of the rows."""
    if kind.custom:
        definitions = [_definition("Name", "string", 0)]
        definitions += [
            _definition(
                c["name"],
                c["type"],
                c.get("priority", 0),
                c.get("description") or f"Custom resource definition column (in JSONPath format): {c['jsonPath']}",
                c.get("format", ""),
            )
            for c in kind.columns
        ]
        rows = [[obj["metadata"]["name"], *(_custom_cell(obj, c) for c in kind.columns)] for obj in items]
    else:
        columns = _COLUMNS.get(kind.storage, (_NAME, _AGE))
        definitions = [_definition(name, form, priority) for name, form, priority, _ in columns]
        rows = [[cell(obj) for _, _, _, cell in columns] for obj in items]
    return {"columnDefinitions": definitions, "rows": [{"cells": cells} for cells in rows]}


def _definition(name: str, form: str, priority: int, description: str = "", form_format: str = "") -> Json:
    return {
        "name": name,
        "type": form,
        "format": form_format or ("name" if name == "Name" and priority == 0 else ""),
        "description": description or f"{name} of the object.",
        "priority": priority,
    }

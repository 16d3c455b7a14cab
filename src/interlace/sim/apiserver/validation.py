"""What the server refuses of built-in objects, apart from devices and custom resources.

A subset: required fields, names, immutable fields and the Pod fields that an update may touch.

Invariant: a cause here is one that the real server has too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from interlace.sim.apiserver import cause
from interlace.sim.apiserver.cause import Cause
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, get
from interlace.sim.apiserver.selectors import by_label_selector
from interlace.sim.apiserver.shapes import LEAVES, Shape

_WORKLOADS = ("daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps")
# Names without a domain that the real server knows; the last one stands on each CRD.
_PLAIN_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes", "customresourcecleanup.apiextensions.k8s.io")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_POD_MUTABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def missing(obj: Any, shape: Shape, path: str = "") -> Iterator[Cause]:
    """A cause for each required field that a typed object lacks."""
    if isinstance(obj, dict) and shape.form == "struct":
        for name in shape.required:
            if obj.get(name) in (None, ""):
                yield cause.required(f"{path}.{name}".lstrip("."))
        for name, value in obj.items():
            child = shape.fields.get(name)
            if child is not None and child.form not in LEAVES:
                yield from missing(value, child, f"{path}.{name}")
    elif isinstance(obj, list) and shape.of is not None and shape.of.form not in LEAVES:
        for index, value in enumerate(obj):
            yield from missing(value, shape.of, f"{path}[{index}]")
    elif isinstance(obj, dict) and shape.of is not None and shape.of.form not in LEAVES:
        for name, value in obj.items():
            yield from missing(value, shape.of, f"{path}[{name}]")


def create_causes(obj: Json, kind: Kind) -> list[Cause]:
    """Why a new object is refused."""
    spec = obj.get("spec") or {}
    found: list[Cause] = []
    match kind.storage:
        case "pods.":
            found += _pod(spec, "spec")
        case storage if storage in _WORKLOADS or storage == "jobs.batch":
            found += _workload(spec, kind)
        case "configmaps." | "secrets.":
            found += [
                cause.invalid(f"data[{key}]", key, _CONFIG_KEY_RULE)
                for key in obj.get("data") or {}
                if not _CONFIG_KEY.fullmatch(key)
            ]
        case "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io":
            if not get(obj, "roleRef", "name"):
                found.append(cause.required("roleRef.name"))
        case "events.":
            about = get(obj, "involvedObject", "namespace") or ""
            if about and about != obj["metadata"].get("namespace"):
                found.append(cause.invalid("involvedObject.namespace", about, "does not match event.namespace"))
        case "leases.coordination.k8s.io":
            seconds = spec.get("leaseDurationSeconds")
            if seconds is not None and seconds <= 0:
                found.append(cause.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        case _:
            pass
    return found


def _pod(spec: Json, path: str) -> Iterator[Cause]:
    yield from _pod_claims(spec, path)
    if not spec.get("containers"):
        yield cause.required(f"{path}.containers")
    claims = [item.get("name", "") for item in spec.get("resourceClaims") or ()]
    names: set[str] = set()
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            where = f"{path}.{group}[{index}]"
            name = container.get("name", "")
            if not name:
                yield cause.required(f"{where}.name")
            elif name in names:
                yield cause.duplicate(f"{where}.name", name)
            names.add(name)
            if not container.get("image"):
                yield cause.required(f"{where}.image")
            for at, used in enumerate(get(container, "resources", "claims") or ()):
                if used.get("name") not in claims:
                    text = f'Not found: "{used.get("name", "")}": must be one of the names in pod.spec.resourceClaims'
                    text += f": {', '.join(claims)}" if claims else " which is empty"
                    yield Cause(f"{where}.resources.claims[{at}]", text, "FieldValueNotFound")


def _pod_claims(spec: Json, path: str) -> Iterator[Cause]:
    for index, claim in enumerate(spec.get("resourceClaims") or ()):
        named, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": claim.get("name", ""), "ResourceClaimName": named, "ResourceClaimTemplateName": template}
        where = f"{path}.resourceClaims[{index}]"
        if named is None and template is None:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield cause.invalid(where, shown, text)
        elif named is not None and template is not None:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield cause.invalid(where, shown, text)


def _workload(spec: Json, kind: Kind) -> Iterator[Cause]:
    selector = spec.get("selector")
    labels = {"metadata": {"labels": get(spec, "template", "metadata", "labels") or {}}}
    if not selector:
        if selector is None:
            yield cause.required("spec.selector")
        else:
            yield cause.invalid("spec.selector", selector, f"empty selector is invalid for {kind.singular}")
        if selector is None and kind.storage != "jobs.batch":
            value = labels["metadata"]["labels"] or None
            where = "spec.template.metadata.labels"
            yield cause.invalid(where, value, "`selector` does not match template `labels`")
    elif not by_label_selector(selector)(labels):
        yield cause.invalid(
            "spec.template.metadata.labels", labels["metadata"]["labels"], "`selector` does not match template `labels`"
        )
    yield from _pod(get(spec, "template", "spec") or {}, "spec.template.spec")


def update_causes(new: Json, old: Json, kind: Kind) -> list[Cause]:
    """Why a change of an object is refused."""
    found: list[Cause] = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    match kind.storage:
        case "pods.":
            if _pod_fixed(spec) != _pod_fixed(before):
                found.append(cause.forbidden("spec", f"pod updates may not change fields other than {_POD_MUTABLE}"))
        case storage if storage in _WORKLOADS or storage == "jobs.batch":
            found += create_causes(new, kind)
            if spec.get("selector") != before.get("selector"):
                found.append(cause.invalid("spec.selector", spec.get("selector"), "field is immutable"))
            if storage == "jobs.batch" and spec.get("template") != before.get("template") and not before.get("suspend"):
                found.append(cause.invalid("spec.template", spec.get("template"), "field is immutable"))
        case "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io":
            if new.get("roleRef") != old.get("roleRef"):
                found.append(cause.invalid("roleRef", new.get("roleRef"), "cannot change roleRef"))
        case "priorityclasses.scheduling.k8s.io":
            if new.get("value") != old.get("value"):
                found.append(cause.forbidden("value", "may not be changed in an update."))
        case "configmaps." | "secrets.":
            found += create_causes(new, kind)
            if old.get("immutable") and any(new.get(key) != old.get(key) for key in ("data", "binaryData")):
                found.append(cause.forbidden("data", "field is immutable when `immutable` is set"))
        case _:
            found += create_causes(new, kind)
    return found


def _pod_fixed(spec: Json) -> Json:
    out = {
        key: value
        for key, value in spec.items()
        if key not in ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")
    }
    for group in ("containers", "initContainers"):
        if group in out:
            out[group] = [{k: v for k, v in item.items() if k != "image"} for item in out[group] or ()]
    return out


def metadata_causes(new: Json, old: Json | None) -> list[Cause]:
    """What is wrong with metadata of any kind."""
    meta = new.get("metadata") or {}
    found: list[Cause] = []
    controllers = [item for item in meta.get("ownerReferences") or () if item.get("controller")]
    for index, item in enumerate(meta.get("ownerReferences") or ()):
        found += [
            cause.invalid(f"metadata.ownerReferences[{index}].{key}", "", f"{key} must not be empty")
            for key in ("apiVersion", "kind", "name", "uid")
            if not item.get(key)
        ]
    if len(controllers) > 1:
        found.append(
            cause.invalid(
                "metadata.ownerReferences",
                meta["ownerReferences"],
                "Only one reference can have Controller set to true. Found "
                f'"true" in references for {controllers[0].get("kind")}/{controllers[0].get("name")} and '
                f"{controllers[1].get('kind')}/{controllers[1].get('name')}",
            )
        )
    for index, name in enumerate(meta.get("finalizers") or ()):
        if "/" not in name and name not in _PLAIN_FINALIZERS:
            found.append(
                cause.invalid(
                    f"metadata.finalizers[{index}]",
                    name,
                    "name is neither a standard finalizer name nor is it fully qualified",
                )
            )
    if old is not None and old["metadata"].get("deletionTimestamp"):
        added = [f for f in meta.get("finalizers") or () if f not in (old["metadata"].get("finalizers") or ())]
        if added:
            text = ", ".join(f'"{name}"' for name in added)
            found.append(
                Cause(
                    "metadata.finalizers",
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[]string{{{text}}}",
                    "FieldValueForbidden",
                )
            )
    return found

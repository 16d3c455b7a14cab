"""The life of an object: what the server fills in at birth, keeps at an update and does at a deletion.

Pure functions over objects; the caller stores what they return.

Invariant: uid, creationTimestamp and, once set, deletionTimestamp of an object never change.
"""

from __future__ import annotations

import re
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from interlace.sim.apiserver import cause, errors
from interlace.sim.apiserver.cause import Cause
from interlace.sim.apiserver.defaults import qos_class
from interlace.sim.apiserver.fieldsets import Tree
from interlace.sim.apiserver.kinds import Kind
from interlace.sim.apiserver.objects import Json, get

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_PATH_NAMED = ("rbac.authorization.k8s.io",)

Propagation = Literal["Orphan", "Background", "Foreground"]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""Keeps a deleted definition until its objects are gone."""


def now(offset: float = 0) -> str:
    """The time in whole seconds, as metadata has it."""
    return (datetime.now(UTC) + timedelta(seconds=offset)).strftime("%Y-%m-%dT%H:%M:%SZ")


def generate_name(prefix: str) -> str:
    """A name that starts with ``prefix`` and ends in five random characters."""
    return prefix[:58] + "".join(secrets.choice(_ALPHABET) for _ in range(5))


def name_causes(kind: Kind, name: str) -> list[Cause]:
    """Why ``name`` is no name of this kind."""
    if kind.group in _PATH_NAMED:
        bad = name in (".", "..") or "/" in name or "%" in name
        return [cause.invalid("metadata.name", name, "may not contain '/'")] if bad else []
    label = kind.storage in ("namespaces.", "services.")
    limit, pattern, rule = (63, _LABEL, _LABEL_RULE) if label else (253, _SUBDOMAIN, _SUBDOMAIN_RULE)
    if len(name) > limit:
        why = f"must be no more than {limit} characters"
    elif not pattern.fullmatch(name):
        why = rule
    else:
        return []
    return [cause.invalid("metadata.name", name, why)]


def be_born(obj: Json, kind: Kind) -> Json:
    """A new object with the system's metadata and the status that its kind starts with."""
    meta = {
        **{key: value for key, value in obj.get("metadata", {}).items() if key not in ("deletionTimestamp",
           "deletionGracePeriodSeconds", "resourceVersion", "selfLink", "generation")},
        "uid": str(uuid.uuid4()),
        "creationTimestamp": now(),
    }  # fmt: skip
    if kind.generation:
        meta["generation"] = 1
    out = {**obj, "metadata": meta}
    if kind.resets_status and kind.storage != "nodes.":  # a kubelet registers its node together with its status
        out.pop("status", None)
    match kind.storage:
        case "pods.":
            out["status"] = {"phase": "Pending", "qosClass": qos_class(out.get("spec") or {})}
        case "namespaces.":
            out["status"] = {"phase": "Active"}
            spec = out.get("spec") or {}
            if "kubernetes" not in (spec.get("finalizers") or ()):
                out["spec"] = {**spec, "finalizers": [*(spec.get("finalizers") or ()), "kubernetes"]}
        case "jobs.batch":
            out = _job_selector(out)
            out["status"] = {}
        case "services.":
            out["status"] = {"loadBalancer": {}}
            out["spec"] = _addressed(out["spec"])
        case storage if storage in _EMPTY_STATUS:
            out["status"] = _EMPTY_STATUS[storage]
        case _:
            pass
    return out


_EMPTY_STATUS: dict[str, Json] = {
    "daemonsets.apps": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "replicasets.apps": {"replicas": 0},
    "statefulsets.apps": {"replicas": 0, "availableReplicas": 0},
    "deployments.apps": {},
    "resourceclaims.resource.k8s.io": {},
    "poddisruptionbudgets.policy": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
}


def _addressed(spec: Json) -> Json:
    """A service's spec with a cluster address."""
    if spec.get("type") == "ExternalName":
        return spec
    address = spec.get("clusterIP") or f"10.96.{secrets.randbelow(254) + 1}.{secrets.randbelow(254) + 1}"
    return {**spec, "clusterIP": address, "clusterIPs": [address]}


def _job_selector(job: Json) -> Json:
    spec = job.get("spec") or {}
    if spec.get("manualSelector") or spec.get("selector"):
        return job
    uid = job["metadata"]["uid"]
    template = spec.get("template") or {}
    meta = template.get("metadata") or {}
    labels = {
        **(meta.get("labels") or {}),
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": job["metadata"].get("name", ""),
        "controller-uid": uid,
        "job-name": job["metadata"].get("name", ""),
    }
    return {
        **job,
        "spec": {
            **spec,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
            "template": {**template, "metadata": {**meta, "labels": labels}},
        },
    }


def reset_fields(kind: Kind, subresource: str) -> Tree:
    """The fields that an endpoint cannot change, and so nobody owns through it."""
    member: Tree = {".": True}
    if subresource == "status":
        out: Tree = {f"f:{name}": member for name in kind.shape.fields if name not in _STATUS_WRITABLE}
        if kind.custom:
            out["f:metadata"] = member
        return out
    return {"f:status": member} if kind.resets_status else {}


_STATUS_WRITABLE = frozenset({"apiVersion", "kind", "metadata", "status"})


def keep_rest(new: Json, old: Json, kind: Kind, subresource: str) -> Json:
    """``new`` with everything that this endpoint may not change taken from ``old``."""
    if subresource == "status":
        out = {**old, "status": new["status"]} if "status" in new else {k: v for k, v in old.items() if k != "status"}
        if kind.custom or kind.storage in _STATUS_KEEPS_META:
            kept = {**old["metadata"]}
            if "managedFields" in new["metadata"]:
                kept["managedFields"] = new["metadata"]["managedFields"]
            kept["resourceVersion"] = new["metadata"].get("resourceVersion", "")
            out["metadata"] = kept
        else:
            out["metadata"] = new["metadata"]
        return out
    if subresource == "finalize":
        return {**old, "spec": new.get("spec", {}), "metadata": new["metadata"]}
    if kind.resets_status:
        out = {key: value for key, value in new.items() if key != "status"}
        if "status" in old:
            out["status"] = old["status"]
        return out
    return new


_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_STATUS_KEEPS_META = frozenset({_DEFINITIONS, "deployments.apps", "resourceclaims.resource.k8s.io"})


def be_updated(new: Json, old: Json, kind: Kind) -> Json:
    """``new`` with the metadata that no client may change, and a raised generation if the wish changed."""
    old_meta = old["metadata"]
    meta = {**new["metadata"]}
    for key in ("uid", "creationTimestamp"):
        if key in old_meta:
            meta[key] = old_meta[key]
    for key in ("generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
        meta.pop(key, None)
        if key in old_meta:
            meta[key] = old_meta[key]
    out = {**new, "metadata": meta}
    if kind.generation and _wish(out, kind) != _wish(old, kind):
        meta["generation"] = old_meta.get("generation", 0) + 1
    return out


def _wish(obj: Json, kind: Kind) -> object:
    if kind.generation == "spec":
        return obj.get("spec")
    skipped = {"metadata", "apiVersion", "kind"} | ({"status"} if kind.resets_status else set())
    return {key: value for key, value in obj.items() if key not in skipped}


def is_finished(new: Json, old: Json, kind: Kind) -> bool:
    """Whether an update removed the last thing that a deletion waited for."""
    if new["metadata"].get("finalizers") or not old["metadata"].get("deletionTimestamp"):
        return False
    if kind.storage == "namespaces." and get(new, "spec", "finalizers"):
        return False
    return not old["metadata"].get("deletionGracePeriodSeconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What a DELETE asks for."""

    grace: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: Propagation | None = None
    dry_run: bool = False


def check_preconditions(obj: Json, kind: Kind, options: DeleteOptions) -> None:
    """Raises ApiFault 409 if uid or resourceVersion differ."""
    meta = obj["metadata"]
    for label, wanted, found, why in (
        ("UID", options.uid, meta.get("uid"), "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, meta.get("resourceVersion"), "modified"),
    ):
        if wanted and wanted != found:
            raise errors.conflict(
                kind.group,
                kind.kind,
                meta["name"],
                f"the {label} in the precondition ({wanted}) does not match the {label} in record ({found}). "
                f"The object might have been {why}",
            )


def storage_conflict(obj: Json, kind: Kind, wanted_uid: str) -> errors.ApiFault:
    """409 for an update that names another uid."""
    meta = obj["metadata"]
    folder = f"{kind.group}/{kind.plural}" if kind.custom else {"nodes": "minions"}.get(kind.plural, kind.plural)
    path = "/".join(part for part in ("/registry", folder, meta.get("namespace", ""), meta["name"]) if part)
    return errors.conflict(
        kind.group,
        kind.plural,
        meta["name"],
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        f"failed: UID in precondition: {wanted_uid}, UID in object meta: {meta['uid']}",
    )


def be_deleted(obj: Json, kind: Kind, options: DeleteOptions) -> Json | None:
    """The object on its way out, or None if it goes at once."""
    meta = dict(obj["metadata"])
    finalizers = [f for f in meta.get("finalizers") or [] if f not in (ORPHAN, FOREGROUND)]
    if options.propagation == "Orphan":
        finalizers.append(ORPHAN)
    elif options.propagation == "Foreground":
        finalizers.append(FOREGROUND)
    elif options.propagation is None:
        finalizers = list(meta.get("finalizers") or [])
    grace = _grace(obj, kind, options)
    if kind.storage == "namespaces." and get(obj, "spec", "finalizers"):
        return _marked(obj, meta, finalizers, grace=None, status={**(obj.get("status") or {}), "phase": "Terminating"})
    if kind.storage == _DEFINITIONS and not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = now()
        return _with(obj, meta, [*finalizers, CRD_FINALIZER])
    if meta.get("deletionTimestamp"):
        left = meta.get("deletionGracePeriodSeconds")
        if left and grace < left:
            if grace == 0 and not finalizers:
                return None
            meta["deletionTimestamp"] = now(grace)
            meta["deletionGracePeriodSeconds"] = grace
            return _with(obj, meta, finalizers)
        if left or finalizers:
            return _with(obj, meta, finalizers)
        return None
    if grace > 0:
        return _marked(obj, meta, finalizers, grace=grace)
    if finalizers:
        return _marked(obj, meta, finalizers, grace=0)
    return None


def _grace(obj: Json, kind: Kind, options: DeleteOptions) -> int:
    if kind.storage != "pods.":
        return 0
    grace = options.grace
    if grace is None:
        grace = get(obj, "spec", "terminationGracePeriodSeconds")
    if not get(obj, "spec", "nodeName") or get(obj, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    if grace is None:
        return 30
    return 1 if grace < 0 else int(grace)


def _marked(obj: Json, meta: Json, finalizers: list[str], *, grace: int | None, status: Json | None = None) -> Json:
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = now(grace or 0)
        if grace is not None:
            meta["deletionGracePeriodSeconds"] = grace
        if meta.get("generation"):
            meta["generation"] += 1
    out = _with(obj, meta, finalizers)
    return {**out, "status": status} if status is not None else out


def _with(obj: Json, meta: Json, finalizers: list[str]) -> Json:
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    return {**obj, "metadata": meta}

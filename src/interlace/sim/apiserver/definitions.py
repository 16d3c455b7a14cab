"""CustomResourceDefinitions at work: a stored definition is served at once, a deleted one takes its objects along.

Invariant: a definition that is gone from the store has no objects left in the store.
"""

from __future__ import annotations

from typing import Any

from interlace.sim.apiserver import cause, errors
from interlace.sim.apiserver.kinds import Kinds, custom_kinds
from interlace.sim.apiserver.lifecycle import CRD_FINALIZER, DeleteOptions, be_deleted, now
from interlace.sim.apiserver.objects import Json
from interlace.sim.apiserver.store import Change, Store

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


def check(definition: Json) -> None:
    """Raises ApiFault 422 for a definition that cannot be served."""
    name = definition["metadata"].get("name", "")
    found: list[cause.Cause] = []
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    for path, value in (
        ("spec.group", spec.get("group")),
        ("spec.names.plural", names.get("plural")),
        ("spec.names.kind", names.get("kind")),
        ("spec.versions", spec.get("versions")),
    ):
        if not value:
            found.append(cause.required(path))
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        found.append(cause.not_supported("spec.scope", spec.get("scope") or "", ["Cluster", "Namespaced"]))
    if not found and name != f"{names['plural']}.{spec['group']}":
        found.append(cause.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    for index, version in enumerate(spec.get("versions") or ()):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            found.append(cause.required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required"))
    if sum(bool(version.get("storage")) for version in spec.get("versions") or ()) != 1 and spec.get("versions"):
        found.append(cause.invalid("spec.versions", "", "must have exactly one version marked as storage version"))
    if not found:
        try:
            list(custom_kinds(definition))
        except (ValueError, KeyError, TypeError) as error:
            found.append(cause.invalid("spec.versions[0].schema.openAPIV3Schema", "", str(error)))
    if found:
        raise errors.invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, found)


class Definitions:
    """Follows the store and keeps the served kinds in step with the definitions in it."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._kinds = kinds
        self._terminating: set[str] = set()

    def follow(self, storage: str, change: Change) -> None:
        """To be called after each change of the store."""
        if storage == STORAGE:
            if change.new is None:
                self._kinds.withdraw(change.key[1])
                self._terminating.discard(change.key[1])
            elif change.new["metadata"].get("deletionTimestamp"):
                self._clear(change.new)
            else:
                self._serve(change.new, change.old)
        elif storage in self._terminating and change.new is None:
            definition = self._store.get(STORAGE, ("", storage))
            if definition is not None:
                self._finish(definition)

    def _serve(self, definition: Json, old: Json | None) -> None:
        if old is None or old["spec"] != definition["spec"]:
            self._kinds.define(definition)
        status = _status(definition)
        if definition.get("status") != status:
            self._store.put(STORAGE, ("", definition["metadata"]["name"]), {**definition, "status": status})

    def _clear(self, definition: Json) -> None:
        name = definition["metadata"]["name"]
        if name in self._terminating:
            return
        self._terminating.add(name)
        kind = next((k for k in self._kinds if k.storage == name), None)
        if kind is not None:
            for key, obj in list(self._store.collection(name).objects.items()):
                left = be_deleted(obj, kind, DeleteOptions(propagation="Background"))
                if left is None:
                    self._store.delete(name, key)
                elif left != obj:
                    self._store.put(name, key, left)
        stored = self._store.get(STORAGE, ("", name))
        if stored is not None:
            self._finish(stored)

    def _finish(self, definition: Json) -> None:
        name = definition["metadata"]["name"]
        if self._store.collection(name).objects:
            return
        finalizers = [f for f in definition["metadata"].get("finalizers") or [] if f != CRD_FINALIZER]
        if finalizers:
            if CRD_FINALIZER in (definition["metadata"].get("finalizers") or []):
                meta = {**definition["metadata"], "finalizers": finalizers}
                self._store.put(STORAGE, ("", name), {**definition, "metadata": meta})
        else:
            self._store.delete(STORAGE, ("", name))


def _status(definition: Json) -> Json:
    spec = definition["spec"]
    old: dict[str, Any] = {c["type"]: c for c in (definition.get("status") or {}).get("conditions") or ()}

    def condition(kind: str, reason: str, message: str) -> Json:
        found = old.get(kind)
        if found is not None and found.get("status") == "True":
            return dict(found)
        return {
            "type": kind,
            "status": "True",
            "lastTransitionTime": now(),
            "reason": reason,
            "message": message,
        }

    names = {key: value for key, value in spec["names"].items() if value}
    storage = [version["name"] for version in spec["versions"] if version.get("storage")]
    kept = [v for v in (definition.get("status") or {}).get("storedVersions") or [] if v not in storage]
    return {
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": names,
        "storedVersions": [*kept, *storage],
    }

"""Who owns which field: ``metadata.managedFields`` on every write, and server-side apply.

A manager is (name, operation, apiVersion, subresource). A write takes the fields that it changed away from all
others; an apply states the fields it wants, fails with 409 where another manager owns one with another value, and
removes what it no longer states and nobody else owns.

Invariant: functions return new objects; ``live`` and ``config`` are never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interlace.sim.apiserver import errors, fieldsets
from interlace.sim.apiserver.cause import Cause
from interlace.sim.apiserver.fieldsets import Tree
from interlace.sim.apiserver.objects import Json, get, restyle
from interlace.sim.apiserver.shapes import Shape

_UPDATERS_MAX = 10
_META_STRIPPED = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_STRIPPED: Tree = {
    "f:apiVersion": {".": True},
    "f:kind": {".": True},
    "f:metadata": {".": True, **{f"f:{name}": {".": True} for name in _META_STRIPPED}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manager:
    """Identity of a writer."""

    name: str
    apply: bool
    api_version: str
    subresource: str = ""

    @property
    def key(self) -> tuple[str, bool, str, str]:
        """What makes two entries the same manager."""
        return (self.name, self.apply, self.api_version if not self.apply else "", self.subresource)

    def shown(self) -> str:
        """As conflict messages print it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        if not self.apply:
            text += f" using {self.api_version}"
        return text


@dataclass(slots=True, kw_only=True)
class _Entry:
    manager: Manager
    tree: Tree
    time: str


_Entries = dict[tuple[str, bool, str, str], _Entry]


def _entries(obj: Json | None) -> _Entries:
    out: _Entries = {}
    for item in get(obj, "metadata", "managedFields") or ():
        if not item.get("manager") and not item.get("fieldsV1"):
            continue
        applied = item.get("operation") == "Apply"
        time = item.get("time", "")
        manager = Manager(
            name=item.get("manager", ""),
            apply=applied,
            api_version=item.get("apiVersion", ""),
            subresource=item.get("subresource", ""),
        )
        out[manager.key] = _Entry(manager=manager, tree=fieldsets.parse(item.get("fieldsV1") or {}), time=time)
    return out


def _listed(entries: _Entries) -> list[Json]:
    out: list[Json] = []
    order = sorted(
        entries.values(),
        key=lambda e: (not e.manager.apply, e.time, e.manager.name, e.manager.api_version, e.manager.subresource),
    )
    for entry in order:
        item: Json = {
            "manager": entry.manager.name,
            "operation": "Apply" if entry.manager.apply else "Update",
            "apiVersion": entry.manager.api_version,
            "time": entry.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fieldsets.render(entry.tree),
        }
        if entry.manager.subresource:
            item["subresource"] = entry.manager.subresource
        out.append(item)
    return out


def _bare(obj: Json) -> Json:
    meta = obj.get("metadata", {})
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}


def with_managers(obj: Json, entries: list[Json]) -> Json:
    """``obj`` with this list, or without one if it is empty."""
    out = _bare(obj)
    return {**out, "metadata": {**out.get("metadata", {}), "managedFields": entries}} if entries else out


def _conflict(conflicts: list[tuple[Manager, Tree]]) -> errors.ApiFault:
    flat = [(manager, path) for manager, tree in conflicts for path in fieldsets.paths(tree)]
    flat.sort(key=lambda item: (item[0].shown(), item[1]))
    causes = [Cause(path, f"conflict with {manager.shown()}", "FieldManagerConflict") for manager, path in flat]
    if len(flat) == 1:
        return errors.apply_conflict(
            f"Apply failed with 1 conflict: conflict with {flat[0][0].shown()}: {flat[0][1]}", causes
        )
    lines: list[str] = []
    last = ""
    for manager, path in flat:
        if manager.shown() != last:
            last = manager.shown()
            lines.append(f"conflicts with {last}:")
        lines.append(f"- {path}")
    return errors.apply_conflict(f"Apply failed with {len(flat)} conflicts: " + "\n".join(lines), causes)


def _take(entries: _Entries, own: Manager, changes: tuple[Tree, Tree, Tree], *, force: bool) -> None:
    """Take the changed fields from all other managers, or raise the conflict."""
    removed, modified, added = changes
    touched = fieldsets.union(modified, added)
    conflicts = [
        (entry.manager, common)
        for key, entry in entries.items()
        if key != own.key and (common := fieldsets.intersection(entry.tree, touched))
    ]
    if conflicts and not force:
        raise _conflict(conflicts)
    for key, entry in list(entries.items()):
        if key == own.key:
            continue
        entry.tree = fieldsets.difference(fieldsets.difference(entry.tree, touched), removed)
        if not entry.tree:
            del entries[key]


def _filtered(changes: tuple[Tree, Tree, Tree], reset: Tree) -> tuple[Tree, Tree, Tree]:
    removed, modified, added = changes
    return fieldsets.without(removed, reset), fieldsets.without(modified, reset), fieldsets.without(added, reset)


def _cap(entries: _Entries) -> None:
    """Keep the list of updaters bounded: the oldest are put together."""
    updaters = sorted((e for e in entries.values() if not e.manager.apply), key=lambda e: (e.time, e.manager.name))
    bucket: _Entry | None = None
    excess = len(updaters) - _UPDATERS_MAX
    for entry in updaters:
        if excess <= 0:
            return
        del entries[entry.manager.key]
        if bucket is None:
            manager = Manager(name="ancient-changes", apply=False, api_version=entry.manager.api_version)
            bucket = _Entry(manager=manager, tree=entry.tree, time=entry.time)
        else:
            bucket.tree = fieldsets.union(bucket.tree, entry.tree)
            bucket.time = entry.time
            excess -= 1
        entries[bucket.manager.key] = bucket


def record_update(live: Json | None, new: Json, manager: Manager, *, shape: Shape, reset: Tree, now: str) -> Json:
    """``new`` with managed fields after a create, update or patch by ``manager``.

    ``reset`` holds the fields that this endpoint cannot change. The list that the client sent in ``new`` replaces
    the stored one, an emptied list starts again.
    """
    sent = get(new, "metadata", "managedFields")
    if sent is None or live is None:
        entries = _entries(live)
    elif sent in ([], [{}]):
        return with_managers(new, [])
    else:
        entries = _entries(new)
    before = entries[manager.key].tree if manager.key in entries else {}
    old_bare, new_bare = _bare(live or {}), _bare(new)
    changes = _filtered(fieldsets.compare(old_bare, new_bare, shape), reset)
    _take(entries, manager, changes, force=True)
    removed, modified, added = changes
    own = fieldsets.union(fieldsets.union(fieldsets.difference(before, removed), modified), added)
    own = fieldsets.difference(fieldsets.without(own, reset), _STRIPPED)
    if not own:
        entries.pop(manager.key, None)
    elif own != before or manager.key not in entries:
        entries[manager.key] = _Entry(manager=manager, tree=own, time=now)
    _cap(entries)
    return with_managers(new, _listed(entries))


def apply(
    live: Json | None, config: Json, manager: Manager, *, shape: Shape, reset: Tree, now: str, force: bool
) -> Json:
    """The object after ``manager`` applied ``config``; identical to ``live`` if nothing changed.

    Raises ApiFault 400 for a list item that has no key, 409 for conflicts without ``force``.
    """
    if get(config, "metadata", "managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    entries = _entries(live)
    base = restyle(_bare(live), "sorted") if live is not None else {}
    if live is not None and not entries:
        tree = fieldsets.difference(fieldsets.fields_of(base, shape), _STRIPPED)
        updater = Manager(name="before-first-apply", apply=False, api_version=manager.api_version)
        entries[updater.key] = _Entry(manager=updater, tree=tree, time=now)
    config = restyle(config, "sorted")
    try:
        wanted = fieldsets.without(fieldsets.fields_of(config, shape), reset)
        merged = fieldsets.merge(base, config, shape)
    except ValueError as error:
        raise errors.plain(f"failed to create typed patch object ({title(config)}): {error}") from error
    last = entries.pop(manager.key, None)
    others = _others(entries)
    entries[manager.key] = _Entry(manager=manager, tree=wanted, time=now)
    if last is not None and last.tree:
        merged = _prune(merged, last.tree, fieldsets.union(wanted, others), shape)
    changes = _filtered(fieldsets.compare(base, merged, shape), reset)
    _take(entries, manager, changes, force=force)
    own = fieldsets.difference(wanted, _STRIPPED)
    same_fields = last is not None and last.tree == own
    if not own:
        entries.pop(manager.key, None)
    else:
        entries[manager.key].tree = own
    if live is not None and merged == base and last is not None and same_fields:
        entries[manager.key] = last
    return with_managers(merged, _listed(entries))


def title(config: Json) -> str:
    """How errors name an apply configuration."""
    meta = config.get("metadata") or {}
    return f"{meta.get('namespace', '')}/{meta.get('name', '')}; {config.get('apiVersion')}, Kind={config.get('kind')}"


def _others(entries: _Entries) -> Tree:
    out: Tree = {}
    for entry in entries.values():
        out = fieldsets.union(out, entry.tree)
    return out


def _prune(merged: Any, last: Tree, managed: Tree, shape: Shape) -> Any:
    """Remove what was applied last time, is not applied now and is owned by nobody else."""
    named_last = fieldsets.name_fields(last, shape)
    pruned = fieldsets.remove(merged, named_last, shape) or {}
    everything = fieldsets.name_fields(fieldsets.fields_of(merged, shape), shape)
    left = fieldsets.name_fields(fieldsets.fields_of(pruned, shape), shape)
    keep = fieldsets.union(left, fieldsets.name_fields(managed, shape))
    pruned = fieldsets.remove(merged, fieldsets.difference(everything, keep), shape) or {}
    left = fieldsets.name_fields(fieldsets.fields_of(pruned, shape), shape)
    gone = fieldsets.intersection(fieldsets.difference(everything, left), named_last)
    return fieldsets.remove(merged, gone, shape) or {}

"""Who owns whom, over all kinds, and what follows from it for one object.

Invariant: an object is to be deleted only if every owner that it names is gone, or waits for it to go; an owner
that was never seen counts as gone only once somebody has looked.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from typing import Literal

from interlace.api.meta import ObjectMeta, OwnerReference, Resource

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_REMEMBERED = 10_000

Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One object."""

    resource: Resource
    metadata: ObjectMeta

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def dying(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def awaits_dependents(self) -> bool:
        """Deleted in the foreground."""
        return self.dying and FOREGROUND in self.metadata.finalizers


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do with an object; at most one field says something."""

    verify: tuple[OwnerReference, ...] = ()
    """Owners that were never seen: look whether they exist, then ask again."""
    delete: Propagation | None = None
    disown: frozenset[str] = frozenset()
    """uids of owners to take out of its references."""
    look_at: tuple[str, ...] = ()
    """uids of dependents that must go first."""
    orphan: tuple[str, ...] = ()
    """uids of dependents that lose their reference to it."""
    unblock: str = ""
    """A finalizer of the garbage collector that has done its work."""


class Graph:
    """Objects by uid, with the dependents of each."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: defaultdict[str, set[str]] = defaultdict(set)
        self._gone: OrderedDict[str, None] = OrderedDict()

    def put(self, item: Item) -> list[str]:
        """Add or replace; the uids that are to be looked at because of it."""
        before = self._items.get(item.uid)
        self._items[item.uid] = item
        self._gone.pop(item.uid, None)
        now = {reference.uid for reference in item.metadata.owner_references}
        then = {reference.uid for reference in before.metadata.owner_references} if before else set()
        for owner in then - now:
            self._unlink(owner, item.uid)
        for owner in now - then:
            self._dependents[owner].add(item.uid)
        changed = before is None or _links(before.metadata) != _links(item.metadata)
        affected = [item.uid] if changed and (now or item.dying) else []
        # An owner in foreground deletion waits for what its dependents do.
        affected += [owner for owner in now | then if (found := self._items.get(owner)) and found.awaits_dependents]
        return affected

    def drop(self, uid: str) -> list[str]:
        """Remove; the uids that are to be looked at because of it: its dependents, and owners that wait for it."""
        item = self._items.pop(uid, None)
        self.miss(uid)
        owners = [reference.uid for reference in item.metadata.owner_references] if item else []
        for owner in owners:
            self._unlink(owner, uid)
        waiting = [owner for owner in owners if (found := self._items.get(owner)) and found.awaits_dependents]
        return [*self._dependents.get(uid, ()), *waiting]

    def miss(self, uid: str) -> None:
        """Remember that no object has this uid (any more)."""
        self._gone[uid] = None
        self._gone.move_to_end(uid)
        while len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def dependents(self, uid: str) -> list[Item]:
        """Objects that name ``uid`` as an owner."""
        return [self._items[dependent] for dependent in self._dependents.get(uid, ())]

    def judge(self, uid: str) -> Verdict:
        """What is to be done with an object now."""
        item = self._items.get(uid)
        if item is None:
            return Verdict()
        if item.dying:
            return self._judge_dying(item)
        solid: list[str] = []
        gone: list[str] = []
        waiting: list[str] = []
        unknown: list[OwnerReference] = []
        for reference in item.metadata.owner_references:
            owner = self._items.get(reference.uid)
            if owner is None:
                if reference.uid in self._gone:
                    gone.append(reference.uid)
                else:
                    unknown.append(reference)
            elif owner.metadata.namespace not in {"", item.metadata.namespace}:
                gone.append(reference.uid)
            elif owner.awaits_dependents and reference.block_owner_deletion:
                waiting.append(reference.uid)
            else:
                solid.append(reference.uid)
        if unknown:
            return Verdict(verify=tuple(unknown))
        if solid:
            return Verdict(disown=frozenset(gone + waiting))
        if waiting and self._dependents.get(uid):
            return Verdict(delete="Foreground")
        return Verdict(delete=_policy(item)) if gone or waiting else Verdict()

    def _judge_dying(self, item: Item) -> Verdict:
        dependents = self.dependents(item.uid)
        if ORPHAN in item.metadata.finalizers:
            if dependents:
                return Verdict(orphan=tuple(dependent.uid for dependent in dependents))
            return Verdict(unblock=ORPHAN)
        if FOREGROUND in item.metadata.finalizers:
            blocking = [dependent.uid for dependent in dependents if _blocks(dependent, item.uid)]
            if blocking:
                return Verdict(look_at=tuple(dependent.uid for dependent in dependents))
            return Verdict(unblock=FOREGROUND)
        return Verdict()

    def _unlink(self, owner: str, dependent: str) -> None:
        left = self._dependents.get(owner)
        if left is not None:
            left.discard(dependent)
            if not left:
                del self._dependents[owner]


def _links(metadata: ObjectMeta) -> object:
    return (metadata.owner_references, metadata.finalizers, metadata.deletion_timestamp)


def _policy(item: Item) -> Propagation:
    if ORPHAN in item.metadata.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.metadata.finalizers else "Background"


def _blocks(dependent: Item, owner: str) -> bool:
    return any(
        reference.uid == owner and reference.block_owner_deletion for reference in dependent.metadata.owner_references
    )

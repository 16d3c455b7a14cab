"""Objects and their history: one sequence of versions, as etcd keeps it.

Every write of any object takes the next number; a collection remembers its latest changes so that watches can start
in the past and pages of a list agree with each other.

Invariants: a version is given out once; a stored object is never changed in place; what a collection answers for a
version is what it held when that version was the latest, or Expired.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import final

from interlace.sim.apiserver.objects import Json, encode

FIRST = 1
"""The version of an empty store; 0 stands for none."""
Key = tuple[str, str]
"""Namespace and name."""


@final
class Change:
    """One write. Encodings are cached here, so that many watchers cost one encoding."""

    __slots__ = ("cache", "key", "last", "new", "old", "version")

    def __init__(self, key: Key, old: Json | None, new: Json | None, version: int) -> None:
        self.key = key
        self.old = old
        self.new = new
        """None for a deletion."""
        self.version = version
        self.last: Json = new if new is not None else with_version(old or {}, version)
        """The object after the change; for a deletion its last state with the version of the deletion."""
        self.cache: dict[object, bytes] = {}


Listener = Callable[[Change], None]


class Expired(Exception):
    """The version lies before what is remembered. ``oldest`` is the first that is not."""

    def __init__(self, wanted: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {wanted} ({oldest})")
        self.wanted = wanted
        self.oldest = oldest


def with_version(obj: Json, version: int) -> Json:
    """``obj`` with this ``metadata.resourceVersion``; kind and apiVersion come first, as lists rely on."""
    head = {"kind": obj["kind"], "apiVersion": obj["apiVersion"]}
    return {**head, **obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}


class Collection:
    """The objects of one resource."""

    def __init__(self, *, history: int) -> None:
        self.objects: dict[Key, Json] = {}
        self.encoded: dict[Key, bytes] = {}
        self._history: deque[Change] = deque(maxlen=history)
        self._floor = FIRST
        """Everything after this version is remembered."""
        self.listeners: set[Listener] = set()

    def record(self, change: Change) -> None:
        """Take a change in and tell the watchers."""
        if change.new is None:
            self.objects.pop(change.key, None)
        else:
            self.objects[change.key] = change.new
        self.encoded.pop(change.key, None)
        if len(self._history) == self._history.maxlen:
            self._floor = self._history[0].version
        self._history.append(change)
        for listener in tuple(self.listeners):
            listener(change)

    def bytes_of(self, key: Key) -> bytes:
        """The JSON of a stored object."""
        found = self.encoded.get(key)
        if found is None:
            found = self.encoded[key] = encode(self.objects[key])
        return found

    def forget(self, version: int) -> None:
        """Compact: versions up to this one expire."""
        self._floor = max(self._floor, version)
        while self._history and self._history[0].version <= self._floor:
            self._history.popleft()

    def since(self, version: int) -> list[Change]:
        """The changes after ``version``. Raises Expired."""
        if version < self._floor:
            raise Expired(version, self._floor)
        out: list[Change] = []
        for change in reversed(self._history):
            if change.version <= version:
                break
            out.append(change)
        out.reverse()
        return out

    def at(self, version: int) -> dict[Key, Json]:
        """The objects as they were at ``version``. Raises Expired."""
        later = self.since(version)
        if not later:
            return self.objects
        objects = dict(self.objects)
        for change in reversed(later):
            if change.old is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.old
        return objects


class Store:
    """All collections and the version counter."""

    def __init__(self, *, history: int) -> None:
        self._history = history
        self._collections: dict[str, Collection] = {}
        self.version = FIRST
        self.after: Callable[[str, Change], None] | None = None
        """Called with the collection's name once a change is stored and all watchers know it; may write."""

    def collection(self, storage: str) -> Collection:
        """The collection of a resource, made when first asked for."""
        found = self._collections.get(storage)
        if found is None:
            found = self._collections[storage] = Collection(history=self._history)
        return found

    def __iter__(self) -> Iterator[tuple[str, Collection]]:
        return iter(list(self._collections.items()))

    def get(self, storage: str, key: Key) -> Json | None:
        """The stored object; not to be changed."""
        return self.collection(storage).objects.get(key)

    def put(self, storage: str, key: Key, obj: Json) -> Json:
        """Store a new state; returns it with its version."""
        collection = self.collection(storage)
        self.version += 1
        stored = with_version(obj, self.version)
        change = Change(key, collection.objects.get(key), stored, self.version)
        collection.record(change)
        if self.after is not None:
            self.after(storage, change)
        return stored

    def delete(self, storage: str, key: Key) -> Json:
        """Remove an object; returns its last state with the version of the deletion."""
        collection = self.collection(storage)
        self.version += 1
        change = Change(key, collection.objects[key], None, self.version)
        collection.record(change)
        if self.after is not None:
            self.after(storage, change)
        return change.last

    def expire(self) -> None:
        """Forget all history: versions before the present expire."""
        for collection in self._collections.values():
            collection.forget(self.version)

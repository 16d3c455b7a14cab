"""The objects that an informer knows, with indexes: pure bookkeeping, no waiting.

Invariant: each index holds exactly what its function says of the stored objects, and the
changes that a call returns, replayed in order on a copy of the former content, give the present
content. Another object under an old name (a new uid) is a deletion followed by an addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from interlace.api.meta import Object
from interlace.kube.log import get_logger

T = TypeVar("T", bound=Object)
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""
Change = tuple[T | None, T | None]
"""(old, new): an addition has no old, a deletion no new."""
IndexFunction = Callable[[T], Iterable[str]]

log = get_logger(__name__)


def key_of(obj: Object) -> Key:
    """Namespace and name."""
    return obj.metadata.namespace, obj.metadata.name


class Store(Generic[T]):
    """Objects by key; ``indexes`` are pure functions from an object to the values it is found under.

    An index function that raises finds its object under no value; that is logged.
    """

    def __init__(self, indexes: Mapping[str, IndexFunction[T]]) -> None:
        self._functions = dict(indexes)
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, dict[str, dict[Key, T]]] = {name: {} for name in self._functions}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def items(self) -> list[T]:
        return list(self._objects.values())

    def by(self, index: str, value: str) -> list[T]:
        """Objects under ``value``; a ``KeyError`` for an index that was not declared."""
        return list(self._indexes[index].get(value, {}).values())

    def values(self, index: str) -> list[str]:
        """All values under which an index holds something."""
        return list(self._indexes[index])

    def put(self, obj: T) -> list[Change[T]]:
        """Add or update one object."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None:
            if _same(old, obj):
                return []
            self._unindex(key, old)
        self._objects[key] = obj
        self._index(key, obj)
        if old is not None and old.metadata.uid != obj.metadata.uid:
            return [(old, None), (None, obj)]
        return [(old, obj)]

    def remove(self, obj: T) -> list[Change[T]]:
        """Remove the object of this name and uid, if it is here."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is None or (obj.metadata.uid and old.metadata.uid != obj.metadata.uid):
            return []
        del self._objects[key]
        self._unindex(key, old)
        return [(old, None)]

    def replace(self, items: Iterable[T]) -> list[Change[T]]:
        """Make ``items`` the whole content; what is missing in it was deleted. Deletions come first."""
        wanted = {key_of(obj): obj for obj in items}
        changes: list[Change[T]] = []
        for key in [key for key in self._objects if key not in wanted]:
            changes += self.remove(self._objects[key])
        for obj in wanted.values():
            changes += self.put(obj)
        return changes

    def _index(self, key: Key, obj: T) -> None:
        for name, function in self._functions.items():
            entries = self._indexes[name]
            for value in self._values(name, function, obj):
                entries.setdefault(value, {})[key] = obj

    def _unindex(self, key: Key, obj: T) -> None:
        for name, function in self._functions.items():
            entries = self._indexes[name]
            for value in self._values(name, function, obj):
                if (held := entries.get(value)) is not None:
                    held.pop(key, None)
                    if not held:
                        del entries[value]

    def _values(self, name: str, function: IndexFunction[T], obj: T) -> list[str]:
        try:
            return list(function(obj))
        except Exception:
            log.exception("an index function failed", index=name, object="/".join(key_of(obj)))
            return []


def _same(old: Object, new: Object) -> bool:
    return old.metadata.resource_version == new.metadata.resource_version and old.metadata.uid == new.metadata.uid

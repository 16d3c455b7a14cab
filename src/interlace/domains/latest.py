"""The newest known version of each object: an informer's cache with our own writes laid over it.

Reads after a write would otherwise see the past until the watch has caught up, and lead to the
same write again. Invariant: what ``get`` and ``by`` return is never older than our last write of
that object, and never an object that we have deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

from interlace.api.meta import Object
from interlace.kube.informer import Informer

T = TypeVar("T", bound=Object)

OUTDATED_AFTER = 60.0
"""Seconds after which a write that no watch has confirmed is forgotten: it was undone unseen."""


class _Own(msgspec.Struct, Generic[T], frozen=True):
    uid: str
    object: T | None
    """None after a deletion."""
    at: float


class Latest(Generic[T]):
    """Reads of one kind; tell it of each write with ``wrote`` and of each deletion with ``deleted``."""

    def __init__(
        self,
        informer: Informer[T],
        *,
        indexes: Mapping[str, Callable[[T], Iterable[str]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``indexes`` are those that the informer was made with."""
        self._informer = informer
        self._indexes = indexes
        self._clock = clock
        self._own: dict[tuple[str, str], _Own[T]] = {}
        informer.on_change(self._seen)

    def get(self, name: str, namespace: str = "") -> T | None:
        """One object."""
        own = self._mine((namespace, name))
        cached = self._informer.get(name, namespace)
        return self._newer(own, cached) if own else cached

    def by(self, index: str, value: str) -> list[T]:
        """The objects that have ``value`` in ``index``."""
        function = self._indexes[index]
        found = {_key(obj): obj for obj in self._informer.by(index, value)}
        for key in list(self._own):
            own = self._mine(key)
            if own is None:
                continue
            newest = self._newer(own, found.get(key))
            if newest is not None and value in function(newest):
                found[key] = newest
            else:
                found.pop(key, None)
        return list(found.values())

    def __iter__(self) -> Iterator[T]:
        """All objects of the informer; own writes that it has not seen yet are left out."""
        return iter(self._informer.items())

    def wrote(self, obj: T) -> None:
        """The server answered a write with ``obj``."""
        key = _key(obj)
        cached = self._informer.get(obj.metadata.name, obj.metadata.namespace)
        if cached is None or cached.metadata.uid != obj.metadata.uid or _version(cached) < _version(obj):
            self._own[key] = _Own(obj.metadata.uid, obj, self._clock())

    def deleted(self, obj: T) -> None:
        """The server confirmed the deletion of ``obj``, or that it is gone."""
        cached = self._informer.get(obj.metadata.name, obj.metadata.namespace)
        if cached is not None and cached.metadata.uid == obj.metadata.uid:
            self._own[_key(obj)] = _Own(obj.metadata.uid, None, self._clock())
        else:
            self._own.pop(_key(obj), None)

    def _mine(self, key: tuple[str, str]) -> _Own[T] | None:
        own = self._own.get(key)
        if own is not None and self._clock() - own.at > OUTDATED_AFTER:
            del self._own[key]
            return None
        return own

    @staticmethod
    def _newer(own: _Own[T], cached: T | None) -> T | None:
        if own.object is None:
            return cached if cached is not None and cached.metadata.uid != own.uid else None
        if cached is not None and _version(cached) >= _version(own.object):
            return cached
        return own.object

    def _seen(self, old: T | None, new: T | None) -> None:
        current = new if new is not None else old
        if current is None:
            return
        key = _key(current)
        own = self._own.get(key)
        if own is None:
            return
        if new is None:
            confirmed = own.uid == current.metadata.uid
        elif own.object is None:
            confirmed = own.uid != new.metadata.uid
        else:
            confirmed = _version(new) >= _version(own.object)
        if confirmed:
            del self._own[key]


def _key(obj: Object) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


def _version(obj: Object) -> int:
    """Versions of one kind are comparable numbers; anything else counts as older than all."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else -1

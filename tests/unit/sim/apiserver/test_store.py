"""The store against a model: every version that it remembers is the version that was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from interlace.sim.apiserver.store import Change, Expired, Key, Store

HISTORY = 6
NAMES = st.sampled_from(["a", "b", "c"])


def thing(name: str, value: int) -> dict[str, Any]:
    """An object."""
    return {"kind": "Thing", "apiVersion": "v1", "metadata": {"name": name}, "value": value}


class Remembering(RuleBasedStateMachine):
    """Random writes; a snapshot after each."""

    watched = Bundle("watched")

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(history=HISTORY)
        self.collection = self.store.collection("things.")
        self.snapshots: dict[int, dict[Key, Any]] = {self.store.version: {}}
        self.writes: list[int] = []
        self.floor = self.store.version

    def remember(self) -> None:
        self.snapshots[self.store.version] = dict(self.collection.objects)
        self.writes.append(self.store.version)
        if len(self.writes) > HISTORY:
            self.floor = max(self.floor, self.writes[-HISTORY - 1])

    @rule(name=NAMES, value=st.integers(0, 9))
    def put(self, name: str, value: int) -> None:
        stored = self.store.put("things.", ("", name), thing(name, value))
        assert stored["metadata"]["resourceVersion"] == str(self.store.version)
        self.remember()

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if self.store.get("things.", ("", name)) is not None:
            self.store.delete("things.", ("", name))
            self.remember()

    @rule()
    def write_elsewhere(self) -> None:
        self.store.put("others.", ("", "x"), thing("x", 0))
        self.snapshots[self.store.version] = dict(self.collection.objects)

    @rule()
    def expire(self) -> None:
        self.store.expire()
        self.floor = self.store.version
        self.writes.clear()

    @rule(target=watched)
    def watch(self) -> list[Change]:
        seen: list[Change] = []
        self.collection.listeners.add(seen.append)
        seen_from = len(seen)
        assert seen_from == 0
        return seen

    @rule(seen=consumes(watched))
    def unwatch(self, seen: list[Change]) -> None:
        versions = [change.version for change in seen]
        assert versions == sorted(set(versions))

    @invariant()
    def the_past_is_what_it_was(self) -> None:
        for version, snapshot in self.snapshots.items():
            if version < self.floor:
                with pytest.raises(Expired):
                    self.collection.at(version)
            else:
                assert self.collection.at(version) == snapshot

    @invariant()
    def encodings_are_those_of_the_objects(self) -> None:
        for key, obj in self.collection.objects.items():
            assert f'"value":{obj["value"]}'.encode() in self.collection.bytes_of(key)


TestRemembering = Remembering.TestCase


def test_a_deletion_is_told_with_the_last_state_and_a_new_version() -> None:
    store = Store(history=10)
    seen: list[Change] = []
    store.collection("things.").listeners.add(seen.append)
    store.put("things.", ("", "a"), thing("a", 7))
    gone = store.delete("things.", ("", "a"))
    assert gone["value"] == 7
    assert seen[-1].new is None
    assert seen[-1].last["metadata"]["resourceVersion"] == str(store.version)


def test_a_hook_may_write_once_all_watchers_know() -> None:
    store = Store(history=10)
    order: list[tuple[str, int]] = []
    store.collection("things.").listeners.add(lambda change: order.append((change.key[1], change.version)))

    def hook(_storage: str, change: Change) -> None:
        if change.key[1] == "a":
            store.put("things.", ("", "b"), thing("b", 0))

    store.after = hook
    store.put("things.", ("", "a"), thing("a", 0))
    assert [name for name, _ in order] == ["a", "b"]
    assert [version for _, version in order] == sorted(version for _, version in order)

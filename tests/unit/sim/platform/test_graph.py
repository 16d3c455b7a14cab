"""Garbage collection decides from owner references: who may go, who must wait, who loses a reference."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from interlace.api.meta import ObjectMeta, Resource
from interlace.sim.platform.garbage.graph import FOREGROUND, ORPHAN, Graph, Item, Verdict

THING = Resource("", "v1", "things", "Thing", True)


def item(uid: str, *owners: str, blocks: bool = True, **metadata: Any) -> Item:
    references = [
        {"apiVersion": "v1", "kind": "Thing", "name": owner, "uid": owner, "blockOwnerDeletion": blocks}
        for owner in owners
    ]
    if metadata.pop("dying", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    body = {"name": uid, "uid": uid, "namespace": "default", "ownerReferences": references, **metadata}
    return Item(resource=THING, metadata=msgspec.convert(body, ObjectMeta))


def graph(*items: Item) -> Graph:
    made = Graph()
    for entry in items:
        made.put(entry)
    return made


def test_what_nobody_owns_is_left_alone() -> None:
    assert graph(item("a")).judge("a") == Verdict()
    assert Graph().judge("unknown") == Verdict()


def test_an_object_with_a_living_owner_stays() -> None:
    assert graph(item("owner"), item("a", "owner")).judge("a") == Verdict()


def test_an_owner_that_was_never_seen_is_looked_for_before_anything_is_deleted() -> None:
    made = graph(item("a", "owner"))
    assert [reference.uid for reference in made.judge("a").verify] == ["owner"]
    made.miss("owner")
    assert made.judge("a") == Verdict(delete="Background")


def test_the_end_of_an_owner_wakes_its_dependents() -> None:
    made = graph(item("owner"), item("a", "owner"), item("b", "owner"))
    assert sorted(made.drop("owner")) == ["a", "b"]
    assert made.judge("a") == Verdict(delete="Background")


def test_with_one_owner_left_only_the_reference_to_the_other_goes() -> None:
    made = graph(item("one"), item("two"), item("a", "one", "two"))
    made.drop("one")
    assert made.judge("a") == Verdict(disown=frozenset({"one"}))


def test_an_owner_in_another_namespace_is_no_owner() -> None:
    stranger = Item(resource=THING, metadata=ObjectMeta(name="o", uid="o", namespace="other"))
    assert graph(stranger, item("a", "o")).judge("a") == Verdict(delete="Background")


def test_a_cluster_wide_owner_owns_in_every_namespace() -> None:
    everywhere = Item(resource=THING, metadata=ObjectMeta(name="o", uid="o"))
    assert graph(everywhere, item("a", "o")).judge("a") == Verdict()


def test_foreground_deletion_goes_down_first_and_then_up() -> None:
    dying = item("owner", dying=True, finalizers=[FOREGROUND])
    made = graph(dying, item("a", "owner"))
    assert made.judge("owner") == Verdict(look_at=("a",))
    assert made.judge("a") == Verdict(delete="Background")
    assert made.drop("a") == ["owner"]
    assert made.judge("owner") == Verdict(unblock=FOREGROUND)


def test_in_foreground_deletion_a_dependent_with_dependents_is_deleted_the_same_way() -> None:
    made = graph(item("owner", dying=True, finalizers=[FOREGROUND]), item("a", "owner"), item("b", "a"))
    assert made.judge("a") == Verdict(delete="Foreground")


def test_a_dependent_that_does_not_block_does_not_hold_up_its_owner() -> None:
    made = graph(item("owner", dying=True, finalizers=[FOREGROUND]), item("a", "owner", blocks=False))
    assert made.judge("owner") == Verdict(unblock=FOREGROUND)
    assert made.judge("a") == Verdict()


def test_orphans_lose_their_reference_before_the_owner_goes() -> None:
    made = graph(item("owner", dying=True, finalizers=[ORPHAN]), item("a", "owner"))
    assert made.judge("owner") == Verdict(orphan=("a",))
    assert made.put(item("a")) == []
    assert made.judge("owner") == Verdict(unblock=ORPHAN)


def test_an_object_that_is_being_deleted_is_not_deleted_again() -> None:
    made = graph(item("a", "owner", dying=True))
    made.miss("owner")
    assert made.judge("a") == Verdict()


def test_an_update_that_changes_no_link_wakes_nobody() -> None:
    made = graph(item("owner"), item("a", "owner"))
    assert made.put(item("a", "owner", resourceVersion="9")) == []
    found = made.get("a")
    assert found is not None
    assert found.metadata.resource_version == "9"


@given(st.lists(st.tuples(st.integers(0, 7), st.sets(st.integers(0, 7), max_size=2)), max_size=12), st.integers(0, 7))
def test_collecting_until_nothing_is_left_to_do_leaves_no_object_without_a_living_owner(
    links: list[tuple[int, set[int]]], root: int
) -> None:
    made = graph(*(item(str(uid), *(str(owner) for owner in owners if owner < uid)) for uid, owners in links))
    present = {str(uid) for uid, _ in links}
    owners_of = {uid: [r.uid for r in found.metadata.owner_references] for uid in present if (found := made.get(uid))}
    queue = [str(root), *present]
    made.drop(str(root))
    present.discard(str(root))
    while queue:
        uid = queue.pop()
        verdict = made.judge(uid)
        for reference in verdict.verify:
            made.miss(reference.uid)
            queue.append(uid)
        if verdict.delete:
            present.discard(uid)
            queue.extend(made.drop(uid))
    for uid in present:
        assert not owners_of[uid] or any(owner in present for owner in owners_of[uid])

"""The bookkeeping of an informer: content, indexes and the changes that lead to them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.api.core import Pod, PodSpec
from interlace.api.meta import ObjectMeta
from interlace.kube.store import Change, Key, Store, key_of


def pod(name: str, *, uid: str = "u", version: int = 1, node: str = "") -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="x", uid=uid, resource_version=str(version)),
        spec=PodSpec(node_name=node),
    )


def by_node(each: Pod) -> Iterable[str]:
    return [each.spec.node_name] if each.spec.node_name else []


def names(pods: Iterable[Pod]) -> list[str]:
    return sorted(each.metadata.name for each in pods)


def test_an_index_follows_its_objects() -> None:
    store = Store({"node": by_node})
    store.put(pod("a", node="n"))
    store.put(pod("b", node="n"))
    assert names(store.by("node", "n")) == ["a", "b"]
    store.put(pod("a", version=2, node="m"))
    assert names(store.by("node", "n")) == ["b"]
    store.remove(pod("b", version=3))
    assert store.values("node") == ["m"]


def test_an_index_that_was_not_declared_is_an_error() -> None:
    with pytest.raises(KeyError):
        Store[Pod]({}).by("node", "n")


def test_the_same_name_with_another_uid_is_a_deletion_and_an_addition() -> None:
    store = Store[Pod]({})
    old, new = pod("a", uid="1"), pod("a", uid="2", version=2)
    store.put(old)
    assert store.put(new) == [(old, None), (None, new)]
    assert store.remove(old) == [], "a late deletion of the former object leaves the new one"
    assert store.get(("x", "a")) == new


def test_the_same_version_is_no_change() -> None:
    store = Store[Pod]({})
    store.put(pod("a"))
    assert store.put(pod("a")) == []


def test_what_a_full_list_lacks_was_deleted() -> None:
    store = Store[Pod]({})
    a, b = pod("a"), pod("b")
    store.replace([a, b])
    c = pod("c", version=5)
    assert store.replace([b, c]) == [(a, None), (None, c)]


def test_an_index_function_that_raises_hides_its_object_from_that_index_alone() -> None:
    def picky(each: Pod) -> Iterable[str]:
        if each.metadata.name == "bad":
            raise ValueError("no")
        return ["all"]

    store = Store[Pod]({"picky": picky, "node": by_node})
    store.put(pod("bad", node="n"))
    store.put(pod("good", node="n"))
    assert names(store.by("picky", "all")) == ["good"]
    assert names(store.by("node", "n")) == ["bad", "good"]
    store.remove(pod("bad"))
    assert names(store.by("node", "n")) == ["good"]


PODS = st.builds(
    pod,
    st.sampled_from("abc"),
    uid=st.sampled_from("12"),
    version=st.integers(1, 9),
    node=st.sampled_from(["", "n", "m"]),
)
STEPS = st.one_of(
    st.tuples(st.just("put"), PODS.map(lambda each: [each])),
    st.tuples(st.just("remove"), PODS.map(lambda each: [each])),
    st.tuples(st.just("replace"), st.lists(PODS, max_size=4)),
)


@given(st.lists(STEPS, max_size=20))
def test_replaying_the_changes_gives_the_content_and_the_indexes_say_the_same(
    steps: list[tuple[str, list[Pod]]],
) -> None:
    store = Store({"node": by_node})
    copy: dict[Key, Pod] = {}
    for what, pods in steps:
        changes: list[Change[Pod]]
        if what == "replace":
            changes = store.replace(pods)
        else:
            changes = store.put(pods[0]) if what == "put" else store.remove(pods[0])
        for old, new in changes:
            if old is not None:
                assert copy.pop(key_of(old)) == old
            if new is not None:
                assert key_of(new) not in copy
                copy[key_of(new)] = new
        assert {key_of(each): each for each in store.items()} == copy
        for node in ("n", "m"):
            assert names(store.by("node", node)) == names(each for each in copy.values() if each.spec.node_name == node)
        assert set(store.values("node")) == {each.spec.node_name for each in copy.values() if each.spec.node_name}

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlace.api.core import ControllerRevision, Pod
from interlace.api.meta import ObjectMeta
from interlace.domains.hosts import REVISION_LABEL, is_outdated, newest_revision, places_left


def _revision(number: int, label: str) -> ControllerRevision:
    return ControllerRevision(metadata=ObjectMeta(labels={REVISION_LABEL: label}), revision=number)


def _host(label: str, *, deleted: str | None = None) -> Pod:
    return Pod(metadata=ObjectMeta(labels={REVISION_LABEL: label}, deletion_timestamp=deleted))


def test_the_revision_with_the_highest_number_is_wanted_as_after_a_rollback() -> None:
    assert newest_revision([_revision(3, "old"), _revision(4, "new"), _revision(2, "older")]) == "new"


def test_without_a_revision_no_host_is_outdated() -> None:
    assert newest_revision([]) == ""
    assert not is_outdated(_host("old"), wanted="")


def test_a_host_of_another_revision_is_outdated_until_it_is_deleted() -> None:
    assert is_outdated(_host("old"), wanted="new")
    assert not is_outdated(_host("new"), wanted="new")
    assert not is_outdated(_host("old", deleted="2026-01-01T00:00:00Z"), wanted="new")


@given(st.integers(1, 20_000), st.integers(0, 20_000))
def test_a_tenth_of_the_hosts_and_at_least_one_is_on_its_way_at_most(hosts: int, on_their_way: int) -> None:
    left = places_left(hosts=hosts, on_their_way=on_their_way)
    assert left >= 0
    assert on_their_way + left <= max(1, hosts // 10, on_their_way)
    assert (left > 0) == (on_their_way < max(1, hosts // 10))

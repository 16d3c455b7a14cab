"""The checker that watches a churn: it must see what must not be, or its silence is worth nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bench.scale.checker import CLAIMS, CLIQUES, DRIVER, LABEL, Checker, map_breaches, node_of
from interlace.kube.untyped import Untyped


def _claim(uid: str, *, domain: str, node: str = "", pod: str = "") -> Untyped:
    results = [{"driver": "other", "pool": "elsewhere"}, {"driver": DRIVER, "pool": node}]
    return CLAIMS(
        {
            "metadata": {
                "uid": uid,
                "labels": {LABEL: domain},
                "ownerReferences": [{"kind": "Pod", "uid": pod}] if pod else [],
            },
            "status": {"allocation": {"devices": {"results": results}}} if node else {},
        }
    )


def _worker(pod: str, *, node: str) -> Any:
    spec = SimpleNamespace(node_name=node, resource_claims=["channel"])
    return SimpleNamespace(pod=SimpleNamespace(metadata=SimpleNamespace(uid=pod), spec=spec))


@pytest.fixture
def checker() -> Checker:
    return Checker(SimpleNamespace())  # type: ignore[arg-type]  # only handlers are called


def test_claims_of_two_domains_on_one_node_are_a_breach(checker: Checker) -> None:
    checker._claim(None, _claim("c1", domain="a", node="n1"))
    checker._claim(None, _claim("c2", domain="a", node="n1"))
    assert checker.breaches == []
    checker._claim(None, _claim("c3", domain="b", node="n1"))
    assert checker.breaches == ["claims of domains a, b are allocated on n1 at one time"]
    assert checker.allocations == 3


def test_a_node_that_was_given_back_may_be_taken_by_another(checker: Checker) -> None:
    held = _claim("c1", domain="a", node="n1")
    checker._claim(None, held)
    checker._claim(held, _claim("c1", domain="a"))
    checker._claim(None, _claim("c2", domain="b", node="n1"))
    assert checker.breaches == []


def test_pods_of_two_domains_prepared_on_one_node_are_a_breach_whatever_the_api_says(checker: Checker) -> None:
    for claim in (_claim("c1", domain="a", pod="p1"), _claim("c2", domain="b", pod="p2")):
        checker._claim(None, claim)
    checker._pod(_worker("p1", node="n1"), "prepared")
    checker._claim(_claim("c1", domain="a", pod="p1"), None)  # forced deletion: the Pod is still there
    checker._pod(_worker("p2", node="n1"), "prepared")
    assert checker.breaches == ["Pods of domains a, b are prepared on n1 at one time"]
    checker._pod(_worker("p1", node="n1"), "gone")
    assert checker.domains_on("n1") == {"b"}


def test_a_pod_whose_claim_is_seen_late_counts_all_the_same(checker: Checker) -> None:
    checker._claim(None, _claim("c1", domain="a", pod="p1"))
    checker._pod(_worker("p1", node="n1"), "prepared")
    checker._pod(_worker("p2", node="n1"), "prepared")
    assert checker.breaches == []
    checker._claim(None, _claim("c2", domain="b", pod="p2"))
    assert len(checker.breaches) == 1


def test_rows_must_not_share_an_index_a_node_or_an_address() -> None:
    rows = [
        {"nodeName": "n1", "index": 0, "ipAddress": "1"},
        {"nodeName": "n2", "index": 0, "ipAddress": "1"},
        {"nodeName": "n2", "index": 1, "ipAddress": ""},
        {"nodeName": "n3", "index": 2, "ipAddress": ""},
    ]
    assert map_breaches(rows, before=()) == [
        "two rows have index 0",
        "two rows have node n2",
        "two rows have address 1",
    ]


def test_a_row_must_keep_its_index(checker: Checker) -> None:
    old, new = (
        CLIQUES({"metadata": {"name": "m"}, "daemons": [{"nodeName": "n1", "index": index}]}) for index in (0, 1)
    )
    checker._clique(None, old)
    checker._clique(old, new)
    assert checker.breaches == ["node map m: the row of n1 went from index 0 to 1"]
    assert checker.maps == 2


def test_an_unallocated_claim_has_no_node() -> None:
    assert node_of(None) == node_of(_claim("c", domain="a")) == ""

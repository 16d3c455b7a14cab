from __future__ import annotations

from interlace.domains.places import place
from tests.unit.domains.objects import RACK, host, node_slice


def test_the_slice_tells_the_clique_and_the_host_pod_the_address() -> None:
    found = place(slices=[node_slice("n1", clique_id=f"{RACK}.3")], hosts=[host("h", node="n1", address="10.0.0.1")])
    assert found.clique == f"{RACK}.3"
    assert found.address == "10.0.0.1"


def test_a_node_without_a_fabric_is_told_apart_from_one_that_said_nothing() -> None:
    assert place(slices=[node_slice("n1", clique_id="")], hosts=[]).clique == ""
    assert place(slices=[], hosts=[]).clique is None
    assert place(slices=[node_slice("n1", clique_id=None)], hosts=[]).clique is None


def test_the_newest_generation_of_the_pool_counts() -> None:
    old, new = node_slice("n1", clique_id="rack.0"), node_slice("n1", clique_id="rack.1", generation=2)
    assert place(slices=[old, new], hosts=[]).clique == "rack.1"
    assert place(slices=[new, old], hosts=[]).clique == "rack.1"


def test_a_host_pod_that_is_on_its_way_out_gives_no_address() -> None:
    hosts = [
        host("old", node="n1", address="10.0.0.1", deleting=True),
        host("failed", node="n1", address="10.0.0.2", phase="Failed"),
        host("starting", node="n1", address=""),
    ]
    assert place(slices=[], hosts=hosts).address == ""


def test_the_newest_of_two_host_pods_gives_the_address() -> None:
    older = host("z", node="n1", address="10.0.0.1", created="2026-01-01T00:00:00Z")
    newer = host("a", node="n1", address="10.0.0.2", created="2026-01-01T00:00:05Z")
    assert place(slices=[], hosts=[newer, older]).address == "10.0.0.2"

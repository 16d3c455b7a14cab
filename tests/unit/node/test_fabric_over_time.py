"""What a node's fabric means after what it was."""

from __future__ import annotations

from interlace.node.fabric import NO_FABRIC, Fabric, judge, succeed, unreadable
from tests.unit.node.parts import CLIQUE

MEMBER = Fabric(clique=CLIQUE)


def test_a_fabric_that_vanishes_is_a_fault_that_names_it() -> None:
    found = succeed(MEMBER, judge([]))
    assert (found.healthy, found.reason, found.clique) == (False, "FabricGone", CLIQUE)
    assert CLIQUE in found.message
    assert succeed(found, NO_FABRIC) == found


def test_a_node_that_never_had_a_fabric_has_none() -> None:
    assert succeed(unreadable("not read yet"), NO_FABRIC) == NO_FABRIC


def test_a_fabric_that_comes_back_or_changes_is_believed() -> None:
    gone = succeed(MEMBER, NO_FABRIC)
    assert succeed(gone, MEMBER) == MEMBER
    assert succeed(MEMBER, Fabric(clique="other.1")) == Fabric(clique="other.1")

from __future__ import annotations

import msgspec

from interlace.api.computedomain import DOMAIN_LABEL, SHARED
from interlace.api.resource import ResourceClaim
from interlace.domains.collisions import AGAIN, LONGEST, PATIENCE, Collision, Grace, crowded, losers
from tests.unit.domains.objects import UID, claim, ready_claim

GUEST = "0ddba11e-0000-4000-8000-00000000000b"


def _of(found: ResourceClaim, uid: str) -> ResourceClaim:
    meta = msgspec.structs.replace(found.metadata, labels={DOMAIN_LABEL: uid})
    return msgspec.structs.replace(found, metadata=meta)


def _names(found: list[Collision]) -> list[str]:
    return [collision.claim.metadata.name for collision in found]


def test_the_pod_that_has_no_channel_yet_has_to_go() -> None:
    claims = [ready_claim("owner", node="n1"), _of(claim("guest", node="n1"), GUEST)]
    assert crowded(claims)
    (found,) = losers(claims, node="n1", group=str)
    assert (found.claim.metadata.name, found.node, found.holder) == ("guest", "n1", UID)


def test_nobody_has_to_go_before_one_is_served_or_while_both_seem_to_be() -> None:
    both = [claim("owner", node="n1"), _of(claim("guest", node="n1"), GUEST)]
    assert losers(both, node="n1", group=str) == []
    served = [ready_claim("owner", node="n1"), _of(ready_claim("guest", node="n1"), GUEST)]
    assert losers(served, node="n1", group=str) == []


def test_domains_that_share_nodes_do_not_collide() -> None:
    claims = [ready_claim("owner", node="n1"), _of(claim("guest", node="n1"), GUEST)]
    assert losers(claims, node="n1", group=lambda _: SHARED) == []
    third = _of(claim("third", node="n1"), "another")
    found = losers([*claims, third], node="n1", group=lambda uid: uid if uid == "another" else SHARED)
    assert _names(found) == ["third"]


def test_a_pod_that_ends_anyway_is_left_alone() -> None:
    claims = [ready_claim("owner", node="n1"), _of(claim("guest", node="n1", deleting=True), GUEST)]
    assert losers(claims, node="n1", group=str) == []
    assert not crowded(claims[:1])


def test_a_collision_is_ended_once_it_has_lasted_and_each_later_one_more_patiently() -> None:
    grace = Grace()
    first = Collision(claim=claim("a", node="n1"), node="n1", holder=UID)
    assert grace.due([first], now=0) == []
    assert grace.next_in(now=0) == PATIENCE
    due = grace.due([first], now=PATIENCE)
    assert _names(due) == ["a"]
    grace.settled(due, now=PATIENCE)
    assert grace.due([first], now=50) == []
    assert grace.next_in(now=50) is None
    second = Collision(claim=claim("b", node="n1"), node="n1", holder=UID)
    assert grace.due([second], now=60) == []
    assert grace.next_in(now=60) == 2 * PATIENCE
    grace.due([], now=61 + 2 * LONGEST)
    assert grace.due([second], now=200) == []
    assert grace.next_in(now=200) == PATIENCE


def test_a_collision_long_after_the_last_one_is_ended_as_soon_as_the_first_although_nobody_looked_between() -> None:
    grace = Grace()
    for number in range(8):
        found = [Collision(claim=claim(f"a{number}", node="n1"), node="n1", holder=UID)]
        grace.due(found, now=number)
        grace.settled(found, now=number)
        grace.due([], now=number)
    later = [Collision(claim=claim("b", node="n1"), node="n1", holder=UID)]
    grace.due(later, now=10 + 2 * LONGEST)
    assert grace.next_in(now=10 + 2 * LONGEST) == PATIENCE


def test_an_eviction_that_was_not_allowed_is_due_again_and_nothing_is_in_between() -> None:
    grace = Grace()
    found = [Collision(claim=claim("a", node="n1"), node="n1", holder=UID)]
    grace.due(found, now=0)
    grace.postponed(grace.due(found, now=PATIENCE), now=PATIENCE)
    assert grace.next_in(now=PATIENCE) == AGAIN
    assert grace.due(found, now=PATIENCE + AGAIN - 0.1) == []
    assert _names(grace.due(found, now=PATIENCE + AGAIN)) == ["a"]

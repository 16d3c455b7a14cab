from __future__ import annotations

from interlace.api.computedomain import PeerBarrier
from interlace.api.core import Pod
from interlace.api.meta import ObjectMeta, OwnerReference
from interlace.api.resource import ResourceClaim
from interlace.domains.barrier import maker_of, peers_awaited, too_few
from interlace.domains.membership import membership
from tests.unit.domains.objects import claim, ready_claim, said

THREE = PeerBarrier(nodes=3, timeout_seconds=60)


def _held(name: str, node: str) -> ResourceClaim:
    waiting = said("False", reason="WaitingForPeers", message=f"node {node} waits for its peers.")
    return claim(name, node=node, conditions=[waiting])


def _says(*claims: ResourceClaim, maker: str = "", barrier: PeerBarrier = THREE) -> tuple[str, str, str]:
    found = peers_awaited(membership(claims, namespace="team"), barrier=barrier, maker=maker)
    return found.status, found.reason, found.message


def test_a_domain_without_pods_that_wait_is_well() -> None:
    assert _says()[:2] == ("True", "Connected")
    assert _says(ready_claim("a", node="n1"))[:2] == ("True", "Connected")


def test_the_pods_that_wait_say_for_whom() -> None:
    status, reason, message = _says(_held("a", "n1"), _held("b", "n2"), claim("c", node="n3"))
    assert (status, reason) == ("False", "PeersMissing")
    assert message == "node n1 waits for its peers. node n2 waits for its peers."


def test_too_few_pods_can_never_pass() -> None:
    few = membership([_held("a", "n1"), _held("b", "n2")], namespace="team")
    assert too_few(few, barrier=THREE)
    assert not too_few(membership([_held("a", "n1"), claim("b"), claim("c")], namespace="team"), barrier=THREE)
    assert not too_few(few, barrier=PeerBarrier())
    _, reason, message = _says(_held("a", "n1"), _held("b", "n2"), maker="StatefulSet team/s")
    assert reason == "TooFewPods"
    assert "2 Pods wait for 3 nodes" in message


def test_an_ordered_start_is_named_with_what_to_change() -> None:
    _, reason, message = _says(_held("a", "n1"), maker="StatefulSet team/s")
    assert reason == "OrderedStart"
    assert "StatefulSet team/s" in message
    assert "podManagementPolicy Parallel" in message


def test_pods_that_started_without_their_peers_are_told() -> None:
    late = claim("a", node="n1", conditions=[said("True", reason="StartedWithoutPeers")])
    assert _says(late)[1:] == ("StartedWithoutPeers", "After 60 s Pods started without all of their peers on: n1.")


def test_only_a_stateful_set_makes_pods_in_order() -> None:
    def pod(kind: str, *, controller: bool = True) -> Pod:
        owner = OwnerReference(api_version="apps/v1", kind=kind, name="s", uid="u", controller=controller)
        return Pod(metadata=ObjectMeta(name="p", namespace="team", owner_references=[owner]))

    assert maker_of(pod("StatefulSet")) == "StatefulSet team/s"
    assert maker_of(pod("ReplicaSet")) == ""
    assert maker_of(pod("StatefulSet", controller=False)) == ""

from __future__ import annotations

import msgspec
import pytest

from interlace.api.computedomain import CLIQUE_LABEL, ComputeDomainChannel
from interlace.api.core import Pod, PodCondition, PodResourceClaim, PodSpec, PodStatus
from interlace.api.meta import Condition, ObjectMeta
from interlace.api.resource import Device, DeviceAttribute, ResourceClaim
from interlace.domains.chain import HOPELESS, Chain, Health, Step, chains, unhealthy
from interlace.domains.places import Place
from interlace.node.errors import Reason
from tests.unit.domains.objects import RACK, UID, claim, clique, domain, node_slice, ready_claim, said

CLIQUE = f"{RACK}.0"
PLACES = {"n1": Place(clique=CLIQUE), "n2": Place(clique="")}
ROWS = [clique([("n1", 3, "10.0.0.1")])]


def pod(name: str, *, node: str = "n1", message: str = "", phase: str = "Running", template: str = "cd-rct") -> Pod:
    conditions = [PodCondition(type="PodScheduled", status="False", message=message)] if message else []
    return Pod(
        metadata=ObjectMeta(name=f"pod-{name}", namespace="team", uid=f"uid-of-pod-{name}"),
        spec=PodSpec(
            node_name=node, resource_claims=[PodResourceClaim(name="channel", resource_claim_template_name=template)]
        ),
        status=PodStatus(phase=phase, conditions=conditions),
    )


def chain_of(one: ResourceClaim, *pods: Pod, rows: list[object] | None = None, **read: object) -> Chain:
    given = {"cliques": ROWS, "places": PLACES, "pods": {item.metadata.uid: item for item in pods}} | read
    (found,) = chains(domain(), claims=[one], **given)  # type: ignore[arg-type]
    return found


def steps(chain: Chain) -> list[tuple[str, str]]:
    return [(link.step.value, link.health.value) for link in chain.links]


def test_a_pod_with_its_channel_waits_for_nothing() -> None:
    ready = Condition(type="Ready", status="True", reason="Prepared", last_transition_time="2026-01-01T00:00:00Z")
    found = chain_of(claim("a", node="n1", conditions=[ready]), pod("a"))
    assert steps(found) == [("pod", "ok"), ("claim", "ok"), ("node", "ok"), ("map", "ok"), ("channel", "ok")]
    assert found.waits_for is None
    assert (found.pod, found.node) == ("pod-a", "n1")
    channel, row = found.link(Step.CHANNEL), found.link(Step.MAP)
    assert channel is not None
    assert channel.since == "2026-01-01T00:00:00Z"
    assert row is not None
    assert row.detail == "index 3, address 10.0.0.1"


def test_a_pod_that_is_not_scheduled_waits_with_the_words_of_the_scheduler() -> None:
    found = chain_of(claim("a"), pod("a", node="", message="0/5 nodes are available"))
    assert steps(found) == [("pod", "waiting"), ("claim", "waiting")]
    assert found.waits_for is not None
    assert found.waits_for.detail == "0/5 nodes are available"


def test_a_claim_in_another_namespace_is_broken_and_the_chain_ends() -> None:
    found = chain_of(claim("a", node="n1", namespace="other"))
    assert steps(found) == [("pod", "unknown"), ("claim", "broken")]
    assert found.pod == "other/pod-a"


def test_a_node_without_a_slice_is_broken_and_names_the_agent() -> None:
    found = chain_of(claim("a", node="n9"), pod("a"))
    assert steps(found)[-1] == ("node", "broken")
    assert found.waits_for is not None
    assert "interlace-agent" in found.waits_for.detail


def test_a_node_that_is_not_in_the_map_yet_waits_there() -> None:
    found = chain_of(claim("a", node="n1"), pod("a"), cliques=[])
    assert ("map", "waiting") in steps(found)
    assert found.waits_for is not None
    assert found.waits_for.what == "IMEX node map"


def test_a_node_without_a_fabric_needs_no_map() -> None:
    found = chain_of(ready_claim("a", node="n2"), pod("a", node="n2"))
    assert [step for step, _ in steps(found)] == ["pod", "claim", "node", "channel"]
    assert found.waits_for is None


def test_a_channel_that_nobody_has_reported_is_waited_for() -> None:
    found = chain_of(claim("a", node="n1"), pod("a"))
    assert found.waits_for is not None
    assert (found.waits_for.step, found.waits_for.detail) == (Step.CHANNEL, "the agent has not reported yet")


@pytest.mark.parametrize(("reason", "health"), [("ImexStarting", Health.WAITING), ("BadConfig", Health.BROKEN)])
def test_what_no_waiting_ends_is_broken(reason: str, health: Health) -> None:
    found = chain_of(claim("a", node="n1", conditions=[said("False", reason=reason, message="so it is")]), pod("a"))
    assert found.waits_for is not None
    assert (found.waits_for.health, found.waits_for.detail) == (health, f"{reason}: so it is")


def test_the_hopeless_reasons_are_reasons_of_the_agent() -> None:
    assert {reason.value for reason in Reason} > HOPELESS


def test_disconnected_peers_are_said_after_the_channel() -> None:
    conditions = [said("True"), said("False", type_="PeersConnected", message="IMEX on n1 does not reach n2.")]
    found = chain_of(claim("a", node="n1", conditions=conditions), pod("a"))
    assert steps(found)[-1] == ("peers", "broken")
    assert found.waits_for is not None
    assert found.waits_for.detail == "IMEX on n1 does not reach n2."


def test_what_may_not_be_read_is_unknown_and_nobody_waits_for_it() -> None:
    found = chain_of(ready_claim("a", node="n1"), cliques=None, places=None, pods=None)
    assert steps(found) == [
        ("pod", "unknown"),
        ("claim", "ok"),
        ("node", "unknown"),
        ("map", "unknown"),
        ("channel", "ok"),
    ]
    assert found.waits_for is None


def test_a_pod_whose_claim_was_not_made_is_found_by_the_template_that_it_names() -> None:
    names = {"a": "cd-rct", "b": "another"}
    pods = {f"uid-of-pod-{name}": pod(name, node="", template=template) for name, template in names.items()}
    (found,) = chains(domain(), claims=[], pods=pods, cliques=ROWS, places=PLACES)
    assert steps(found) == [("pod", "ok"), ("claim", "waiting")]
    assert found.waits_for is not None
    assert "kubectl describe pod pod-a -n team" in found.waits_for.detail


def test_pods_that_have_ended_or_are_elsewhere_wait_for_no_claim() -> None:
    ended = pod("a", phase="Succeeded")
    elsewhere = msgspec.structs.replace(pod("b"), metadata=ObjectMeta(name="pod-b", namespace="other", uid="b"))
    going = msgspec.structs.replace(
        pod("c"),
        metadata=ObjectMeta(name="pod-c", namespace="team", uid="c", deletion_timestamp="2026-01-01T00:00:00Z"),
    )
    pods = {str(number): item for number, item in enumerate((ended, elsewhere, going))}
    assert chains(domain(), claims=[], pods=pods, cliques=ROWS, places=PLACES) == []


def test_a_claim_that_nobody_uses_and_that_holds_no_node_is_left_out() -> None:
    assert chains(domain(), claims=[claim("a", pod=False)], pods={}, cliques=ROWS, places=PLACES) == []


def test_a_claim_that_holds_a_node_for_nobody_is_shown() -> None:
    found = chain_of(claim("a", node="n1", pod=False, reserved=False))
    assert found.pod == "(no Pod)"
    assert steps(found)[0] == ("pod", "waiting")


def test_those_that_wait_come_first() -> None:
    claims = [ready_claim("a", node="n1"), claim("b"), ready_claim("c", node="n2")]
    pods = {f"uid-of-pod-{name}": pod(name) for name in "abc"}
    order = [chain.pod for chain in chains(domain(), claims=claims, pods=pods, cliques=ROWS, places=PLACES)]
    assert order == ["pod-b", "pod-a", "pod-c"]


def test_an_unhealthy_fabric_is_named_with_its_reason() -> None:
    well = node_slice("n1", clique_id=CLIQUE)
    attributes = {"type": DeviceAttribute(string="channel-unhealthy"), "reason": DeviceAttribute(string="NotCompleted")}
    spec = msgspec.structs.replace(well.spec, node_name="n2", devices=[Device(name="channel-0", attributes=attributes)])
    assert unhealthy([well, msgspec.structs.replace(well, spec=spec)]) == {"n2": "NotCompleted"}


def test_the_shared_map_shows_row_and_channel_of_the_domain_and_no_row_of_a_neighbour() -> None:
    plain = domain()
    assert plain.spec is not None
    sharing = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, isolation="Channel"))
    mine = ComputeDomainChannel(domain=UID, name="cd", namespace="team", channel=2, indexes=[0])
    theirs = msgspec.structs.replace(mine, domain="another", channel=1, indexes=[0, 1])
    shared = msgspec.structs.replace(
        clique([("n1", 0, "10.0.0.1"), ("n2", 1, "10.0.0.2")]),
        metadata=ObjectMeta(name=f"shared.{CLIQUE}", labels={CLIQUE_LABEL: CLIQUE}),
        channels=[theirs, mine],
    )
    places = {node: Place(clique=CLIQUE) for node in ("n1", "n2")}
    claims = [ready_claim("a", node="n1"), ready_claim("b", node="n2")]
    found = chains(sharing, claims=claims, pods={}, cliques=[shared], places=places)
    rows = {chain.node: chain.link(Step.MAP) for chain in found}
    assert rows["n1"] is not None
    assert rows["n2"] is not None
    assert (rows["n1"].health, rows["n2"].health) == (Health.OK, Health.WAITING)
    assert rows["n1"].detail == "index 0, address 10.0.0.1, channel 2; shared with 1 more domain"

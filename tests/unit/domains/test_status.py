from __future__ import annotations

import pytest

from interlace.api.computedomain import ComputeDomainNode, ComputeDomainStatus, Readiness
from interlace.api.meta import Condition
from interlace.domains import conditions
from interlace.domains.announce import announcements
from interlace.domains.conditions import Truth, listed, stamp
from interlace.domains.membership import membership
from interlace.domains.places import Place
from interlace.domains.reasons import DomainReason, WaitReason
from interlace.domains.status import node_rows, overall, ready_of
from interlace.domains.waiting import Wait
from tests.unit.domains.objects import RACK, claim, clique, domain, ready_claim, said

R0, R1 = f"{RACK}.0", f"{RACK}.1"


def node(name: str, status: Readiness = "Ready", *, clique_id: str = R0, index: int = 0) -> ComputeDomainNode:
    return ComputeDomainNode(name=name, ip_address="10.0.0.1", clique_id=clique_id, index=index, status=status)


CREATED = conditions.template_ready(DomainReason.TEMPLATE_CREATED, name="t", namespace="team")


def ready(
    *nodes: ComputeDomainNode, num_nodes: int = 0, template: Condition = CREATED, waits: list[Wait] | None = None
) -> Condition:
    return conditions.ready(nodes, spec=domain(num_nodes=num_nodes).spec, template=template, waits=waits or [])


def status(*nodes: ComputeDomainNode, condition: Condition) -> ComputeDomainStatus:
    return ComputeDomainStatus(status="Ready", nodes=list(nodes), conditions=[condition])


def told(before: ComputeDomainStatus | None, after: ComputeDomainStatus) -> list[tuple[str, bool]]:
    return [(event.reason, event.warning) for event in announcements(before, after)]


class TestOldFields:
    def test_a_node_is_ready_once_one_channel_claim_of_the_domain_there_is(self) -> None:
        members = membership([claim("a", node="n1"), ready_claim("b", node="n1")], namespace="team").members
        (row,) = node_rows(members, cliques=[clique([("n1", 3, "10.0.0.1")])], fabricless=[], places={})
        assert row == ComputeDomainNode(name="n1", ip_address="10.0.0.1", clique_id=R0, index=3, status="Ready")

    def test_a_node_is_not_ready_while_its_agent_says_so_or_nothing(self) -> None:
        for claims in ([claim("a", node="n1")], [claim("a", node="n1", conditions=[said("False")])]):
            members = membership(claims, namespace="team").members
            (row,) = node_rows(members, cliques=[clique([("n1", 0, "10.0.0.1")])], fabricless=[], places={})
            assert row.status == "NotReady"

    def test_a_member_without_a_row_is_not_listed_and_a_row_without_a_member_neither(self) -> None:
        members = membership([claim("a", node="n1")], namespace="team").members
        assert node_rows(members, cliques=[clique([("n2", 0, "10.0.0.2")])], fabricless=[], places={}) == []

    def test_a_node_without_a_fabric_is_listed_with_index_minus_one(self) -> None:
        members = membership([ready_claim("a", node="n1")], namespace="team").members
        places = {"n1": Place(clique="", address="10.0.0.1")}
        (row,) = node_rows(members, cliques=[], fabricless=["n1"], places=places)
        assert row == ComputeDomainNode(name="n1", ip_address="10.0.0.1", clique_id="", index=-1, status="Ready")

    @pytest.mark.parametrize(
        ("nodes", "num_nodes", "expected"),
        [
            ([], 0, "Ready"),
            ([], 1, "NotReady"),
            ([node("a")], 1, "Ready"),
            ([node("a")], 2, "NotReady"),
            ([node("a"), node("b")], 1, "Ready"),
            ([node("a"), node("b", "NotReady")], 1, "NotReady"),
        ],
    )
    def test_the_domain_is_ready_as_in_the_existing_api(
        self, nodes: list[ComputeDomainNode], num_nodes: int, expected: str
    ) -> None:
        assert overall(nodes, num_nodes=num_nodes) == expected

    def test_ready_nodes_are_counted_for_the_column(self) -> None:
        assert ready_of([node("a"), node("b", "NotReady")]) == "1/2"


class TestReady:
    def test_a_formed_domain_says_how_many_nodes_in_how_many_cliques(self) -> None:
        found = ready(node("a"), node("b"), node("c", clique_id=R1))
        assert (found.status, found.reason) == ("True", "Formed")
        assert found.message == "3 nodes in 2 cliques are ready."

    def test_an_unused_domain_is_ready_and_says_that_it_has_no_nodes(self) -> None:
        assert (ready().status, ready().reason) == ("True", "NoNodes")

    def test_fewer_nodes_than_asked_for_are_counted(self) -> None:
        found = ready(node("a"), num_nodes=3)
        assert (found.status, found.reason) == ("False", "TooFewNodes")
        assert found.message == "1 of the 3 nodes in spec.numNodes are there."

    def test_the_first_wait_is_told_and_the_others_counted(self) -> None:
        wait = Wait(claim=claim("a"), reason=WaitReason.HOST, message="Node n1 has no imex-host Pod.")
        found = ready(node("a"), waits=[wait, wait, wait])
        assert (found.status, found.reason) == ("False", "NoImexHost")
        assert found.message == "Node n1 has no imex-host Pod. (2 more claims wait.)"

    def test_a_stranger_in_another_namespace_has_no_say(self) -> None:
        stranger = Wait(claim=claim("a", namespace="other"), reason=WaitReason.WRONG_NAMESPACE, message="no")
        assert ready(node("a"), waits=[stranger]).status == "True"

    def test_without_a_template_nothing_else_matters(self) -> None:
        taken = conditions.template_ready(
            DomainReason.TEMPLATE_NAME_TAKEN, name="t", namespace="team", holder="ComputeDomain team/other"
        )
        found = ready(node("a"), template=taken)
        assert (found.status, found.reason) == ("False", "TemplateNameTaken")
        assert "ResourceClaimTemplate team/t belongs to ComputeDomain team/other; delete it" in found.message

    def test_a_domain_stored_without_spec_says_so(self) -> None:
        found = conditions.ready([], spec=None, template=CREATED, waits=[])
        assert (found.status, found.reason) == ("False", "NoSpec")


class TestWithinOneClique:
    def test_it_names_the_one_clique(self) -> None:
        found = conditions.within_one_clique([node("a"), node("b")])
        assert (found.status, found.reason) == ("True", "OneClique")
        assert R0 in found.message

    def test_it_names_several_cliques_and_their_sizes(self) -> None:
        found = conditions.within_one_clique([node("a"), node("b"), node("c", clique_id=R1)])
        assert (found.status, found.reason) == ("False", "SeveralCliques")
        assert f"{R0} (2 nodes), {R1} (1 node)" in found.message

    def test_it_names_nodes_without_a_fabric(self) -> None:
        found = conditions.within_one_clique([node("a"), node("b", clique_id="", index=-1)])
        assert (found.status, found.reason) == ("False", "NoFabric")
        assert "b" in found.message

    def test_an_empty_domain_leaves_it_open(self) -> None:
        assert conditions.within_one_clique([]).status == "Unknown"


class TestPeersConnected:
    def connected(self, *reports: tuple[str, str, str]) -> Condition:
        claims = [claim(n, node=n, conditions=[said(s, type_="PeersConnected", message=m)]) for n, s, m in reports]
        return conditions.peers_connected(membership(claims, namespace="team").members)

    def test_one_report_of_a_broken_peer_wins_over_others_that_see_all(self) -> None:
        found = self.connected(("n1", "True", ""), ("n2", "False", "no connection to n3"))
        assert (found.status, found.reason, found.message) == ("False", "Disconnected", "n2: no connection to n3")

    def test_one_report_that_all_is_well_suffices(self) -> None:
        assert self.connected(("n1", "True", "")).status == "True"

    def test_no_report_leaves_it_open(self) -> None:
        assert conditions.peers_connected({}).status == "Unknown"


class TestStamp:
    def test_the_transition_time_stays_while_the_status_does(self) -> None:
        first = stamp([ready(node("a"))], before=[], generation=1, now="then")
        second = stamp([ready(node("a"), node("b"))], before=first, generation=1, now="later")
        assert second[0].last_transition_time == "then"
        assert second[0].message != first[0].message

    def test_the_transition_time_moves_when_the_status_does(self) -> None:
        first = stamp([ready(node("a"))], before=[], generation=1, now="then")
        second = stamp([ready(node("a", "NotReady"))], before=first, generation=2, now="later")
        assert second[0].last_transition_time == "later"
        assert second[0].observed_generation == 2

    def test_nothing_new_compares_equal(self) -> None:
        first = stamp([ready(node("a"))], before=[], generation=1, now="then")
        assert stamp([ready(node("a"))], before=first, generation=1, now="later") == first


class TestAnnouncements:
    def test_a_domain_that_forms_tells_it_once(self) -> None:
        empty = status(condition=ready())
        forming = status(node("a"), node("b", "NotReady"), condition=ready(node("a"), node("b", "NotReady")))
        formed = status(node("a"), node("b"), condition=ready(node("a"), node("b")))
        assert told(None, empty) == []
        assert told(empty, forming) == []
        assert told(forming, formed) == [("Formed", False)]
        assert told(formed, formed) == []

    def test_a_node_that_leaves_a_domain_that_goes_on_is_told(self) -> None:
        both = status(node("a"), node("b"), condition=ready(node("a"), node("b")))
        one = status(node("a"), condition=ready(node("a")))
        (event,) = announcements(both, one)
        assert (event.reason, event.message) == ("NodesLeft", "b left; 1 node remains.")

    def test_a_node_that_replaces_another_between_two_writes_is_told(self) -> None:
        before = status(node("a"), node("b"), condition=ready(node("a"), node("b")))
        after = status(node("a"), node("c"), condition=ready(node("a"), node("c")))
        assert told(before, after) == [("NodesLeft", False), ("Formed", False)]

    def test_a_domain_that_runs_empty_tells_nothing(self) -> None:
        one = status(node("a"), condition=ready(node("a")))
        assert told(one, status(condition=ready())) == []

    @pytest.mark.parametrize("reason", ["NoSpec", "TemplateNameTaken", "TemplateInvalid", "CliqueFull"])
    def test_what_needs_a_person_is_a_warning_once(self, reason: str) -> None:
        broken = status(condition=conditions.condition("Ready", Truth.FALSE, reason, "why"))
        assert told(None, broken) == [(reason, True)]
        assert told(broken, broken) == []


def test_long_lists_are_cut() -> None:
    assert listed(["a", "b", "c", "d", "e", "f"]) == "a, b, c, d and 2 more"
    assert listed(["a", "b"]) == "a, b"

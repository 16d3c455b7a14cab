from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from rich.console import RenderableType

from interlace.api.computedomain import ComputeDomain, ComputeDomainNode, ComputeDomainStatus
from interlace.api.core import Event
from interlace.api.meta import Condition
from interlace.cli.domain_document import document, encode, is_ready, nodes_ready, summary
from interlace.cli.domain_reader import Picture
from interlace.cli.domain_view import explanation, line, page, table
from interlace.cli.printing import echo
from interlace.domains.chain import Chain, chains
from interlace.domains.places import Place
from tests.unit.domains.objects import RACK, claim, clique, domain

CLIQUE = f"{RACK}.0"
AGO = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()


def formed(*, ready: bool = True, conditions: bool = True) -> ComputeDomain:
    nodes = [
        ComputeDomainNode(name="n1", ip_address="10.0.0.1", clique_id=CLIQUE, index=0, status="Ready"),
        ComputeDomainNode(name="n2", ip_address="", clique_id="", index=-1, status="Ready" if ready else "NotReady"),
    ]
    said = Condition(
        type="Ready",
        status="True" if ready else "False",
        reason="Formed" if ready else "WaitingForImex",
        message="All is well." if ready else "IMEX on node n2 is not ready.",
        last_transition_time=AGO,
    )
    status = ComputeDomainStatus(
        status="Ready" if ready else "NotReady", nodes=nodes, conditions=[said] if conditions else []
    )
    return msgspec.structs.replace(domain(), status=status)


def picture(one: ComputeDomain, *, found: list[Chain] | None = None, unreadable: list[str] | None = None) -> Picture:
    prepared = Condition(type="Ready", status="True", reason="Prepared", last_transition_time=AGO)
    if found is None:
        found = chains(
            one,
            claims=[claim("a", node="n1", conditions=[prepared]), claim("b", node="n2")],
            pods=None,
            cliques=[clique([("n1", 0, "10.0.0.1")])],
            places={"n1": Place(clique=CLIQUE), "n2": Place(clique="")},
        )
    event = Event(reason="Formed", type="Normal", message="2 nodes are ready.", last_timestamp=AGO)
    return Picture(domain=one, chains=found, events=[event], unhealthy={"n7": "NoClique"}, unreadable=unreadable or [])


def shown(renderable: RenderableType) -> list[str]:
    file = io.StringIO()
    echo(renderable, stream=file)
    return file.getvalue().splitlines()


def words(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines]


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_list_has_one_line_a_domain_and_the_namespace_where_it_tells_something(everywhere: bool) -> None:
    head, row = words(shown(table([formed(ready=False)], everywhere=everywhere)))
    assert head == ["NAMESPACE"] * everywhere + ["NAME", "READY", "NODES", "AGE", "REASON"]
    assert row == ["team"] * everywhere + ["cd", "False", "1/2", "-", "WaitingForImex"]


def test_a_domain_that_nobody_has_looked_at_yet_is_listed() -> None:
    _, row = words(shown(table([domain()], everywhere=False)))
    assert row == ["cd", "False", "0/0", "-", "-"]


def test_the_status_field_counts_until_there_is_a_condition() -> None:
    assert is_ready(formed(conditions=False))
    assert not is_ready(formed(ready=False, conditions=False))
    assert not is_ready(domain())
    assert nodes_ready(formed(ready=False)) == 1


def test_a_line_says_how_many_nodes_and_why() -> None:
    assert line(formed(ready=False)) == "cd: NotReady, 1/2 nodes Ready. IMEX on node n2 is not ready."
    assert line(domain()) == "cd: NotReady, 0/0 nodes Ready."


def test_a_page_shows_nodes_by_clique_then_what_waits_conditions_and_events() -> None:
    lines = shown(page(picture(formed(ready=False))))
    text = "\n".join(lines)
    assert f"NVLink clique {CLIQUE}" in lines
    assert "Nodes without a fabric" in lines
    assert ["n1", "0", "10.0.0.1", "Ready", "pod-a", "ready", "for", "5m"] in words(lines)
    assert ["n2", "-", "-", "NotReady", "pod-b", "the", "agent", "has", "not", "reported", "yet"] in words(lines)
    order = [text.index(word) for word in ("NVLink clique", "WAITING POD", "CONDITION", "EVENT")]
    assert order == sorted(order)
    assert ["n7", "NoClique"] in words(lines)


def test_a_page_of_a_domain_without_status_is_short() -> None:
    assert shown(page(Picture(domain=domain(), chains=[], events=[], unhealthy={}, unreadable=[]))) == [
        "cd: NotReady, 0/0 nodes Ready."
    ]


def test_an_explanation_draws_the_chain_of_a_pod_that_waits_and_a_line_for_one_that_does_not() -> None:
    lines = shown(explanation(picture(formed(ready=False))))
    at = lines.index("pod-b waits for IMEX channel")
    assert lines[at + 1 : at + 5] == [
        "  ? Pod pod-b: the Pod could not be read",
        "  ✓ ResourceClaim b: channel allocated on n2",
        "  ✓ Node n2: NVLink clique (no fabric)",
        "  … IMEX channel: the agent has not reported yet",
    ]
    assert ["pod-a", "n1", "index", "0,", "address", "10.0.0.1", "ready", "for", "5m", "-"] in words(lines)
    assert not any("pod-a waits" in line for line in lines)


def test_an_explanation_without_pods_says_so() -> None:
    assert "No Pod uses the domain's claim template." in shown(explanation(picture(formed(), found=[])))


def test_unhealthy_nodes_are_no_concern_of_a_domain_that_waits_for_nothing() -> None:
    assert not any("n7" in line for line in shown(explanation(picture(formed(), found=[]))))


def test_what_could_not_be_read_is_named() -> None:
    last = shown(page(picture(formed(), unreadable=["pods", "events"])))[-1]
    assert last == "You may not read pods, events; what they would tell is missing."


def test_the_document_of_one_domain_is_the_summary_and_more() -> None:
    one = formed(ready=False)
    short, whole = json.loads(encode(summary(one))), json.loads(encode(document(picture(one))))
    assert short == {
        "namespace": "team",
        "name": "cd",
        "uid": one.metadata.uid,
        "status": "NotReady",
        "ready": False,
        "reason": "WaitingForImex",
        "message": "IMEX on node n2 is not ready.",
        "nodes": 2,
        "nodes_ready": 1,
        "created": None,
    }
    assert whole.items() >= short.items()
    assert set(whole) - set(short) == {"conditions", "members", "pods", "events", "unhealthy_nodes", "unreadable"}
    waiting, through = whole["pods"]
    assert (waiting["pod"], waiting["node"], waiting["waits_for"]) == ("pod-b", "n2", "IMEX channel")
    assert through["waits_for"] is None
    assert [link["step"] for link in through["chain"]] == ["pod", "claim", "node", "map", "channel"]
    assert whole["members"][0]["cliqueID"] == CLIQUE
    assert whole["unhealthy_nodes"] == [{"node": "n7", "reason": "NoClique"}]

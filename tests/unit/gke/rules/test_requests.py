"""Rules over requests: what gcloud sends without noticing, and the recorded commands that are right or wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlace.gke.request import Request
from interlace.gke.rules.checking import MALFORMED, RULES, check_requests
from interlace.rules.finding import Finding
from tests.unit.gke.rules.bundles import DATA, errors, of_rule
from tests.unit.gke.rules.request_cases import ACCEPTED, changed, golden


def nested(name: str, wrapper: str, **members: Any) -> tuple[Request, ...]:
    """A recorded case with members of the resource in its body replaced."""
    requests = golden(name)
    return changed(requests, 0, **{wrapper: {**(requests[0].body or {})[wrapper], **members}})


SENT: dict[str, tuple[Request, ...]] = {
    "mtu-out-of-range-accepted-by-parser": changed(golden("net-seed-1"), 0, mtu=99999),
    "subnet-no-range": changed(golden("sub-seed-1"), 0, ipCidrRange=None),
    "subnet-bad-cidr-accepted-by-parser": changed(golden("sub-seed-1"), 0, ipCidrRange="SUBNET_RANGE"),
    "firewall-source-and-egress": changed(golden("fw-seed-1"), 0, direction="EGRESS"),
    "pool-autoscaling-without-max": nested("np-tcpxo", "nodePool", autoscaling={"enabled": True}),
    "pool-min-above-max": nested(
        "np-tcpxo", "nodePool", autoscaling={"enabled": True, "minNodeCount": 5, "maxNodeCount": 4}
    ),
    "pool-bad-metadata-label": nested("np-resource-labels", "nodePool", config={"resourceLabels": {"Stack": "demo"}}),
    "pool-bad-num-nodes": nested("np-tcpxo", "nodePool", initialNodeCount=-1),
}
"""What gcloud sends for the wrong commands that it takes."""


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_gcloud_takes_and_the_service_refuses_is_a_named_error(case: str) -> None:
    findings = of_rule(check_requests(SENT[case]), ACCEPTED[case])
    assert [each.severity for each in findings] == ["error"]
    assert findings[0].pointer.startswith("/requests/0/body/")


def test_every_recorded_command_that_gcloud_takes_although_it_is_wrong_has_a_rule() -> None:
    recorded = json.loads((DATA / "rejects.json").read_text())["cases"]
    assert {each["case"] for each in recorded if each["exit_code"] == 0} == set(ACCEPTED)
    assert set(ACCEPTED.values()) <= {rule.id for rule in RULES}


def warnings(findings: tuple[Finding, ...]) -> set[str]:
    return {each.rule for each in findings if each.severity == "warning"}


@pytest.mark.parametrize("name", ["seq-tcpxo-create", "seq-tcpx-create"])
def test_the_recorded_builds_have_no_errors_and_their_weak_points_are_named(name: str) -> None:
    findings = check_requests(golden(name))
    assert not errors(findings)
    assert {"cluster.channel-unset", "cluster.default-network"} <= warnings(findings)


def test_a_cluster_with_a_channel_and_a_network_of_its_own_is_not_warned_of() -> None:
    requests = golden("seq-tcpx-create")
    index = next(index for index, each in enumerate(requests) if each.path.endswith("/clusters"))
    cluster = {
        **(requests[index].body or {})["cluster"],
        "network": "own",
        "releaseChannel": {"channel": "UNSPECIFIED"},
    }
    assert not warnings(check_requests(changed(requests, index, cluster=cluster)))


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("cl-channel-regular-no-upgrade", {"cluster.auto-upgrade"}),
        ("cl-minimal", {"cluster.dataplane", "cluster.multi-networking", "cluster.ip-alias"}),
        ("np-gpu-partition", {"pool.mig"}),
        ("np-image-type-ubuntu", {"pool.image-type"}),
        ("np-nets-none", {"pool.nic-count"}),
        ("np-no-gvnic", {"pool.gvnic"}),
        ("np-tcpxo", set()),
        ("np-tcpxo-seed-all-options-beta", set()),
        ("del-cluster-zonal", set()),
    ],
)
def test_a_recorded_command_has_the_errors_that_it_deserves(name: str, rules: set[str]) -> None:
    assert errors(check_requests(golden(name))) == rules


def test_every_recorded_case_is_judged_without_a_malformed_one() -> None:
    for path in sorted((DATA / "golden").glob("*.json")):
        findings = check_requests(golden(path.stem))
        assert not of_rule(findings, MALFORMED), path.stem
        assert all(each.pointer.startswith("/requests") for each in findings if each.rule != "state.family"), path.stem


def test_a_pool_for_a_cluster_that_exists_is_judged_without_judging_the_cluster() -> None:
    findings = check_requests(golden("np-tcpx-seed"))
    assert {each.rule.partition(".")[0] for each in findings} <= {"pool", "placement"}


def test_pools_of_two_clusters_are_judged_each_in_its_own() -> None:
    first, second = golden("np-no-gvnic")[0], golden("np-gpu-partition")[0]
    moved = Request(
        service=second.service,
        method="POST",
        path=second.path.replace("/clusters/example-cluster", "/clusters/other"),
        body=second.body,
    )
    findings = check_requests((first, moved))
    assert {(each.rule, each.pointer.split("/")[2]) for each in findings if each.severity == "error"} == {
        ("pool.gvnic", "0"),
        ("pool.mig", "1"),
    }


def test_a_body_that_has_not_the_form_of_its_api_is_named_with_its_place() -> None:
    (finding,) = check_requests(changed(golden("net-seed-1"), 0, mtu="much"))
    assert (finding.rule, finding.severity, finding.pointer) == (MALFORMED, "error", "/requests/0/body/mtu")


def test_no_requests_are_wrong_in_nothing_that_could_be_pointed_at() -> None:
    assert not errors(check_requests(()))

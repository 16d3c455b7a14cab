"""Changes in place: the requests that recorded gcloud commands sent for the same change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlace.gke.difference import differences
from interlace.gke.fields import FIELDS
from interlace.gke.request import Request
from interlace.gke.resource import Key, Kind, Resource
from interlace.gke.updates import covers, updates, updates_named

DATA = Path(__file__).parents[3] / "data/gke"
PROJECT = "example-project"
NETWORK = Key("network", "global", "example-net-1")
SUBNET = Key("subnetwork", "us-central1", "example-sub-1")
CLUSTER = Key("cluster", "us-central1-a", "example-cluster")
POOL = Key("nodePool", "us-central1-a/example-cluster", "gpu-pool")
HOLD = {
    "startTime": "2026-12-01T00:00:00+00:00",
    "endTime": "2027-03-01T00:00:00+00:00",
    "maintenanceExclusionOptions": {"scope": "NO_MINOR_OR_NODE_UPGRADES"},
}


def recorded(case: str) -> dict[str, Any]:
    """The change that a recorded command sent."""
    requests = json.loads((DATA / "golden" / f"{case}.json").read_text())["requests"]
    (found,) = [each for each in requests if each["method"] != "GET" and not each["path"].endswith("/wait")]
    return dict(found)


def made(key: Key, want: dict[str, Any], have: dict[str, Any]) -> list[Request]:
    resource = Resource(key=key, project=PROJECT, body=want)
    found = differences(key.kind, want=want, have=have)
    return [each.request for each in updates(resource, have, found)]


CASES: dict[str, tuple[Key, dict[str, Any], dict[str, Any]]] = {
    "upd-network-mtu": (NETWORK, {"mtu": 8244}, {"mtu": 1460}),
    "upd-subnet-private-access": (SUBNET, {"privateIpGoogleAccess": True}, {}),
    "upd-cluster-labels": (CLUSTER, {"resourceLabels": {"stack": "demo"}}, {"labelFingerprint": "00000000"}),
    "upd-cluster-exclusion": (
        CLUSTER,
        {"maintenancePolicy": {"window": {"maintenanceExclusions": {"freeze": HOLD}}}},
        {"maintenancePolicy": {"resourceVersion": "00000000"}},
    ),
    "upd-upgrade-master": (
        CLUSTER,
        {"initialClusterVersion": "1.30.4-gke.1129000"},
        {"initialClusterVersion": "1.30.2-gke.1023000"},
    ),
    "upd-pool-gvnic": (POOL, {"config": {"gvnic": {"enabled": True}}}, {"config": {}}),
    "upd-pool-no-autoupgrade": (
        POOL,
        {"management": {"autoRepair": True, "autoUpgrade": False}},
        {"management": {"autoRepair": True, "autoUpgrade": True}},
    ),
    "upd-pool-no-autorepair": (
        POOL,
        {"management": {"autoRepair": False, "autoUpgrade": False}},
        {"management": {"autoRepair": True, "autoUpgrade": False}},
    ),
    "upd-pool-node-labels": (POOL, {"config": {"labels": {"team": "ml"}}}, {"config": {}}),
    "upd-pool-node-locations": (POOL, {"locations": ["us-central1-a"]}, {"locations": ["us-central1-b"]}),
    "upd-pool-taints": (
        POOL,
        {"config": {"taints": [{"effect": "NO_SCHEDULE", "key": "team", "value": "ml"}]}},
        {"config": {}},
    ),
    "upd-resize-zonal": (POOL, {"initialNodeCount": 4}, {"initialNodeCount": 2}),
    "upd-resize-zero": (POOL, {"initialNodeCount": 0}, {"initialNodeCount": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_change_sends_what_gcloud_sends(case: str) -> None:
    (request,) = made(*CASES[case])
    expected = recorded(case)
    assert (request.service, request.method, request.path) == (
        expected["service"],
        expected["method"],
        expected["path"],
    )
    assert request.body == expected["body"]


def test_a_firewall_rule_is_patched_where_it_differs() -> None:
    key = Key("firewall", "global", "example-internal-1")
    want = {"sourceRanges": ["192.168.1.0/24"], "allowed": [{"IPProtocol": "tcp"}]}
    have = {"sourceRanges": ["0.0.0.0/0"], "allowed": [{"IPProtocol": "tcp"}], "disabled": True}
    (request,) = made(key, want, have)
    assert request.method == "PATCH"
    assert request.body == {"name": "example-internal-1", "sourceRanges": ["192.168.1.0/24"], "disabled": False}


def test_ranges_that_gke_added_to_a_subnet_stay() -> None:
    ours, old = {"rangeName": "pods", "ipCidrRange": "10.4.0.0/14"}, {"rangeName": "old", "ipCidrRange": "10.0.0.0/14"}
    theirs = {"rangeName": "gke-x-pods", "ipCidrRange": "10.8.0.0/14"}
    (request,) = made(
        SUBNET, {"secondaryIpRanges": [ours]}, {"secondaryIpRanges": [old, theirs], "fingerprint": "AAA="}
    )
    assert request.body == {"secondaryIpRanges": [ours, theirs], "fingerprint": "AAA="}


def test_labels_of_google_stay_and_others_go() -> None:
    have = {"resourceLabels": {"goog-x": "1", "old": "2"}, "labelFingerprint": "f"}
    (request,) = made(CLUSTER, {"resourceLabels": {"new": "3"}}, have)
    assert request.body is not None
    assert request.body["resourceLabels"] == {"goog-x": "1", "new": "3"}


def test_each_top_field_of_a_cluster_is_an_update_of_its_own() -> None:
    want = {"releaseChannel": {"channel": "RAPID"}, "workloadIdentityConfig": {"workloadPool": "p.svc.id.goog"}}
    found = made(CLUSTER, want, {"releaseChannel": {"channel": "REGULAR"}})
    assert [request.body for request in found] == [
        {"update": {"desiredReleaseChannel": {"channel": "RAPID"}}, "name": _name(CLUSTER)},
        {"update": {"desiredWorkloadIdentityConfig": {"workloadPool": "p.svc.id.goog"}}, "name": _name(CLUSTER)},
    ]


def test_exclusions_and_windows_of_others_stay() -> None:
    theirs = {
        "recurringWindow": {"recurrence": "FREQ=WEEKLY"},
        "maintenanceExclusions": {"x": HOLD, "interlace-hold": HOLD},
    }
    have = {"maintenancePolicy": {"resourceVersion": "7", "window": theirs}}
    (request,) = made(CLUSTER, {}, have)
    assert request.body is not None
    assert request.body["maintenancePolicy"] == {
        "resourceVersion": "7",
        "window": {"recurringWindow": {"recurrence": "FREQ=WEEKLY"}, "maintenanceExclusions": {"x": HOLD}},
    }


@pytest.mark.parametrize(
    ("kind", "how"),
    sorted({(kind, row.how) for kind, rows in FIELDS.items() for row in rows.values()}),
)
def test_every_way_to_change_a_field_has_a_request(kind: Kind, how: str) -> None:
    if how in {"replace", "ignore", "update"}:
        return
    body: dict[str, Any] = {
        "initialClusterVersion": "1.34",
        "management": {},
        "version": "1.34",
        "specificReservation": {"count": 1},
    }
    place = {"cluster": "z", "nodePool": "z/c"}.get(kind, "global")
    request = updates_named(Resource(key=Key(kind, place, "n"), project=PROJECT, body=body), {}, how)
    assert request.method in {"POST", "PUT", "PATCH"}


def test_what_cannot_be_changed_makes_no_request() -> None:
    assert made(SUBNET, {"ipCidrRange": "10.0.0.0/24"}, {"ipCidrRange": "10.0.1.0/24"}) == []


def test_an_update_knows_its_differences() -> None:
    want = {"releaseChannel": {"channel": "RAPID"}, "locations": ["us-central1-a"]}
    channel, locations = differences("cluster", want=want, have={})
    assert covers("update releaseChannel", channel)
    assert not covers("update releaseChannel", locations)


def _name(key: Key) -> str:
    return f"projects/{PROJECT}/locations/{key.place}/clusters/{key.name}"

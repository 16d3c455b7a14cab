"""A key that leaves the file is seen: what it asked for is still there and not meant any more."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.gke.cluster import FabricCluster
from interlace.gke.desired import desired
from interlace.gke.difference import differences
from interlace.gke.names import HOLD
from interlace.gke.updates import updates
from tests.unit.gke.spec.clusters import cluster, pool

HELD: dict[str, Any] = {"upgrades": {"hold": {"start": "2026-12-01T00:00:00Z"}}}


def seen(before: FabricCluster, after: FabricCluster) -> set[tuple[str, str, str]]:
    """Kind, field and way of each difference between what was made and what is meant now."""
    have = {each.key: each.body for each in desired(before)}
    return {
        (each.key.kind, found.path, found.how)
        for each in desired(after)
        for found in differences(each.key.kind, want=each.body, have=have[each.key])
    }


@pytest.mark.parametrize(
    ("key", "field", "how"),
    [
        ({"placement": {"policy": "ours"}}, "placementPolicy", "replace"),
        ({"hostMaintenance": "PERIODIC"}, "config.hostMaintenancePolicy", "replace"),
        ({"reservation": {"name": "r"}}, "config.reservationAffinity.consumeReservationType", "replace"),
        ({"spot": True}, "config.spot", "replace"),
        ({"scopes": ["cloud-platform"]}, "config.oauthScopes", "replace"),
        ({"labels": {"a": "b"}}, "config.labels", "labels"),
        ({"taints": [{"key": "a"}]}, "config.taints", "taints"),
        ({"tags": ["a"]}, "config.tags", "tags"),
        ({"autoscaling": {"min": 0, "max": 3}}, "autoscaling", "autoscaling"),
        ({"autoRepair": False}, "management.autoRepair", "management"),
    ],
)
def test_a_key_of_a_pool_that_is_taken_out_is_a_difference(key: dict[str, Any], field: str, how: str) -> None:
    assert seen(cluster(pools=[pool(**key)]), cluster()) == {("nodePool", field, how)}


def test_a_hold_that_is_taken_out_is_ended() -> None:
    found = seen(cluster(**HELD), cluster())
    assert found == {("cluster", f"maintenancePolicy.window.maintenanceExclusions.{HOLD}", "maintenance")}


@pytest.mark.parametrize("after", [{}, {"upgrades": {"hold": {"start": "2026-12-05T00:00:00Z"}}}])
def test_windows_and_exclusions_of_others_stay(after: dict[str, Any]) -> None:
    wanted = desired(cluster(**after))[-2]
    have = desired(cluster(**HELD))[-2].body
    policy = have["maintenancePolicy"]
    theirs = {"freeze": {"startTime": "2026-12-20T00:00:00Z", "endTime": "2027-01-05T00:00:00Z"}}
    policy["window"]["maintenanceExclusions"] |= theirs
    policy["window"]["dailyMaintenanceWindow"] = {"startTime": "03:00"}
    policy["resourceVersion"] = "7"
    (update,) = updates(wanted, have, differences("cluster", want=wanted.body, have=have))
    sent = (update.request.body or {})["maintenancePolicy"]
    assert sent["resourceVersion"] == "7"
    assert sent["window"]["dailyMaintenanceWindow"] == {"startTime": "03:00"}
    exclusions = sent["window"]["maintenanceExclusions"]
    assert exclusions.pop("freeze") == theirs["freeze"]
    assert {name: each["startTime"] for name, each in exclusions.items()} == (
        {HOLD: "2026-12-05T00:00:00Z"} if after else {}
    )


def test_the_same_file_is_no_difference() -> None:
    assert seen(cluster(**HELD), cluster(**HELD)) == set()

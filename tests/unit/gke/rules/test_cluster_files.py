"""Rules over cluster files: valid ones pass, and a finding points at the key that its reader can change."""

from __future__ import annotations

from typing import Any

import pytest

from interlace.gke.rules.checking import check_cluster, check_preflight
from tests.unit.gke.rules.bundles import NOW, Bundle, before, errors, of_rule, put, reserved
from tests.unit.gke.spec.clusters import FAMILIES, cluster, pool

HELD = {"channel": "regular", "hold": {"start": "2026-11-01T00:00:00Z"}}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_smallest_valid_file_of_each_family_has_no_errors(family: str) -> None:
    assert not errors(check_cluster(cluster(family)))


@pytest.mark.parametrize(
    ("spec", "rule", "pointer"),
    [
        ({"version": "1.27.1-gke.1"}, "cluster.version", "/spec/version"),
        ({"upgrades": {"channel": "regular", "auto": False}}, "cluster.auto-upgrade", "/spec/upgrades"),
        ({"network": {"mtu": 1460}}, "network.mtu", "/spec/network/mtu"),
        ({"pools": [pool(driver="disabled")]}, "pool.driver", "/spec/pools/0/driver"),
        ({"pools": [pool(imageType="UBUNTU_CONTAINERD")]}, "pool.image-type", "/spec/pools/0/imageType"),
        (
            {"pools": [pool(), pool(name="more", scopes=["logging.write"])]},
            "pool.scopes",
            "/spec/pools/1/scopes",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_an_error_at_its_key(spec: dict[str, Any], rule: str, pointer: str) -> None:
    findings = of_rule(check_cluster(cluster(**spec)), rule)
    assert (findings[0].severity, findings[0].pointer) == ("error", pointer)


def project(**changes: Any) -> Bundle:
    """A project in which the cluster is still to be made."""
    return put(before(), {"/project": "my-project", **changes})


def test_a_file_fits_a_project_with_enough_of_everything() -> None:
    found = check_preflight(cluster("a3-high", upgrades=HELD), project(), now=NOW)
    assert not errors(found)


def test_a_reservation_and_a_policy_that_are_not_there_are_errors_at_their_keys() -> None:
    wanted = pool(reservation={"name": "mine"}, placement={"policy": "near"})
    found = check_preflight(cluster("a3-high", pools=[wanted]), project(), now=NOW)
    assert {(each.rule, each.pointer) for each in found if each.severity == "error"} == {
        ("reservation.missing", "/spec/pools/0/reservation"),
        ("placement.policy-missing", "/spec/pools/0/placement"),
    }


def test_a_reservation_that_is_too_small_is_an_error_in_the_project() -> None:
    large = pool(nodes=4, reservation={"name": "example-reservation"})
    wanted = cluster("a3-high", project="example-project", pools=[large])
    bundle = put(before(), {"/reservations": reserved()["reservations"]})
    found = check_preflight(wanted, bundle, now=NOW)
    assert {(each.rule, each.pointer) for each in found if each.severity == "error"} == {
        ("reservation.size", "/reservations/0/specificReservation/count")
    }


def test_quotas_are_judged_for_all_pools_of_the_file_together() -> None:
    two = [pool(), pool(name="more")]
    (found,) = of_rule(check_preflight(cluster("a3-high", pools=two), project(), now=NOW), "quota.cpus")
    assert "CPUs still needed: 832" in found.text
    assert found.pointer == "/regionInfo/quotas/0/limit"


def test_networks_of_the_file_count_as_still_to_be_made_until_they_are_there() -> None:
    wanted = cluster("a3-mega")
    short = project(**{"/projectInfo/quotas/0/limit": 9.0})
    (found,) = of_rule(check_preflight(wanted, short, now=NOW), "quota.networks")
    assert "networks still needed: 9" in found.text
    there = [{"name": f"train-net-{number}", "mtu": 8244} for number in range(1, 9)]
    enough = {**short, "networks": [*short["networks"], *there]}
    assert not of_rule(check_preflight(wanted, enough, now=NOW), "quota.networks")


def test_a_network_of_the_file_that_exists_with_another_mtu_is_an_error() -> None:
    there = project(**{"/networks/-": {"name": "train-net-1", "mtu": 1460}})
    found = of_rule(check_preflight(cluster("a3-high"), there, now=NOW), "network.mtu")
    assert [each.pointer for each in found] == ["/networks/1/mtu"]


def test_a_subnet_elsewhere_in_the_project_that_overlaps_a_planned_one_is_a_warning() -> None:
    old = {"name": "old", "network": "old-net", "region": "us-central1", "ipCidrRange": "10.0.0.0/8"}
    found = of_rule(
        check_preflight(cluster("a3-high"), project(**{"/subnetworks/-": old}), now=NOW), "subnet.overlap-elsewhere"
    )
    assert [(each.severity, each.pointer) for each in found] == [("warning", "/subnetworks/0/ipCidrRange")]

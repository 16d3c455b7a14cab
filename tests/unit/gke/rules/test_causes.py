"""One cause is told once: what only follows from it stays out of the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.gke.rules.bundles import (
    GONE,
    NICS,
    POOL,
    Bundle,
    check,
    errors,
    healthy,
    mega,
    of_rule,
    put,
    rdma_nic,
    ultra,
)

SET = "/kubernetes/gkeNetworkParamSets"


@pytest.mark.parametrize(
    ("base", "changes", "told"),
    [
        (
            ultra,
            {
                **{f"{NICS}/{index}": rdma_nic(index) for index in range(8)},
                f"{NICS}/8": {"network": "example-gvnic", "subnetwork": "example-gvnic-sub"},
            },
            {"pool.nic-order"},
        ),
        (ultra, {f"{SET}/3/spec/deviceMode": "NetDevice"}, {"paramset.device-mode"}),
        (
            ultra,
            {f"{NICS}/1": {"network": "example-gvnic", "subnetwork": "example-gvnic-sub"}},
            {"pool.nic-subnet-shared", "paramset.not-in-pool"},
        ),
        (ultra, {f"{NICS}/4": rdma_nic(2)}, {"pool.nic-subnet-shared", "paramset.not-in-pool"}),
        (
            mega,
            {f"{NICS}/3": {"network": "example-net-2", "subnetwork": "example-sub-2"}},
            {"pool.nic-subnet-shared", "paramset.not-in-pool"},
        ),
        (mega, {f"{NICS}/7": GONE}, {"pool.nic-count", "paramset.not-in-pool"}),
        (
            mega,
            {f"{NICS}/-": {"network": "gone", "subnetwork": "gone-sub"}},
            {"pool.nic-count", "pool.nic-network-missing", "pool.nic-subnet-missing", "network-object.missing"},
        ),
        (
            healthy,
            {f"{NICS}/0": {"network": "example-primary", "subnetwork": "example-primary-sub"}},
            {"pool.nic-primary", "paramset.not-in-pool"},
        ),
        (healthy, {f"{SET}/1/spec/vpcSubnet": "example-sub-9"}, {"paramset.subnet-not-found"}),
        (
            healthy,
            {f"{SET}/1/spec/vpcSubnet": "example-sub-3"},
            {"paramset.subnet-of-other-vpc", "paramset.subnet-in-use"},
        ),
        (healthy, {"/kubernetes/networks/1/spec/parametersRef/name": "vpc9"}, {"network-object.params"}),
        (healthy, {"/networks/2": GONE}, {"pool.nic-network-missing"}),
        (healthy, {"/subnetworks/2": GONE}, {"pool.nic-subnet-missing"}),
        (healthy, {"/subnetworks/2/region": "us-east4"}, {"pool.nic-subnet-region"}),
        (healthy, {f"{SET}/1": GONE}, {"network-object.params"}),
        (healthy, {"/kubernetes/networks/1": GONE}, {"network-object.missing"}),
        (
            healthy,
            {
                f"{POOL}/config/machineType": "a3-highgpu-4g",
                f"{POOL}/config/accelerators/0/acceleratorCount": "4",
            },
            {"pool.machine-type"},
        ),
    ],
)
def test_a_fault_gives_the_errors_that_name_it_and_no_others(
    base: Callable[[], Bundle], changes: dict[str, Any], told: set[str]
) -> None:
    assert errors(check(put(base(), changes))) == told


def test_networks_in_another_order_are_one_finding_with_the_first_place_and_their_number() -> None:
    order = (2, 3, 1, 4)
    nics = [{"network": f"example-net-{each}", "subnetwork": f"example-sub-{each}"} for each in order]
    (found,) = of_rule(check(put(healthy(), {NICS: nics})), "pool.nic-order")
    assert found.pointer == f"{NICS}/0"
    assert "3 NICs are in another order" in found.text


def test_the_remedy_names_the_profile_of_the_zone_and_the_family_of_the_objects() -> None:
    (found,) = of_rule(check(put(ultra(), {"/networks/2/networkProfile": GONE})), "network.rdma-profile")
    assert "--network-profile=us-central1-a-vpc-roce" in found.remedy
    (found,) = of_rule(check(put(healthy(), {"/kubernetes/networks/1": GONE})), "network-object.missing")
    assert "--family a3-high" in found.remedy


def test_the_accelerator_of_any_family_makes_a_pool_one_that_is_judged() -> None:
    changes = {"/want": GONE, f"{POOL}/config/machineType": "a3-ultragpu-4g"}
    found = check(put(ultra(), changes))
    assert "pool.machine-type" in errors(found)


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (("alpha", "beta", "gamma", "delta"), False),
        (("gpu-1", "gpu-2", "gpu-3", "gpu-4"), False),
        (("gpu-1", "gpu-3", "gpu-2", "gpu-4"), True),
        (("host", "gpu-1", "gpu-2", "gpu-3"), False),
        (("host", "gpu-2", "gpu-1", "gpu-3"), True),
    ],
)
def test_names_of_objects_tell_an_order_only_where_they_are_numbered(names: tuple[str, ...], wrong: bool) -> None:
    changes: dict[str, Any] = {}
    for index, name in enumerate(names):
        changes[f"/kubernetes/networks/{index}/metadata/name"] = name
        changes[f"/kubernetes/networks/{index}/spec/parametersRef/name"] = name
        changes[f"{SET}/{index}/metadata/name"] = name
    assert errors(check(put(healthy(), changes))) == ({"pool.nic-order"} if wrong else set())

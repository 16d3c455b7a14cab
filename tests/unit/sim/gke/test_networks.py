"""Networks, subnetworks and firewall rules of the simulated compute API."""

from __future__ import annotations

import pytest

from tests.unit.sim.gke.cloud import GLOBAL, REGION, ZONE, Clouded
from tests.unit.sim.gke.judge import recorded, shape

NETWORK = f"{GLOBAL}/networks/example-net-1"
SUBNET = f"{REGION}/subnetworks/example-sub-1"
RULE = f"{GLOBAL}/firewalls/example-internal-1"


@pytest.fixture
def cloud() -> Clouded:
    return Clouded()


def test_a_network_appears_when_its_operation_ends(cloud: Clouded) -> None:
    started = cloud.good("POST", f"{GLOBAL}/networks", {"name": "example-net-1", "mtu": 8244})
    assert (started["status"], started["operationType"]) == ("RUNNING", "insert")
    assert cloud.refused("GET", NETWORK)[:2] == (404, "notFound")
    cloud.wait()
    assert cloud.operation(started)["status"] == "DONE"
    found = cloud.good("GET", NETWORK)
    assert found["mtu"] == 8244
    assert found["id"] == started["targetId"]
    assert found["selfLink"] == started["targetLink"]


def test_resources_have_the_keys_that_were_recorded(cloud: Clouded) -> None:
    cloud.network(routingConfig={"routingMode": "REGIONAL"})
    cloud.subnetwork()
    cloud.firewall()
    for path, name in ((NETWORK, "network"), (SUBNET, "subnetwork"), (RULE, "firewall")):
        assert set(shape(cloud.good("GET", path))) == set(shape(recorded(f"compute-{name}")["body"]))


def test_operations_have_the_keys_that_were_recorded(cloud: Clouded) -> None:
    running = cloud.good("POST", f"{GLOBAL}/networks", {"name": "example-net-1"})
    assert shape(running) == shape(recorded("compute-operation-running")["body"])
    cloud.wait()
    assert shape(cloud.operation(running)) == shape(recorded("compute-operation-done")["body"])
    assert shape(cloud.subnetwork()) == shape(recorded("compute-operation-regional-done")["body"])
    cloud.firewall()
    assert shape(cloud.do("DELETE", RULE)) == shape(recorded("compute-operation-delete-done")["body"])


def test_a_network_without_an_mtu_has_1460(cloud: Clouded) -> None:
    cloud.do("POST", f"{GLOBAL}/networks", {"name": "example-net-1"})
    assert cloud.good("GET", NETWORK)["mtu"] == 1460


def test_a_network_of_the_rdma_profile_has_an_mtu_of_8896(cloud: Clouded) -> None:
    profile = "global/networkProfiles/us-central1-a-vpc-roce"
    cloud.do("POST", f"{GLOBAL}/networks", {"name": "example-net-1", "networkProfile": profile})
    assert cloud.good("GET", NETWORK)["mtu"] == 8896


@pytest.mark.parametrize("mtu", [1299, 8897, 9000])
def test_an_mtu_that_no_network_has_is_refused(cloud: Clouded, mtu: int) -> None:
    code, reason, text = cloud.refused("POST", f"{GLOBAL}/networks", {"name": "example-net-1", "mtu": mtu})
    assert (code, reason) == (400, "invalid")
    assert f"'{mtu}'" in text


def test_a_name_is_taken_from_the_request_on(cloud: Clouded) -> None:
    cloud.good("POST", f"{GLOBAL}/networks", {"name": "example-net-1"})
    assert cloud.refused("POST", f"{GLOBAL}/networks", {"name": "example-net-1"})[:2] == (409, "alreadyExists")
    cloud.wait()
    answer = cloud.ask("POST", f"{GLOBAL}/networks", {"name": "example-net-1"})
    assert answer.body == recorded("compute-error-409-already-exists")["body"]


def test_what_is_still_being_made_cannot_be_referred_to(cloud: Clouded) -> None:
    cloud.good("POST", f"{GLOBAL}/networks", {"name": "example-net-1"})
    body = {"name": "s", "network": "global/networks/example-net-1", "ipCidrRange": "192.168.1.0/24"}
    assert cloud.refused("POST", f"{REGION}/subnetworks", body)[:2] == (400, "resourceNotReady")


def test_a_missing_network_is_404(cloud: Clouded) -> None:
    body = {"name": "s", "network": "global/networks/example-net-1", "ipCidrRange": "192.168.1.0/24"}
    answer = cloud.ask("POST", f"{REGION}/subnetworks", body)
    assert answer.body == recorded("compute-error-404-not-found")["body"]


def test_ranges_of_one_network_do_not_overlap_and_those_of_two_may(cloud: Clouded) -> None:
    cloud.networks(2)
    body = {"name": "other", "network": "global/networks/example-net-1", "ipCidrRange": "192.168.1.0/24"}
    answer = cloud.ask("POST", f"{REGION}/subnetworks", body)
    assert answer.body == recorded("compute-error-400-subnet-overlap")["body"]
    cloud.do("POST", f"{REGION}/subnetworks", body | {"network": "global/networks/example-net-2"})


@pytest.mark.parametrize("text", ["SUBNET_RANGE", "192.168.1.0/99", "192.168.1.1/24", "fd00::/64", ""])
def test_a_range_that_is_none_is_refused(cloud: Clouded, text: str) -> None:
    cloud.network()
    body = {"name": "s", "network": "global/networks/example-net-1", "ipCidrRange": text}
    assert cloud.refused("POST", f"{REGION}/subnetworks", body)[:2] == (400, "invalid")


def test_a_network_in_use_stays_and_its_user_is_named(cloud: Clouded) -> None:
    cloud.network()
    cloud.subnetwork()
    cloud.firewall()
    answer = cloud.ask("DELETE", NETWORK)
    assert shape(answer.body) == shape(recorded("compute-error-400-in-use")["body"])
    assert "firewalls/example-internal-1'" in answer.body["error"]["message"]
    cloud.do("DELETE", RULE)
    assert "subnetworks/example-sub-1'" in cloud.refused("DELETE", NETWORK)[2]
    cloud.do("DELETE", SUBNET)
    cloud.do("DELETE", NETWORK)
    assert cloud.refused("GET", NETWORK)[0] == 404
    assert cloud.world.store.made() == []


def test_a_network_is_in_use_by_what_is_still_being_made(cloud: Clouded) -> None:
    cloud.network()
    body = {"name": "s", "network": "global/networks/example-net-1", "ipCidrRange": "192.168.1.0/24"}
    cloud.good("POST", f"{REGION}/subnetworks", body)
    assert "subnetworks/s'" in cloud.refused("DELETE", NETWORK)[2]


def test_what_is_being_deleted_cannot_be_deleted_again(cloud: Clouded) -> None:
    cloud.network()
    cloud.good("DELETE", NETWORK)
    assert cloud.refused("DELETE", NETWORK)[:2] == (400, "resourceNotReady")
    cloud.wait()
    assert cloud.refused("DELETE", NETWORK)[0] == 404


def test_a_network_lists_its_subnetworks(cloud: Clouded) -> None:
    cloud.network()
    cloud.subnetwork()
    assert cloud.good("GET", NETWORK)["subnetworks"] == [f"https://www.googleapis.com{SUBNET}"]


def test_the_mtu_changes_in_place_and_subnet_mode_does_not(cloud: Clouded) -> None:
    cloud.network()
    cloud.do("PATCH", NETWORK, {"mtu": 1460, "routingConfig": {"routingMode": "GLOBAL"}})
    found = cloud.good("GET", NETWORK)
    assert (found["mtu"], found["routingConfig"]["routingMode"]) == (1460, "GLOBAL")
    assert found["routingConfig"]["bgpBestPathSelectionMode"] == "LEGACY"
    assert cloud.refused("PATCH", NETWORK, {"autoCreateSubnetworks": True})[0] == 400
    assert cloud.refused("PATCH", NETWORK, {"mtu": 9000})[0] == 400


def test_private_access_of_a_subnetwork_changes_in_place(cloud: Clouded) -> None:
    cloud.network()
    cloud.subnetwork()
    before = cloud.good("GET", SUBNET)
    done = cloud.do("POST", f"{SUBNET}/setPrivateIpGoogleAccess", {"privateIpGoogleAccess": True})
    assert done["operationType"] == "setPrivateIpGoogleAccess"
    after = cloud.good("GET", SUBNET)
    assert after["privateIpGoogleAccess"]
    assert after["fingerprint"] != before["fingerprint"]


def test_a_subnetwork_is_patched_with_the_fingerprint_that_was_read(cloud: Clouded) -> None:
    cloud.network()
    cloud.subnetwork()
    ranges = [{"rangeName": "pods", "ipCidrRange": "10.8.0.0/16"}]
    stale = {"fingerprint": "AAAAAAAAAAA=", "secondaryIpRanges": ranges}
    assert cloud.refused("PATCH", SUBNET, stale)[:2] == (412, "conditionNotMet")
    fresh = stale | {"fingerprint": cloud.good("GET", SUBNET)["fingerprint"]}
    cloud.do("PATCH", SUBNET, fresh)
    assert cloud.good("GET", SUBNET)["secondaryIpRanges"] == ranges


def test_a_firewall_rule_is_patched_and_replaced(cloud: Clouded) -> None:
    cloud.networks(2)
    cloud.firewall()
    assert "resource.name" in cloud.refused("PATCH", RULE, {"priority": 900})[2]
    cloud.do("PATCH", RULE, {"name": "example-internal-1", "priority": 900})
    assert cloud.good("GET", RULE)["priority"] == 900
    other = {"name": "example-internal-1", "network": f"https://www.googleapis.com{GLOBAL}/networks/example-net-2"}
    assert cloud.refused("PATCH", RULE, other)[0] == 400
    udp = {"name": "example-internal-1", "network": "global/networks/example-net-1", "allowed": [{"IPProtocol": "udp"}]}
    cloud.do("PUT", RULE, udp)
    found = cloud.good("GET", RULE)
    assert (found["priority"], found["allowed"]) == (1000, [{"IPProtocol": "udp"}])


def test_a_rule_without_a_source_is_open_to_all(cloud: Clouded) -> None:
    cloud.network()
    cloud.firewall(sourceRanges=[])
    assert cloud.good("GET", RULE)["sourceRanges"] == ["0.0.0.0/0"]


def test_an_unknown_place_is_named(cloud: Clouded) -> None:
    path = REGION.replace("us-central1", "mars-north1")
    body = {"name": "s", "network": "global/networks/default", "ipCidrRange": "192.168.1.0/24"}
    assert "mars-north1" in cloud.refused("POST", f"{path}/subnetworks", body)[2]
    assert cloud.refused("GET", path)[0] == 404
    assert cloud.refused("GET", ZONE.replace("us-central1-a", "us-central1-z"))[0] == 404


def test_a_range_is_taken_from_the_request_on(cloud: Clouded) -> None:
    cloud.network()
    body = {"network": "global/networks/example-net-1", "ipCidrRange": "192.168.1.0/24"}
    cloud.good("POST", f"{REGION}/subnetworks", body | {"name": "one"})
    assert "conflicts" in cloud.refused("POST", f"{REGION}/subnetworks", body | {"name": "two"})[2]


def test_what_is_being_changed_is_not_changed_again(cloud: Clouded) -> None:
    cloud.network()
    cloud.good("PATCH", NETWORK, {"mtu": 1460})
    assert cloud.refused("PATCH", NETWORK, {"mtu": 1500})[:2] == (400, "resourceNotReady")
    assert cloud.refused("DELETE", NETWORK)[:2] == (400, "resourceNotReady")
    cloud.wait()
    cloud.do("PATCH", NETWORK, {"mtu": 1500})

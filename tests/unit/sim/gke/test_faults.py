"""Faults of the simulated cloud: each strikes what it matches, as often as was said, and looks like the real one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.sim.gke.faults import ANSWERS, Fault, Faults, Kind
from tests.unit.sim.gke.cloud import CLUSTER, CLUSTERS, GLOBAL, ZONE, Clouded, cluster_body
from tests.unit.sim.gke.judge import recorded, shape
from tests.unit.sim.gke.served import ERROR_KEYS

NETWORK = {"name": "example-net-1"}


@pytest.fixture
def cloud() -> Clouded:
    return Clouded()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind.PERMISSION_DENIED, "403-permission"),
        (Kind.API_DISABLED, "403-service-disabled"),
        (Kind.QUOTA, "403-quota"),
        (Kind.NOT_FOUND, "404-not-found"),
        (Kind.ALREADY_EXISTS, "409-already-exists"),
        (Kind.ORG_POLICY, "412-org-policy"),
        (Kind.RATE_LIMIT, "429-rate-limit"),
        (Kind.UNAVAILABLE, "503-backend"),
        (Kind.IN_USE, "400-in-use"),
    ],
)
def test_an_injected_answer_of_compute_is_the_recorded_one(cloud: Clouded, kind: Kind, name: str) -> None:
    cloud.world.faults.add(kind, r"POST .*/networks$")
    answer = cloud.ask("POST", f"{GLOBAL}/networks", NETWORK)
    wanted = recorded(f"compute-error-{name}")
    assert (answer.status, answer.body) == (wanted["http_status"], wanted["body"])
    cloud.network()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind.PERMISSION_DENIED, "403-permission"),
        (Kind.API_DISABLED, "403-service-disabled"),
        (Kind.QUOTA, "403-quota"),
        (Kind.NOT_FOUND, "404-not-found"),
        (Kind.ALREADY_EXISTS, "409-already-exists"),
        (Kind.UNAVAILABLE, "503-unavailable"),
        (Kind.HAS_OPERATION, "400-has-operation"),
        (Kind.TOO_MANY_OPERATIONS, "429-concurrent-operations"),
    ],
)
def test_an_injected_answer_of_container_is_the_recorded_one(cloud: Clouded, kind: Kind, name: str) -> None:
    cloud.world.faults.add(kind, r"POST .*/clusters$")
    answer = cloud.ask("POST", CLUSTERS, {"cluster": cluster_body()})
    wanted = recorded(f"container-error-{name}")
    assert (answer.status, shape(answer.body)) == (wanted["http_status"], shape(wanted["body"]))
    assert answer.body["error"].get("status") == wanted["body"]["error"].get("status")
    assert answer.body["error"]["errors"][0]["reason"] == wanted["body"]["error"]["errors"][0]["reason"]


@pytest.mark.parametrize("kind", sorted(ANSWERS - {Kind.DROPPED_BEFORE, Kind.NOT_JSON}))
@pytest.mark.parametrize("path", [f"{GLOBAL}/networks", CLUSTERS, "/v1/projects/example-project/services"])
def test_each_injected_answer_has_the_keys_of_its_service(cloud: Clouded, kind: Kind, path: str) -> None:
    cloud.world.faults.add(kind, "GET ")
    answer = cloud.ask("GET", path)
    assert answer.status == answer.body["error"]["code"] >= 400
    needed, allowed = ERROR_KEYS.get(answer.service, ({"code", "message", "status"}, {"details"}))
    assert needed <= set(answer.body["error"]) <= needed | allowed
    assert cloud.ask("GET", path).status == 200


def test_retry_after_is_sent_when_it_is_given(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.RATE_LIMIT, retry_after=7)
    assert cloud.ask("POST", f"{GLOBAL}/networks", NETWORK).headers["Retry-After"] == "7"


def test_an_answer_that_is_no_json(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.NOT_JSON, "GET ")
    answer = cloud.ask("GET", f"{GLOBAL}/networks")
    assert answer.status == 502
    assert "simulated" in (answer.text or "")


def test_the_quota_of_networks_is_noticed_at_the_end_and_nothing_is_left(cloud: Clouded) -> None:
    cloud.world.catalog.global_quotas["NETWORKS"] = 2
    cloud.network()
    done = cloud.network("example-net-2")
    wanted = recorded("compute-operation-quota-at-completion")["body"]
    assert shape(done) == shape(wanted)
    assert done["error"]["errors"][0]["message"] == "Quota 'NETWORKS' exceeded.  Limit: 2.0 globally."
    assert cloud.refused("GET", f"{GLOBAL}/networks/example-net-2")[0] == 404
    cloud.world.catalog.global_quotas["NETWORKS"] = 3
    cloud.network("example-net-2")


def test_that_quota_can_be_exceeded_by_a_fault(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.QUOTA_AT_COMPLETION, r"POST .*/firewalls$")
    cloud.network()
    assert cloud.firewall()["error"]["errors"][0]["code"] == "QUOTA_EXCEEDED"
    assert cloud.refused("GET", f"{GLOBAL}/firewalls/example-internal-1")[0] == 404
    cloud.firewall()


def test_a_reservation_can_be_out_of_stock(cloud: Clouded) -> None:
    specific = {"count": "2", "instanceProperties": {"machineType": "a3-highgpu-8g"}}
    body = {"name": "kept", "specificReservation": specific}
    cloud.world.faults.add(Kind.STOCKOUT, r"POST .*/reservations$")
    assert shape(cloud.do("POST", f"{ZONE}/reservations", body)) == shape(
        recorded("compute-operation-stockout")["body"]
    )
    assert shape(cloud.do("POST", f"{ZONE}/reservations", body)) == shape(
        recorded("compute-operation-zonal-done")["body"]
    )


def test_other_quotas_are_noticed_at_once(cloud: Clouded) -> None:
    cloud.network()
    cloud.world.catalog.global_quotas["FIREWALLS"] = 5
    cloud.firewall()
    answer = cloud.ask(
        "POST",
        f"{GLOBAL}/firewalls",
        {"name": "more", "network": "global/networks/example-net-1", "denied": [{"IPProtocol": "all"}]},
    )
    assert answer.status == 403
    assert shape(answer.body) == shape(recorded("compute-error-403-quota")["body"])


def test_an_api_that_is_off_refuses_until_it_is_enabled(cloud: Clouded) -> None:
    cloud.world.disabled.add("container")
    answer = cloud.ask("GET", CLUSTERS)
    assert answer.body == recorded("container-error-403-service-disabled")["body"]
    service = "/v1/projects/example-project/services/container.googleapis.com"
    assert cloud.good("GET", service)["state"] == "DISABLED"
    assert cloud.good("POST", f"{service}:enable", {})["done"]
    assert cloud.good("GET", service) == recorded("serviceusage-enabled")["body"]
    assert cloud.good("GET", CLUSTERS) == {}


def test_leftover_firewall_rules_block_their_network(cloud: Clouded) -> None:
    cloud.world.faults.add(Kind.LEFTOVER_FIREWALLS)
    cloud.world.faults.active[0].match = "DELETE .*/clusters/"
    cloud.network()
    cloud.subnetwork()
    cloud.cluster(network="example-net-1", subnetwork="example-sub-1")
    cloud.do("DELETE", CLUSTER)
    text = cloud.refused("DELETE", f"{GLOBAL}/networks/example-net-1")[2]
    assert "firewalls/gke-example-cluster-" in text


def test_a_cluster_can_be_enrolled_before_its_pools_are_checked(cloud: Clouded) -> None:
    pool = {"name": "default-pool", "initialNodeCount": 1, "management": {"autoUpgrade": False}}
    cloud.world.faults.add(Kind.ENROLLED, r"POST .*/clusters$")
    answer = cloud.ask("POST", CLUSTERS, {"cluster": cluster_body(nodePools=[pool])})
    assert answer.body == recorded("container-error-400-autoupgrade-channel")["body"]


def test_a_fault_lets_some_pass_strikes_some_and_is_over() -> None:
    faults = Faults()
    fault = faults.add(Kind.UNAVAILABLE, "GET /a", times=2, after=1)
    line = ["GET /a", "GET /b", "GET /a", "GET /a", "GET /a"]
    struck = [faults.striking(each, ANSWERS) is not None for each in line]
    assert struck == [False, False, True, True, False]
    assert fault.struck == 2


def test_without_a_pattern_a_fault_strikes_changes_alone() -> None:
    fault = Fault(kind=Kind.UNAVAILABLE, times=None)
    assert not fault.strikes("GET /compute/v1/projects/p/global/networks")
    assert not fault.strikes("POST /compute/v1/projects/p/global/operations/o/wait")
    assert fault.strikes("POST /compute/v1/projects/p/global/networks")
    assert fault.strikes("DELETE /compute/v1/projects/p/global/networks/n")


def test_a_fault_is_read_from_text() -> None:
    fault = Fault.parse("rate-limit@POST .*/networks$,times=3,after=1,retry-after=0.5")
    assert (fault.kind, fault.match, fault.times, fault.after, fault.retry_after) == (
        Kind.RATE_LIMIT,
        "POST .*/networks$",
        3,
        1,
        0.5,
    )
    assert Fault.parse("stockout").times == 1
    assert Fault.parse("unavailable,times=0").times is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flood", "known are"),
        ("stuck@(", "no regular expression"),
        ("stuck,times=x", "times=N"),
        ("stuck,often=1", "times=N"),
    ],
)
def test_a_fault_that_is_none_is_explained(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Fault.parse(text)


@given(st.text(max_size=40))
def test_reading_a_fault_raises_nothing_but_value_errors(text: str) -> None:
    try:
        fault = Fault.parse(text)
    except ValueError:
        return
    assert text.startswith(fault.kind)

"""The pure parts: fabric verdict, demand of a claim, gate, orders, peers, standing, slices."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.api.meta import ObjectMeta
from interlace.api.resource import ResourceClaim, ResourcePool, ResourceSlice, ResourceSliceSpec
from interlace.imex.order import SENTINEL, State
from interlace.imex.reasons import ImexError
from interlace.node.demand import DeviceRef, demand
from interlace.node.errors import Reason, Refusal
from interlace.node.fabric import NO_FABRIC, Fabric, judge
from interlace.node.facts import ZERO_UUID, FabricHealth, FabricState, GpuFabric
from interlace.node.gate import Closed, Open, View, gate
from interlace.node.membership import Membership, Row
from interlace.node.offer import devices
from interlace.node.orders import order, wanted_imex
from interlace.node.peers import Watched, due_at, observe, verdict
from interlace.node.slices import remember_clique, slice_name
from interlace.node.standing import Standing, Verdict, body, reported
from tests.unit.node.parts import (
    CLIQUE,
    CLUSTER,
    DOMAIN,
    NODE,
    OTHER,
    a_claim,
    a_membership,
    configuration,
    parameters,
    ref,
)


def gpu(number: int = 0, **more: Any) -> GpuFabric:
    values: dict[str, Any] = {
        "uuid": f"GPU-{number}",
        "product": "NVIDIA GB200",
        "state": FabricState.COMPLETED,
        "cluster_uuid": CLUSTER,
        "clique": 3,
        **more,
    }
    return GpuFabric(**values)


# ---- fabric


def test_gpus_that_agree_make_a_clique() -> None:
    assert judge([gpu(n) for n in range(4)]) == Fabric(clique=CLIQUE)


def test_gpus_without_a_fabric_are_a_healthy_node_without_one() -> None:
    assert judge([gpu(state=FabricState.NOT_SUPPORTED, cluster_uuid=ZERO_UUID)]) == NO_FABRIC
    assert judge([]) == NO_FABRIC


@pytest.mark.parametrize("product", ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA B200", "NVIDIA A100-SXM4-80GB"])
@pytest.mark.parametrize("state", [FabricState.COMPLETED, FabricState.IN_PROGRESS])
def test_a_zero_uuid_on_a_board_whose_nvlink_ends_in_the_machine_is_no_fabric(product: str, state: FabricState) -> None:
    assert judge([gpu(product=product, cluster_uuid=ZERO_UUID, state=state)]) == NO_FABRIC


@pytest.mark.parametrize("product", ["NVIDIA GB200", "NVIDIA GB300", ""])
def test_a_zero_uuid_anywhere_else_is_a_fault(product: str) -> None:
    found = judge([gpu(product=product, cluster_uuid=ZERO_UUID)])
    assert (found.healthy, found.reason) == (False, "FabricUuidZero")
    assert "GPU-0" in found.message


@pytest.mark.parametrize("state", [FabricState.IN_PROGRESS, FabricState.NOT_STARTED])
def test_a_fabric_in_progress_is_unhealthy_and_read_again_soon(state: FabricState) -> None:
    found = judge([gpu(0), gpu(1, state=state, cluster_uuid=ZERO_UUID)])
    assert (found.healthy, found.settled, found.reason, found.clique) == (False, False, "FabricInProgress", CLIQUE)


def test_a_bad_status_is_unhealthy_and_names_gpu_and_number() -> None:
    found = judge([gpu(0), gpu(1, status=999)])
    assert (found.healthy, found.reason, found.clique) == (False, "FabricStatus", CLIQUE)
    assert "GPU-1" in found.message
    assert "999" in found.message


def test_a_fault_that_needs_a_person_is_named_before_one_that_passes() -> None:
    assert judge([gpu(0, state=FabricState.IN_PROGRESS), gpu(1, status=5)]).reason == "FabricStatus"


def test_gpus_of_one_tray_that_disagree_are_unhealthy() -> None:
    found = judge([gpu(0), gpu(1, clique=4)])
    assert (found.healthy, found.reason, found.clique) == (False, "GpusDisagree", "")
    assert f"{CLUSTER}.4" in found.message


def test_one_gpu_outside_the_fabric_is_a_disagreement() -> None:
    assert judge([gpu(0), gpu(1, state=FabricState.NOT_SUPPORTED)]).reason == "GpusDisagree"


def test_a_driver_that_calls_the_fabric_unhealthy_is_believed() -> None:
    assert judge([gpu(health=FabricHealth.UNHEALTHY)]).reason == "FabricUnhealthy"
    assert judge([gpu(health=FabricHealth.LIMITED_CAPACITY)]).healthy


gpus = st.lists(
    st.builds(
        GpuFabric,
        uuid=st.text(max_size=5),
        product=st.sampled_from(["NVIDIA GB200", "NVIDIA B200", ""]),
        state=st.sampled_from(FabricState),
        status=st.integers(-3, 3),
        cluster_uuid=st.sampled_from([CLUSTER, ZERO_UUID]),
        clique=st.integers(0, 2),
        health=st.sampled_from(FabricHealth),
    ),
    max_size=5,
)


@given(gpus)
def test_any_gpus_give_a_verdict_and_a_bad_one_has_a_reason(found: list[GpuFabric]) -> None:
    fabric = judge(found)
    assert fabric.healthy == (not fabric.reason) == (not fabric.message)
    assert fabric.settled or not fabric.healthy
    assert judge(list(reversed(found))).healthy == fabric.healthy
    assert len(fabric.reason) <= 64


# ---- demand


def test_a_good_claim_is_read_whole() -> None:
    found = demand(ref(), a_claim(allocationMode="All"), node=NODE)
    assert (found.domain, found.all_channels) == (DOMAIN, True)
    assert found.devices == (DeviceRef(request="channel", pool=NODE, device="channel-0"),)
    assert [(pod.kind, pod.namespace, pod.name) for pod in found.pods] == [("Pod", "team", "pod-1")]


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (a_claim(node="another"), Reason.NOT_ALLOCATED),
        (a_claim(device="daemon-0"), Reason.UNKNOWN_DEVICE),
        (a_claim(config=[]), Reason.BAD_CONFIG),
        (a_claim(labels={}), Reason.NO_DOMAIN_LABEL),
        (a_claim(labels={"resource.nvidia.com/computeDomain": OTHER}), Reason.NO_DOMAIN_LABEL),
        (a_claim(2), Reason.CLAIM_REPLACED),
        (ResourceClaim(metadata=ObjectMeta(name="worker-1", namespace="team", uid="uid-1")), Reason.NOT_ALLOCATED),
    ],
)
def test_what_is_wrong_with_a_claim_is_permanent_and_names_it(claim: ResourceClaim, reason: Reason) -> None:
    with pytest.raises(Refusal, match=r"^ResourceClaim team/worker-1: ") as caught:
        demand(ref(), claim, node=NODE)
    assert (caught.value.reason, caught.value.permanent) == (reason, True)


def test_a_config_of_the_claim_wins_over_one_of_the_class_wherever_it_stands() -> None:
    config = [configuration(parameters(DOMAIN)), configuration(parameters(OTHER), source="FromClass")]
    assert demand(ref(), a_claim(config=config), node=NODE).domain == DOMAIN


def test_a_later_config_wins_over_an_earlier_one_and_only_for_its_requests() -> None:
    config = [
        configuration(parameters(OTHER)),
        configuration(parameters(DOMAIN), requests=["channel"]),
        configuration(parameters(OTHER), requests=["something-else"]),
    ]
    assert demand(ref(), a_claim(config=config), node=NODE).domain == DOMAIN


# ---- gate


def view(**more: Any) -> View:
    values: dict[str, Any] = {
        "node": NODE,
        "fabric": Fabric(clique=CLIQUE),
        "synced": True,
        "memberships": {DOMAIN: a_membership(index=2)},
        "prepared": [],
        "host": State(domain=DOMAIN, index=2, phase="Ready"),
        **more,
    }
    return View(**values)


def closed(**more: Any) -> Reason:
    found = gate(demand(ref(), a_claim(), node=NODE), view(**more))
    assert isinstance(found, Closed)
    assert found.message
    return found.reason


def test_the_gate_opens_for_the_own_domain_at_the_own_index() -> None:
    assert gate(demand(ref(), a_claim(), node=NODE), view()) == Open(index=2)
    assert gate(demand(ref(), a_claim(), node=NODE), view(fabric=NO_FABRIC, host=None)) == Open(index=-1)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ({"fabric": Fabric(healthy=False, reason="x", message="y")}, Reason.FABRIC_UNHEALTHY),
        ({"memberships": {}}, Reason.NOT_A_MEMBER_YET),
        ({"memberships": {}, "synced": False}, Reason.NOT_A_MEMBER_YET),
        ({"memberships": {DOMAIN: a_membership(index=None)}}, Reason.NOT_A_MEMBER_YET),
        ({"memberships": {DOMAIN: a_membership(namespace="elsewhere")}}, Reason.WRONG_NAMESPACE),
        ({"host": None}, Reason.IMEX_HOST_UNREACHABLE),
        ({"host": State(domain=OTHER, index=2, phase="Ready")}, Reason.IMEX_STARTING),
        ({"host": State(domain=DOMAIN, index=1, phase="Ready")}, Reason.IMEX_STARTING),
        ({"host": State(domain=DOMAIN, index=2, phase="Starting")}, Reason.IMEX_STARTING),
        ({"host": State(domain=DOMAIN, index=2, phase="Failed")}, Reason.IMEX_FAILED),
        ({"order_fault": "index 3 stands there twice"}, Reason.IMEX_FAILED),
    ],
)
def test_the_gate_says_why_it_is_closed(what: dict[str, Any], reason: Reason) -> None:
    assert closed(**what) is reason


# ---- orders


def test_a_domain_with_prepared_claims_is_served_whatever_the_rows_say() -> None:
    rows = {OTHER: a_membership(OTHER)}
    assert wanted_imex(rows, prepared=[DOMAIN], waiting=[OTHER], running=OTHER) == DOMAIN


def test_a_claim_that_kubelet_waits_for_comes_before_what_runs() -> None:
    rows = {DOMAIN: a_membership(), OTHER: a_membership(OTHER)}
    assert wanted_imex(rows, prepared=[], waiting=[OTHER], running=DOMAIN) == OTHER
    assert wanted_imex(rows, prepared=[], waiting=[], running=OTHER) == OTHER


def test_of_two_rows_the_older_clique_is_served() -> None:
    rows = {DOMAIN: a_membership(created="2026-01-02"), OTHER: a_membership(OTHER, created="2026-01-01")}
    assert wanted_imex(rows, prepared=[], waiting=[], running="") == OTHER


def test_without_row_and_claim_nothing_is_served() -> None:
    rows = {DOMAIN: a_membership(index=None)}
    assert wanted_imex(rows, prepared=[], waiting=[DOMAIN], running=DOMAIN) == ""


def test_an_order_has_all_slots_and_the_address_of_each_row() -> None:
    made = order([a_membership(index=5, others=2)], imex=DOMAIN, slots=18)
    assert made is not None
    assert made.index == 5
    assert [address != SENTINEL for address in made.addresses] == [n in {0, 1, 5} for n in range(18)]
    assert order([a_membership(index=None)], imex=DOMAIN, slots=18) is None


def test_rows_that_are_no_map_are_said_and_not_sent() -> None:
    rows = (Row(node="a", index=1, address="10.0.0.1"), Row(node=NODE, index=1, address="10.0.0.2"))
    broken = Membership(domain=DOMAIN, name="", namespace="", created="", rows=rows, own=rows[1])
    with pytest.raises(ImexError, match="twice"):
        order([broken], imex=DOMAIN, slots=18)


# ---- peers


def ready(peers: str = "Connected", disconnected: list[int] | None = None) -> State:
    return State(domain=DOMAIN, index=0, phase="Ready", peers=peers, disconnected=disconnected or [])  # type: ignore[arg-type]


def test_a_peer_that_is_away_while_the_domain_forms_is_not_told_at_once() -> None:
    watched = observe(Watched(), ready("Disconnected", [1]), now=100.0)
    assert due_at(watched, grace=4, first_grace=8) == 108.0
    watched = observe(watched, ready("Connected"), now=101.0)
    assert due_at(watched, grace=4, first_grace=8) is None


def test_a_peer_that_goes_later_is_told_after_the_short_grace() -> None:
    watched = observe(Watched(), ready(), now=100.0)
    watched = observe(watched, ready("Disconnected", [1]), now=150.0)
    assert due_at(observe(watched, ready("Disconnected", [1]), now=152.0), grace=4, first_grace=8) == 154.0


def test_a_restart_of_imex_begins_anew() -> None:
    watched = observe(Watched(), ready(), now=100.0)
    watched = observe(watched, State(domain=DOMAIN, index=0, phase="Starting"), now=110.0)
    watched = observe(watched, ready("Disconnected", [1]), now=111.0)
    assert due_at(watched, grace=4, first_grace=8) == 118.0
    assert observe(watched, None, now=120.0) == watched


def test_an_absence_names_both_nodes() -> None:
    found = verdict(ready("Disconnected", [1]), a_membership(others=2), said=None, tell=True)
    assert found is not None
    assert not found.good
    assert NODE in found.message
    assert "other-1" in found.message
    assert "other-2" not in found.message
    assert verdict(ready("Disconnected", [1]), a_membership(), said=None, tell=False) is None


def test_only_the_lowest_index_says_that_all_is_well_or_who_said_otherwise() -> None:
    lowest, higher = a_membership(index=0), a_membership(index=3)
    own_false = Verdict(good=False, reason="Disconnected", message="x")
    assert verdict(ready(), higher, said=None, tell=False) is None
    for member, said in ((lowest, None), (higher, own_false)):
        found = verdict(ready(), member, said=said, tell=False)
        assert found is not None
        assert found.good


def test_what_is_not_known_changes_nothing() -> None:
    said = Verdict(good=False, reason="Disconnected", message="x")
    assert verdict(None, a_membership(), said=said, tell=True) is said
    assert verdict(ready("Unknown"), a_membership(), said=said, tell=True) is said
    assert verdict(ready(), None, said=said, tell=True) is said


# ---- standing


def test_the_apply_body_holds_the_status_alone_and_reads_back() -> None:
    standing = Standing(
        claim=ref(),
        devices=(DeviceRef(request="channel", pool=NODE, device="channel-0"),),
        domain=DOMAIN,
        clique=CLIQUE,
        index=3,
        ready=Verdict(good=True, reason="Prepared", message="m"),
        peers=Verdict(good=False, reason="Disconnected", message="n"),
    )
    since = {"Ready": "2026-01-01T00:00:00Z", "PeersConnected": "2026-01-02T00:00:00Z"}
    made = body(standing, since=since)
    assert set(made) == {"apiVersion", "kind", "metadata", "status"}
    assert set(made["status"]) == {"devices"}
    assert made["metadata"] == {"name": "worker-1", "namespace": "team", "uid": "uid-1"}
    import msgspec

    claim = msgspec.json.decode(msgspec.json.encode(made), type=ResourceClaim)
    assert reported(claim) == {kind: (found, since[kind]) for kind, found in standing.conditions.items()}


# ---- slices


def test_a_healthy_node_offers_one_channel() -> None:
    [device] = devices(Fabric(clique=CLIQUE))
    found = {
        name: attribute.string if attribute.int_ is None else attribute.int_
        for name, attribute in device.attributes.items()
    }
    assert (device.name, found) == ("channel-0", {"type": "channel", "id": 0, "clique": CLIQUE, "domain": ""})
    assert devices(NO_FABRIC)[0].attributes["clique"].string == ""


def test_an_unhealthy_node_offers_a_device_that_no_class_selects_with_the_reason() -> None:
    [device] = devices(Fabric(healthy=False, clique=CLIQUE, reason="FabricStatus", message="x"))
    assert device.attributes["type"].string == "channel-unhealthy"
    assert device.attributes["reason"].string == "FabricStatus"
    assert device.attributes["clique"].string == CLIQUE


def test_a_clique_that_is_not_known_is_left_out_unless_the_slice_names_it() -> None:
    unknown = Fabric(healthy=False, reason="FactsUnreadable", message="x")
    assert "clique" not in devices(unknown)[0].attributes
    published = ResourceSlice(
        spec=ResourceSliceSpec(
            driver="d",
            pool=ResourcePool(name=NODE, generation=1, resource_slice_count=1),
            devices=devices(Fabric(clique=CLIQUE)),
        )
    )
    assert remember_clique(unknown, published).clique == CLIQUE
    assert remember_clique(NO_FABRIC, published) is NO_FABRIC


@given(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True))
def test_a_slice_name_fits(node: str) -> None:
    name = slice_name(node)
    assert len(name) <= 253
    assert name.endswith("-compute-domain.nvidia.com")

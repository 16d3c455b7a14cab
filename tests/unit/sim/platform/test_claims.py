"""Claims of pods: made once, bytes kept, used by those who may, freed when nobody runs any more."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlace.sim.platform.claims import POD_CLAIM, made_for, make_claim, unmet, upkeep
from interlace.sim.platform.devicekinds import Allocation, ResourceClaim, ResourceClaimTemplate
from interlace.sim.platform.kinds import Pod
from interlace.sim.platform.scheduling.consumption import (
    FINALIZER,
    Waiting,
    consider,
    movable,
    protected,
    reserved,
    unreserved,
)
from interlace.sim.platform.scheduling.devices import Unsatisfiable
from tests.unit.sim.platform.objects import allocation, claim, pod

FROM_TEMPLATE = [{"name": "cd-0", "resourceClaimTemplateName": "t"}]
BY_NAME = [{"name": "cd-0", "resourceClaimName": "c"}]


def use(owner: Pod, *claims: ResourceClaim, busy: bool = False) -> Any:
    known = {entry.metadata.name: entry for entry in claims}
    return consider(owner, known.get, lambda _uid: busy)


def test_a_pod_needs_a_claim_for_each_template_that_has_none_yet() -> None:
    both = [*FROM_TEMPLATE, {"name": "cd-1", "resourceClaimTemplateName": "t"}, {"name": "x", "resourceClaimName": "y"}]
    assert [entry.name for entry in unmet(pod(resourceClaims=both))] == ["cd-0", "cd-1"]
    assert [entry.name for entry in unmet(pod(resourceClaims=both, claim_statuses={"cd-0": "c"}))] == ["cd-1"]


@pytest.mark.parametrize("end", [{"phase": "Failed"}, {"terminating": True}])
def test_a_pod_that_ends_needs_no_claims(end: dict[str, Any]) -> None:
    assert unmet(pod(resourceClaims=FROM_TEMPLATE, **end)) == []


def test_a_claim_is_made_with_the_templates_bytes_and_metadata() -> None:
    template = msgspec.json.decode(
        b'{"metadata":{"name":"t"},"spec":{"metadata":{"labels":{"l":"1"},"annotations":{"a":"2"}},'
        b'"spec":{"devices":{"config":[{"opaque":{"parameters":{"z":1, "a" : 2}}}]}}}}',
        type=ResourceClaimTemplate,
    )
    body = make_claim(pod("p"), "cd-0", template)
    assert body["metadata"] == {
        "generateName": "p-cd-0-",
        "namespace": "default",
        "annotations": {"a": "2", POD_CLAIM: "cd-0"},
        "labels": {"l": "1"},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "p",
                "uid": "uid-p",
                "controller": True,
            }
        ],
    }
    assert msgspec.json.encode(body["spec"]) == b'{"devices":{"config":[{"opaque":{"parameters":{"z":1, "a" : 2}}}]}}'


def test_a_claim_that_was_made_earlier_is_found_again() -> None:
    owner = pod("p")
    claims = [claim("other", owner=pod("q")), claim("dying", owner=owner, terminating=True), claim("mine", owner=owner)]
    assert made_for(owner, "cd-0", claims) == "mine"
    assert made_for(owner, "cd-1", claims) is None


def test_a_pod_waits_until_its_claims_are_there() -> None:
    with pytest.raises(Waiting, match="'cd-0' to be created"):
        use(pod(resourceClaims=FROM_TEMPLATE))
    with pytest.raises(Waiting, match='"c", which was not found'):
        use(pod(resourceClaims=FROM_TEMPLATE, claim_statuses={"cd-0": "c"}))
    with pytest.raises(Waiting, match="is being allocated"):
        use(pod(resourceClaims=BY_NAME), claim(), busy=True)


def test_a_pod_cannot_use_a_claim_that_was_made_for_another() -> None:
    thief = pod("thief", resourceClaims=FROM_TEMPLATE, claim_statuses={"cd-0": "c"})
    with pytest.raises(Unsatisfiable, match="was not created for pod default/thief"):
        use(thief, claim(owner=pod("p")))
    with pytest.raises(Unsatisfiable, match="is being deleted"):
        use(pod(resourceClaims=BY_NAME), claim(terminating=True))


def test_a_claim_has_no_more_than_its_limit_of_consumers() -> None:
    crowd = [pod(f"p{i}") for i in range(256)]
    full = claim(reserved=crowd, allocation=allocation())
    with pytest.raises(Unsatisfiable, match="in use by 256 pods"):
        use(pod("new", resourceClaims=BY_NAME), full)
    assert use(pod("p7", resourceClaims=BY_NAME), full).demand.wanted == ()


def test_an_allocated_claim_pins_the_pod_and_wants_no_device() -> None:
    found = use(pod(resourceClaims=BY_NAME), claim(allocation=allocation("n7")))
    assert found.demand.wanted == ()
    assert found.demand.pinned[0].node_selector_terms[0].match_fields[0].values == ["n7"]


def test_a_claim_that_two_entries_name_is_wanted_once() -> None:
    twice = [*BY_NAME, {"name": "cd-1", "resourceClaimName": "c"}]
    assert [wish.name for wish in use(pod(resourceClaims=twice), claim()).demand.wanted] == ["c"]


def test_reserving_writes_allocation_and_consumer_and_nothing_else() -> None:
    before = claim(finalizers=["other"])
    after = reserved(protected(before), pod("p"), msgspec.convert(allocation("n"), Allocation))
    assert after.metadata.finalizers == ["other", FINALIZER]
    assert bytes(after.spec) == bytes(before.spec)
    assert [entry.uid for entry in after.status.reserved_for] == ["uid-p"]
    assert msgspec.json.decode(after.status.allocation, type=Allocation) == msgspec.convert(allocation("n"), Allocation)


def test_an_allocation_that_is_there_keeps_its_bytes() -> None:
    before = msgspec.json.decode(b'{"status":{"allocation":{ "devices" :{}}}}', type=ResourceClaim)
    after = reserved(before, pod("p"), msgspec.convert(allocation("n"), Allocation))
    assert bytes(after.status.allocation) == b'{ "devices" :{}}'
    assert [entry.uid for entry in unreserved(after, "uid-p").status.reserved_for] == []


def test_only_a_claim_of_nobody_else_may_be_allocated_anew() -> None:
    mine, shared = (
        claim(allocation=allocation(), reserved=[pod("p")]),
        claim(allocation=allocation(), reserved=[pod("q")]),
    )
    assert movable([claim(), shared, mine], "uid-p") is mine
    assert movable([claim(), shared], "uid-p") is None


def held(*users: Pod, **fields: Any) -> ResourceClaim:
    return claim(reserved=users, allocation=allocation(), finalizers=[FINALIZER], **fields)


def kept(found: ResourceClaim, *pods: Pod) -> Any:
    known = {entry.metadata.name: entry for entry in pods}
    return upkeep(found, known.get)


def test_a_claim_in_use_is_left_alone() -> None:
    user = pod("p", node="n", phase="Running")
    todo = kept(held(user, owner=user), user)
    assert (todo.status, todo.release, todo.delete) == (None, False, False)


def test_a_pod_that_is_being_deleted_on_its_node_still_holds_its_claim() -> None:
    user = pod("p", node="n", terminating=True)
    assert kept(held(user), user).status is None


@pytest.mark.parametrize(
    "pods",
    [(), (pod("p", uid="another"),), (pod("p", node="n", phase="Succeeded"),), (pod("p", terminating=True),)],
    ids=["gone", "replaced", "finished", "deleted before it was bound"],
)
def test_a_claim_is_deallocated_when_its_last_consumer_is_gone(pods: tuple[Pod, ...]) -> None:
    todo = kept(held(pod("p")), *pods)
    assert todo.status is not None
    assert not todo.status.allocated
    assert todo.status.status.reserved_for == []
    assert todo.release


def test_one_of_two_consumers_may_go() -> None:
    stays, goes = pod("stays", node="n"), pod("goes")
    todo = kept(held(stays, goes), stays)
    assert todo.status is not None
    assert todo.status.allocated
    assert [entry.name for entry in todo.status.status.reserved_for] == ["stays"]
    assert not todo.release


def test_a_claim_made_for_a_finished_pod_is_deleted_with_its_allocation() -> None:
    done = pod("p", node="n", phase="Failed")
    todo = kept(held(done, owner=done), done)
    assert todo.status is not None
    assert (todo.release, todo.delete) == (True, True)


def test_a_claim_whose_pod_is_gone_is_left_to_the_garbage_collector() -> None:
    assert not kept(held(pod("p"), owner=pod("p"))).delete


def test_an_allocated_claim_without_consumers_stays_until_it_is_deleted() -> None:
    assert kept(held()).status is None
    todo = kept(held(terminating=True))
    assert todo.status is not None
    assert not todo.status.allocated
    assert todo.release


def test_the_finalizer_of_a_deleted_claim_without_allocation_goes() -> None:
    todo = kept(claim(finalizers=[FINALIZER], terminating=True))
    assert todo.status is None
    assert todo.release

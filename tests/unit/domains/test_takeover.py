"""What is a leftover of the known driver, and what still uses it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlace.api.computedomain import DOMAIN_LABEL, DRIVER, TARGET_LABEL
from interlace.api.core import Node
from interlace.api.meta import ObjectMeta
from interlace.api.resource import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceConfiguration,
    DeviceRequestAllocationResult,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from interlace.domains.takeover import Inventory, What, components, is_ours, leftovers, without_finalizer
from tests.unit.domains.objects import UID, clique, domain, node_slice

NOTHING = Inventory(domains=[], workloads=[], templates=[], claims=[], cliques=[], nodes=[], slices=[])


def inventory(**found: Any) -> Inventory:
    return msgspec.structs.replace(NOTHING, **found)


def template(*, target: str = "Workload", ours: bool = False) -> ResourceClaimTemplate:
    labels = {DOMAIN_LABEL: UID}
    return ResourceClaimTemplate(
        metadata=ObjectMeta(name="rct", namespace="team", uid="t", labels={**labels, TARGET_LABEL: target}),
        spec=ResourceClaimTemplateSpec(metadata=ObjectMeta(labels=labels if ours else {})),
    )


def held(
    *, device: str = "channel-0", labelled: bool = False, reserved: bool = True, node: str = "tray-1"
) -> ResourceClaim:
    """A claim that the known driver prepared."""
    parameters = msgspec.Raw(msgspec.json.encode({"domainID": UID}))
    allocation = DeviceAllocationResult(
        results=[DeviceRequestAllocationResult(request="r", driver=DRIVER, pool=node, device=device)],
        config=[DeviceConfiguration(opaque=OpaqueDeviceConfiguration(driver=DRIVER, parameters=parameters))],
    )
    users = [ResourceClaimConsumerReference(resource="pods", name="p", uid="p")]
    return ResourceClaim(
        metadata=ObjectMeta(name="c", namespace="team", labels={DOMAIN_LABEL: UID} if labelled else {}),
        status=ResourceClaimStatus(
            allocation=AllocationResult(devices=allocation), reserved_for=users if reserved else []
        ),
    )


def labelled_node(name: str = "tray-1") -> Node:
    return Node(metadata=ObjectMeta(name=name, labels={DOMAIN_LABEL: UID}))


def workload(kind: str, name: str, *, labels: dict[str, str], containers: list[str]) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": [{"name": container} for container in containers]}}}
    return {"kind": kind, "metadata": {"name": name, "namespace": "dra", "labels": labels}, "spec": spec}


def states(found: Inventory) -> dict[str, bool]:
    """Kind to whether it is free to go."""
    return {item.what.value: not item.in_use for item in leftovers(found)}


def test_a_cluster_of_ours_holds_no_leftovers() -> None:
    ours = clique([], annotations={"interlace.dev/domain-name": "cd"})
    found = inventory(
        domains=[domain()],
        templates=[template(ours=True)],
        claims=[held(labelled=True)],
        cliques=[ours],
        slices=[node_slice("tray-1", clique_id="c")],
    )
    assert leftovers(found) == []


def test_the_template_of_a_living_domain_is_replaced_and_not_removed() -> None:
    assert leftovers(inventory(domains=[domain()], templates=[template()])) == []
    assert states(inventory(templates=[template()])) == {What.TEMPLATE: True}
    assert states(inventory(domains=[domain()], templates=[template(target="Daemon")])) == {What.TEMPLATE: True}


def test_only_our_templates_label_their_claims() -> None:
    assert is_ours(template(ours=True))
    assert not is_ours(template())


def test_a_workload_keeps_what_serves_it() -> None:
    daemons = workload("DaemonSet", f"computedomain-daemon-{UID}", labels={DOMAIN_LABEL: UID}, containers=["d"])
    found = inventory(
        workloads=[daemons],
        templates=[template(target="Daemon")],
        claims=[held()],
        cliques=[clique([])],
        nodes=[labelled_node(), labelled_node("tray-2")],
    )
    free = {(item.what, item.name): not item.in_use for item in leftovers(found)}
    assert free.pop((What.NODE_LABEL, "tray-2"))
    assert set(free.values()) == {False}
    assert len(free) == 4
    assert set(states(msgspec.structs.replace(found, claims=[])).values()) == {True}


@pytest.mark.parametrize(
    "claim",
    [held(device="daemon-0"), held(reserved=False), held(labelled=True)],
    ids=["a daemon's own", "without a Pod", "of ours"],
)
def test_other_claims_keep_nothing(claim: ResourceClaim) -> None:
    assert states(inventory(claims=[claim], cliques=[clique([])])) == {What.CLIQUE: True}


def test_slices_of_the_known_driver_are_told_by_their_daemon_device() -> None:
    theirs = node_slice("tray-1", clique_id="c")
    spec = msgspec.structs.replace(theirs.spec, devices=[*theirs.spec.devices, Device(name="daemon-0")])
    theirs = msgspec.structs.replace(theirs, spec=spec)
    assert states(inventory(slices=[theirs])) == {What.SLICE: True}
    assert states(inventory(slices=[theirs], claims=[held()])) == {What.SLICE: False}
    assert states(inventory(slices=[theirs], claims=[held(node="tray-9")])) == {What.SLICE: True}


@pytest.mark.parametrize("label", ["dra-driver-nvidia-gpu-component", "nvidia-dra-driver-gpu-component"])
@pytest.mark.parametrize(("kind", "container"), [("Deployment", "compute-domain"), ("DaemonSet", "compute-domains")])
def test_nothing_is_free_while_that_driver_is_installed(label: str, kind: str, container: str) -> None:
    driver = workload(kind, "driver", labels={label: "x"}, containers=["gpus", container])
    found = inventory(workloads=[driver], cliques=[clique([])])
    assert [str(component) for component in components(found.workloads)] == [f"{kind} dra/driver"]
    (item,) = leftovers(found)
    assert item.in_use == f"{kind} dra/driver still runs; uninstall that driver first."


def test_a_chart_that_serves_gpus_alone_is_not_that_driver() -> None:
    gpus = workload("DaemonSet", "gpus", labels={"dra-driver-nvidia-gpu-component": "x"}, containers=["gpus"])
    assert components([gpus]) == []


def test_a_daemon_set_of_somebody_else_with_the_label_is_left_alone() -> None:
    other = workload("DaemonSet", "mine", labels={DOMAIN_LABEL: UID}, containers=["c"])
    assert leftovers(inventory(workloads=[other, {"kind": "DaemonSet"}])) == []


def test_parameters_that_cannot_be_read_hold_the_node_alone() -> None:
    claim = held()
    assert claim.status.allocation is not None
    opaque = OpaqueDeviceConfiguration(driver=DRIVER, parameters=msgspec.Raw(b"7"))
    devices = msgspec.structs.replace(claim.status.allocation.devices, config=[DeviceConfiguration(opaque=opaque)])
    status = msgspec.structs.replace(claim.status, allocation=AllocationResult(devices=devices))
    odd = msgspec.structs.replace(claim, status=status)
    assert states(inventory(claims=[odd], cliques=[clique([])])) == {What.CLIQUE: True}


def test_other_finalizers_stay() -> None:
    assert without_finalizer(["a/b", "resource.nvidia.com/computeDomain"]) == ["a/b"]

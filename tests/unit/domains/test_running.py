"""What Pods that run are told."""

from __future__ import annotations

from interlace.api.computedomain import DRIVER
from interlace.api.meta import Condition, ObjectMeta, OwnerReference
from interlace.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from interlace.domains.reasons import PodReason
from interlace.domains.running import PATIENCE, Interruptions, Orphans


def _claim(name: str, *, reason: str = "Prepared", at: str = "2026-01-01T00:00:00Z", node: str = "n1") -> ResourceClaim:
    result = DeviceRequestAllocationResult(request="channel", driver=DRIVER, pool=node, device="channel-0")
    ready = Condition(type="Ready", status="True", reason=reason, message=f"about {name}", last_transition_time=at)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace="team",
            uid=f"uid-{name}",
            owner_references=[OwnerReference(api_version="v1", kind="Pod", name=f"pod-{name}", uid=f"p-{name}")],
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult(devices=DeviceAllocationResult(results=[result])) if node else None,
            devices=[AllocatedDeviceStatus(driver=DRIVER, pool=node, device="channel-0", conditions=[ready])],
        ),
    )


def test_each_interruption_is_told_once() -> None:
    told = Interruptions()
    assert told.due([_claim("a"), _claim("b")]) == []
    (notice,) = told.due([_claim("a", reason="Restored"), _claim("b")])
    assert (notice.reason, notice.message) == (PodReason.IMEX_RESTARTED, "about a")
    assert told.due([_claim("a", reason="Restored"), _claim("b")]) == []
    assert len(told.due([_claim("a", reason="Restored", at="2026-01-01T00:01:00Z")])) == 1


def test_what_a_new_leader_finds_is_not_told_again() -> None:
    assert Interruptions().due([_claim("a", reason="Restored")]) == []


def test_pods_deleted_with_their_domain_are_told_nothing() -> None:
    orphans = Orphans(domain="team/x", now=100.0)
    assert orphans.due([_claim("a")], now=100.0 + PATIENCE - 0.1) == []
    assert orphans.next_in([_claim("a")], now=101.0) == PATIENCE - 1.0
    assert orphans.next_in([], now=101.0) is None


def test_a_pod_of_another_namespace_is_not_told_that_it_keeps_a_channel() -> None:
    orphans = Orphans(domain="other/x", now=0.0)
    assert orphans.due([_claim("a")], now=PATIENCE) == []
    assert orphans.next_in([_claim("a")], now=1.0) is None


def test_a_pod_that_outlives_its_domain_is_told_once_by_name() -> None:
    orphans = Orphans(domain="team/x", now=0.0)
    (notice,) = orphans.due([_claim("a"), _claim("waiting", node="")], now=PATIENCE)
    assert notice.reason == PodReason.DOMAIN_DELETED
    assert "team/x" in notice.message
    assert "n1" in notice.message
    assert orphans.due([_claim("a")], now=PATIENCE + 1) == []
    assert orphans.next_in([_claim("a")], now=PATIENCE + 1) is None

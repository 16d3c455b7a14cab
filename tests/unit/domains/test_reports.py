"""Reading what agents report, on the claim or on their slice."""

from __future__ import annotations

import msgspec

from interlace.api.computedomain import DRIVER
from interlace.api.meta import ObjectMeta
from interlace.api.resource import REPORTS_ANNOTATION, ResourceSlice
from interlace.domains.conditions import device_status_dropped
from interlace.domains.reports import completed, elsewhere
from interlace.domains.status import claim_ready, condition_of
from tests.unit.domains.objects import claim, node_slice, ready_claim, said


def board(text: str) -> ResourceSlice:
    """A slice with such an annotation."""
    found = node_slice("tray-1", clique_id="c")
    return msgspec.structs.replace(found, metadata=ObjectMeta(name="s", annotations={REPORTS_ANNOTATION: text}))


def report(uid: str, *, pool: str = "tray-1", status: str = "True", reason: str = "Prepared") -> str:
    entry = {
        "driver": DRIVER,
        "pool": pool,
        "device": "channel-0",
        "conditions": [{"type": "Ready", "status": status, "reason": reason}],
    }
    return msgspec.json.encode({uid: [entry]}).decode()


def test_a_claim_without_a_report_is_completed_from_its_nodes_slice() -> None:
    silent = claim("one", node="tray-1")
    assert not claim_ready(silent)
    assert claim_ready(completed(silent, [board(report("uid-of-one"))]))


def test_what_stands_on_the_claim_wins() -> None:
    reported = claim("one", node="tray-1", conditions=[said("False", reason="ImexFailed")])
    same = completed(reported, [board(report("uid-of-one"))])
    assert same is reported


def test_reports_of_other_claims_and_other_nodes_do_not_count() -> None:
    silent = claim("one", node="tray-1")
    assert completed(silent, [board(report("uid-of-two"))]) is silent
    assert condition_of(completed(silent, [board(report("uid-of-one", pool="tray-2"))]), "Ready") is None


def test_an_annotation_that_cannot_be_read_counts_as_none() -> None:
    silent = claim("one", node="tray-1")
    for text in ("", "[]", '{"uid-of-one": 3}', '{"uid-of-one": [{}]}', "\ud7ff{"):
        assert completed(silent, [board(text)]) is silent


def test_a_slice_without_the_annotation_says_nothing_of_the_server() -> None:
    assert not elsewhere([node_slice("tray-1", clique_id="c")])
    assert elsewhere([board("{}")])
    ready = ready_claim("one", node="tray-1")
    assert completed(ready, []) is ready


def test_the_condition_names_version_cause_and_remedy() -> None:
    said_ = device_status_dropped(version="v1beta1")
    assert (said_.type, said_.status, said_.reason) == ("DeviceStatusKept", "False", "DeviceStatusDropped")
    for word in ("resource.k8s.io/v1beta1", "DRAResourceClaimDeviceStatus", "Kubernetes 1.33"):
        assert word in said_.message

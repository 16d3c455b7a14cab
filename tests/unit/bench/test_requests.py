"""Requests of a run from audit records."""

from __future__ import annotations

from typing import Any

from bench.domains.record import Requests
from bench.domains.requests import describe, kind, steps, tabulate
from interlace.sim.plane import AuditRecord

PHASES = {"formation": (10.0, 20.0), "settling": (20.0, 22.0)}


def _record(**fields: Any) -> AuditRecord:
    chosen: dict[str, Any] = {"time": 12.0, "user": "agent", "verb": "patch", "resource": "resourceclaims", "code": 200}
    return AuditRecord(**(chosen | fields))


def _component(user: str) -> str:
    return user


def test_a_conflict_is_no_accepted_write_and_another_refusal_is_no_conflict() -> None:
    assert kind(_record()) == "writes"
    assert kind(_record(code=409, reason="Conflict")) == "conflicts"
    assert kind(_record(code=409, reason="AlreadyExists")) == "refused"
    assert kind(_record(code=422, reason="Invalid")) == "refused"


def test_leases_are_apart_whatever_is_done_to_them() -> None:
    assert {kind(_record(resource="leases", verb=verb)) for verb in ("get", "update", "watch")} == {"lease"}
    assert Requests(lease=9, get=1).total == 1


def test_all_writes_count_whatever_became_of_them() -> None:
    counted = Requests(writes=3, conflicts=2, refused=1, get=4, list=5, watch=6)
    assert (counted.mutating, counted.total) == (6, 21)


def test_a_request_belongs_to_the_phase_in_which_the_server_received_it() -> None:
    records = [_record(time=9.99), _record(time=10.0), _record(time=19.99), _record(time=20.0), _record(time=22.0)]
    counts, details = tabulate(records, component=_component, phases=PHASES)
    assert counts["formation"]["agent"].writes == 2
    assert counts["settling"]["agent"].writes == 1
    assert details["formation"] == {"agent": {"patch resourceclaims": 2}}


def test_a_refused_write_is_told_apart_in_the_details() -> None:
    record = _record(subresource="status", code=409, reason="Conflict")
    assert describe(record) == "patch resourceclaims/status (conflicts)"


def test_steps_name_the_first_and_the_last_write_of_the_components_asked_for() -> None:
    records = [
        _record(time=11.0),
        _record(time=14.5),
        _record(time=12.0, verb="get"),
        _record(time=12.0, user="kubelet"),
        _record(time=25.0),
    ]
    found = steps(records, component=_component, who=["agent"], begin=10.0, end=20.0)
    assert found == {"agent: patch resourceclaims, first": 1.0, "agent: patch resourceclaims, last": 4.5}

"""Counting requests by who made them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlace.sim.audit import component, count, total
from interlace.sim.plane import AuditRecord

AGENT = "system:serviceaccount:interlace-system:interlace-agent"


def _record(**fields: Any) -> AuditRecord:
    base = AuditRecord(time=5.0, user=AGENT, verb="get", resource="pods", code=200)
    return msgspec.structs.replace(base, **fields)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (AGENT, "agent"),
        ("system:serviceaccount:interlace-system:controller", "controller"),
        ("system:serviceaccount:other:interlace-agent", "system:serviceaccount:other:interlace-agent"),
        ("system:kube-scheduler", "scheduler"),
        ("system:serviceaccount:kube-system:resource-claim-controller", "controller-manager"),
        ("system:node:tray-00", "kubelet"),
    ],
)
def test_a_user_name_tells_the_component(user: str, expected: str) -> None:
    assert component(user, namespace="interlace-system") == expected


def test_a_write_refused_with_409_is_a_write_and_a_conflict() -> None:
    table = count(
        [
            _record(verb="update", code=409, reason="Conflict"),
            _record(verb="create", code=409, reason="AlreadyExists"),
            _record(verb="patch"),
            _record(),
            _record(verb="watch"),
        ],
        namespace="interlace-system",
        since=0,
        until=10,
    )
    assert total(table, ["agent"]) == {"get": 1, "list": 0, "watch": 1, "write": 3, "conflict": 2}


def test_leases_and_what_lies_outside_the_time_are_not_counted() -> None:
    records = [_record(resource="leases"), _record(time=1.0), _record(time=10.0)]
    assert count(records, namespace="interlace-system", since=2.0, until=10.0) == {}


def test_events_count_as_writes() -> None:
    table = count([_record(verb="create", resource="events")], namespace="interlace-system", since=0, until=10)
    assert total(table, ["agent"])["write"] == 1

"""Reading an audit log that a real kube-apiserver wrote."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from testbed.audit import AuditLog, parse

SAMPLE = Path(__file__).parents[2] / "data" / "testbed" / "audit.jsonl"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "audit.log"
    path.write_bytes(SAMPLE.read_bytes())
    return path


def test_each_request_is_one_record_however_many_stages_were_logged(log: Path) -> None:
    records = AuditLog(log).read()
    assert Counter((record.user, record.verb, record.code) for record in records) == Counter(
        {
            ("interlace-admin", "get", 200): 2,
            ("interlace-admin", "get", 404): 2,
            ("interlace-admin", "create", 201): 1,
            ("interlace-admin", "create", 409): 1,
            ("interlace-admin", "update", 409): 1,
            ("interlace-admin", "watch", 200): 1,
            ("interlace-admin", "delete", 200): 1,
            ("jane", "create", 201): 1,
            ("jane", "list", 403): 1,
            ("system:kube-scheduler", "watch", 200): 1,
            ("", "list", 401): 1,
            ("", "watch", 401): 1,
        }
    )


def test_a_record_says_who_asked_for_what_when_and_what_came_of_it(log: Path) -> None:
    conflict = next(record for record in AuditLog(log).read() if record.reason == "Conflict")
    assert (conflict.user, conflict.verb, conflict.resource, conflict.namespace, conflict.name, conflict.code) == (
        "interlace-admin", "update", "configmaps", "default", "x", 409,
    )  # fmt: skip
    assert conflict.time == pytest.approx(1796037766.864826)
    assert conflict.user_agent.startswith("kubectl/v1.36.3")


def test_requests_for_no_resource_carry_their_path(log: Path) -> None:
    assert [record.resource for record in AuditLog(log).read() if record.resource.startswith("/")] == ["/version"]


def test_a_watch_still_open_is_counted(log: Path) -> None:
    watches = [record.resource for record in AuditLog(log).read() if record.user == "system:kube-scheduler"]
    assert watches == ["resourceslices"]


def test_reading_goes_on_where_it_ended_and_leaves_a_half_written_line_for_later(tmp_path: Path) -> None:
    content = SAMPLE.read_bytes()
    path = tmp_path / "audit.log"
    log = AuditLog(path)
    assert log.read() == []
    cut = content.index(b"\n") + 100
    path.write_bytes(content[:cut])
    assert len(log.read()) == 1
    path.write_bytes(content)
    assert log.read() == AuditLog(path).read()


def test_what_is_no_event_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        parse(b"{}")
    with pytest.raises(msgspec.DecodeError):
        parse(b'{"stage": ')

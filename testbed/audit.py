"""Requests as the API server's audit log has them.

Invariant: each request is one record, whatever stages the log holds of it: a watch when its answer
started, since it ends much later or never, everything else when it was answered.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import msgspec

from interlace.sim.plane import AuditRecord

UNAUTHORIZED = 401


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Reference(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    reason: str = ""


class _Event(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    stage: str
    verb: str
    request_received_timestamp: dt.datetime
    user: _User = _User()
    object_ref: _Reference | None = None
    response_status: _Status | None = None
    request_uri: str = msgspec.field(name="requestURI", default="")
    user_agent: str = ""


_decoder = msgspec.json.Decoder(_Event)


def parse(line: bytes) -> AuditRecord | None:
    """One line of the log; ``None`` for a stage that does not count.

    Raises ``msgspec.DecodeError`` or ``msgspec.ValidationError`` for what is no audit event.
    """
    event = _decoder.decode(line)
    status = event.response_status or _Status()
    # A caller who could not be authenticated is logged at the start of the answer alone.
    counted = "ResponseStarted" if event.verb == "watch" or status.code == UNAUTHORIZED else "ResponseComplete"
    if event.stage != counted:
        return None
    about = event.object_ref or _Reference()
    return AuditRecord(
        time=event.request_received_timestamp.timestamp(),
        user=event.user.username,
        verb=event.verb,
        resource=about.resource or event.request_uri.partition("?")[0],
        subresource=about.subresource,
        namespace=about.namespace,
        name=about.name,
        code=status.code,
        reason=status.reason,
        user_agent=event.user_agent,
    )


class AuditLog:
    """The log of a running API server, read on from where the last reading ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._records: list[AuditRecord] = []

    def read(self) -> list[AuditRecord]:
        """All records so far, in the order of the log."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            data = b""
        whole = data[: data.rfind(b"\n") + 1]  # the last line may be half written
        self._offset += len(whole)
        for line in whole.splitlines():
            if (record := parse(line)) is not None:
                self._records.append(record)
        return list(self._records)

"""Who asked for what: the embedded server's audit log.

A watch is recorded when it starts, everything else when it was answered. The log is bounded; what falls out of it
is counted.

Invariant: one request, one record.
"""

from __future__ import annotations

from collections import deque

from interlace.sim.plane import AuditRecord


class AuditLog:
    """The latest records, oldest first."""

    def __init__(self, *, limit: int = 200_000) -> None:
        self._records: deque[AuditRecord] = deque(maxlen=limit)
        self.dropped = 0
        """Records that were forgotten to make room."""

    def add(self, record: AuditRecord) -> None:
        """Record one request."""
        if len(self._records) == self._records.maxlen:
            self.dropped += 1
        self._records.append(record)

    def records(self) -> list[AuditRecord]:
        """All that are kept."""
        return list(self._records)

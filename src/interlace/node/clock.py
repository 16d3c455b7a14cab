"""The wall clock in the form that Kubernetes writes."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """This moment, RFC 3339 in UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

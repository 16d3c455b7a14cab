"""The wall clock in the form that Kubernetes writes."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """This moment, RFC 3339 in UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age(moment: str) -> float:
    """Seconds since a moment that ``now`` wrote; 0 for anything else, and for the future."""
    try:
        since = datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return 0.0
    return max(0.0, (datetime.now(UTC) - since).total_seconds())
